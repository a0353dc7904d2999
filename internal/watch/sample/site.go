package sample

import "slices"

// names are what a sample is counted under besides its stack and its size. Equal names have one
// address. names do not refer to a holder, because a program may make and destroy any number of
// heaps.
type names struct {
	heap string // Name of the holder
	pool string // what SetPool has said
}

// A siteKey tells the sites of one stack apart.
type siteKey struct {
	of   *names
	size uintptr // manySizes if fold has made the site of several
}

// A site is a place in the program that allocated blocks of one size from heaps of one name.
type site struct {
	siteKey
	stack *stack
	inUse int // samples of blocks in use

	allocs, frees float64  // sums of weights
	space         float64  // of allocs, in bytes
	lives         []lifeOf // by age; those of a site have few ages
}

// A lifeOf adds up the lives of one range.
type lifeOf struct {
	age int
	Life
}

// take counts blocks that were handed out. The lock is held.
func (s *site) take(weight float64, size uintptr) {
	s.inUse++
	s.allocs += weight
	s.space += weight * float64(size)
	s.stack.live += weight * float64(size)
	table.inUse += weight * float64(size)
}

// free counts blocks that were freed. The lock is held.
func (s *site) free(weight float64, size uintptr) {
	s.inUse--
	s.frees += weight
	s.stack.live -= weight * float64(size)
	table.inUse -= weight * float64(size)
}

// life adds blocks that lived for about as long.
func (s *site) life(age int, l Life) {
	i := slices.IndexFunc(s.lives, func(l lifeOf) bool { return l.age == age })
	if i < 0 {
		i = len(s.lives)
		table.lives++
		s.lives = append(slices.Grow(s.lives, 1), lifeOf{age: age})
	}
	s.lives[i].Blocks += l.Blocks
	s.lives[i].Total += l.Total
}

// namesOf returns the only names with these values. The lock is held.
func namesOf(heap, pool string) *names {
	one := table.names[names{heap, pool}]
	if one == nil {
		one = &names{heap, pool}
		table.names[*one] = one
	}
	return one
}

// site returns the site of a stack, which is new if there was none. The lock is held.
func (st *stack) site(n *names, size uintptr) *site {
	k := siteKey{n, size}
	if s := st.index[k]; s != nil {
		return s
	}
	if st.index == nil {
		for _, s := range st.sites {
			if s.siteKey == k {
				return s
			}
		}
	}
	s := &site{siteKey: k, stack: st}
	table.sites++
	st.sites = append(st.sites, s)
	switch {
	case st.index != nil:
		st.index[k] = s
	case len(st.sites) >= manySites:
		st.makeIndex()
	}
	return s
}

func (st *stack) makeIndex() {
	st.index = map[siteKey]*site{}
	for _, s := range st.sites {
		st.index[s.siteKey] = s
	}
}
