package resident

import (
	"cmp"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// Mappings are the sums over the mappings of a process.
type Mappings struct {
	All  Sum
	List []Sum // by name, those with the most resident bytes first

	Arenas int64 // how many arenas malloc has beside its first one, as far as is known
	Unread bool  // not all headers of malloc were read, so its blocks may be among what is anonymous

	// Threads are those of the process, by who has begun them, the most first; nil if that was not read.
	Threads []Threads

	Allocators []string // a line for each file that has one, if that was read

	stacks, files []procfs.Mapping // of threads, and of files, in the order of addresses
}

// Threads are threads that one library, or function, has begun.
type Threads struct {
	By     string // a file, "the program: " and a function of C, "Go", or "unknown"
	Count  int64
	Idle   int64 // of Count, those that sleep
	Stacks int64 // resident bytes of their stacks
}

// merge adds threads to those of the same name.
func merge(list []Threads, t Threads) []Threads {
	for i := range list {
		if l := &list[i]; l.By == t.By {
			l.Count, l.Idle, l.Stacks = l.Count+t.Count, l.Idle+t.Idle, l.Stacks+t.Stacks
			return list
		}
	}
	if t.Count == 0 {
		return list
	}
	return append(list, t)
}

// A Sum is the sum over the mappings of one name, in bytes.
type Sum struct {
	Name                                   string
	Resident, Anonymous, Huge, Swap, Space int64 // Huge of Anonymous, in huge pages
	Count                                  int64 // of mappings

	is    mapping
	large int64 // resident bytes in those of largeMapping bytes or more
}

// A mapping says what a mapping is.
type mapping int

const (
	isAnonymous mapping = iota // of nothing else
	isGoHeap
	isGo // what the runtime keeps, where the kernel has names
	isCheap
	isCheapRecords
	isMalloc // the first arena, or another one
	isBlock  // of malloc, with a mapping of its own
	isThread
	isProgram
	isLibrary
	isFile
	isShared
	isSandbox
	isKernel
	isReserved
)

const (
	// The arenas of glibc's malloc are aligned to their size, and what is not used yet is inaccessible.
	mallocArena = 64 << 20

	// From here on a mapping of nobody is worth a part of its own.
	largeMapping = 1 << 20

	// No thread has a smaller stack: PTHREAD_STACK_MIN.
	leastStack = 16 << 10

	// Linear memory of wasm is in a reservation of some GiB, so that an index of 32 bits cannot leave it.
	sandboxReservation = 1 << 30

	// mostText bounds how much of /proc/PID/smaps is read: 6,000 mappings, which take 25 ms.
	mostText = 4 << 20
)

// A Classifier knows the process whose mappings are summed. The functions may be nil.
type Classifier struct {
	Program string // the path of its program

	InGo    func(addr uint64) bool       // the address is in the Go heap
	OfCheap func(start, end uint64) bool // the mapping has memory of package cheap
	Whole   bool                         // the list is read however long it is

	// Malloc says what malloc has of a mapping, behind which others follow without a gap until end.
	Malloc func(m *procfs.Mapping, end uint64) ofMalloc
}

// ofMalloc says how many bytes of a mapping are of malloc.
type ofMalloc struct {
	arenas int64 // in arenas
	blocks int64 // in blocks that have a mapping of their own
	sure   bool  // no other bytes of the mapping are of malloc
}

// Sum adds up the mappings that from lists in the form of /proc/PID/smaps, by name. It returns nil if
// there are none, or, unless Whole is set, more than 4 MiB of text.
//
// A mapping without a name is told by its address and by its neighbours. The kernel makes one mapping of
// two that are next to each other, so a part of a mapping may be of another kind.
func (p *Classifier) Sum(from io.Reader) *Mappings {
	limited := &io.LimitedReader{R: from, N: mostText}
	if p.Whole {
		limited.N = math.MaxInt64
	}
	m := &Mappings{}
	c := counting{p: p, to: m, byName: map[string]*Sum{}}
	err := procfs.Mappings(limited, func(v procfs.Mapping) bool {
		n := len(c.some)
		c.some = append(c.some, v)
		if n > c.first && !follows(&c.some[n-1], &v) {
			c.count(n)
		}
		return true
	})
	if err != nil || limited.N <= 0 {
		return nil
	}
	if len(c.some) > c.first {
		c.count(len(c.some))
	}
	for _, s := range c.byName {
		m.List = append(m.List, *s)
	}
	slices.SortFunc(m.List, func(x, y Sum) int {
		return cmp.Or(cmp.Compare(y.Resident, x.Resident), cmp.Compare(x.Name, y.Name))
	})
	if m.All.Resident == 0 {
		return nil
	}
	return m
}

// follows reports whether malloc may have two mappings, of which one begins where the other ends.
func follows(v, next *procfs.Mapping) bool {
	return next.Start == v.End && next.Name == "" && next.Write
}

// A counting adds up a list. A mapping is told by those beside it, and by those that follow, so no more are kept.
type counting struct {
	p      *Classifier
	to     *Mappings
	byName map[string]*Sum
	some   []procfs.Mapping // one that was counted, if there is one, and those that are not
	first  int              // of these
	v      procfs.Mapping   // one for all: its address goes to a function
}

// count counts mappings up to number n, which does not follow the one before.
func (c *counting) count(n int) {
	p, m, byName, all, v := c.p, c.to, c.byName, c.some, &c.v
	var end uint64 // of the mappings like this one that follow it
	for i := c.first; i < n; i++ {
		is, name := p.kind(all, i)
		*v = all[i]
		if v.Name == "" && v.Write && (is == isAnonymous || is == isMalloc || is == isSandbox) && p.Malloc != nil {
			if end <= v.Start {
				end = v.End
				for j := i + 1; j < n && follows(&all[j-1], &all[j]); j++ {
					end = all[j].End
				}
			}
			of := p.Malloc(v, end)
			if is == isMalloc && of.sure { // it has the address of an arena, and is something else
				is, name = isAnonymous, "other anonymous"
			}
			for _, part := range []struct {
				is   mapping
				name string
				n    int64
			}{{isBlock, "malloc: large blocks", of.blocks}, {isMalloc, "malloc: arenas", of.arenas}} {
				if n := min(part.n, int64(v.End-v.Start)); n > 0 {
					m.count(byName, part.is, part.name, split(v, n))
				}
			}
		}
		m.count(byName, is, name, *v)
		switch {
		case is == isThread && v.Name != "[stack]",
			(is == isAnonymous || is == isSandbox) && v.Name == "" && v.Write && v.End-v.Start >= leastStack && i > 0 && inaccessible(&all[i-1]) && all[i-1].End == v.Start: // maybe
			m.stacks = append(m.stacks, *v)
		case strings.HasPrefix(v.Name, "/"):
			m.files = append(m.files, *v)
		}
	}
	c.some, c.first = append(all[:0], all[n-1:]...), 1
}

// split takes the first n bytes of a mapping, of which the resident ones are taken in proportion.
func split(v *procfs.Mapping, n int64) (first procfs.Mapping) {
	first = *v
	share := float64(n) / float64(v.End-v.Start)
	part := func(all *int64) int64 {
		x := int64(share * float64(*all))
		*all -= x
		return x
	}
	first.End = v.Start + uint64(n)
	first.Resident, first.Anonymous, first.Huge, first.Swap = part(&v.Resident), part(&v.Anonymous), part(&v.Huge), part(&v.Swap)
	v.Start = first.End
	return first
}

// count adds a mapping to the sum of its name, and to that of all.
func (m *Mappings) count(byName map[string]*Sum, is mapping, name string, v procfs.Mapping) {
	if v.Start == v.End {
		return // all of it was taken
	}
	s := byName[name]
	if s == nil {
		s = &Sum{Name: name, is: is}
		byName[name] = s
	}
	for _, to := range []*Sum{s, &m.All} {
		to.add(&Sum{Resident: v.Resident, Anonymous: v.Anonymous, Huge: v.Huge, Swap: v.Swap, Space: int64(v.End - v.Start), Count: 1})
	}
	if v.Resident >= largeMapping {
		s.large += v.Resident
	}
}

// add adds the numbers of another sum.
func (s *Sum) add(o *Sum) {
	s.Resident, s.Anonymous, s.Huge, s.Swap = s.Resident+o.Resident, s.Anonymous+o.Anonymous, s.Huge+o.Huge, s.Swap+o.Swap
	s.Space, s.Count, s.large = s.Space+o.Space, s.Count+o.Count, s.large+o.large
}

// of returns the sum over all mappings that are something.
func (m *Mappings) of(is mapping) (sum Sum) {
	for _, s := range m.List {
		if s.is == is {
			sum.add(&s)
		}
	}
	return sum
}

// named returns the resident bytes of the mappings of a name.
func (m *Mappings) named(name string) int64 {
	for _, s := range m.List {
		if s.Name == name {
			return s.Resident
		}
	}
	return 0
}

// large returns the resident bytes of large mappings of nobody.
func (m *Mappings) large() int64 { return m.of(isAnonymous).large }

// kind says what mapping i is, and under which name it is added up.
func (p *Classifier) kind(all []procfs.Mapping, i int) (is mapping, name string) {
	v := &all[i]
	if v.Name != "" {
		return p.kindOfName(v)
	}
	was, next := new(procfs.Mapping), new(procfs.Mapping)
	if i > 0 && all[i-1].End == v.Start {
		was = &all[i-1]
	}
	if i+1 < len(all) && all[i+1].Start == v.End {
		next = &all[i+1]
	}
	wide := func(m *procfs.Mapping) bool { return inaccessible(m) && m.End-m.Start >= sandboxReservation }
	switch {
	case p.InGo != nil && p.InGo(v.Start):
		return isGoHeap, "Go heap"
	case p.OfCheap != nil && p.OfCheap(v.Start, v.End):
		return isCheap, "cheap"
	case v.Write && (wide(was) || wide(next)): // also at an address that an arena could have
		return isSandbox, "in large reservations"
	case arenaAt(v.Start) && v.Write && v.End-v.Start <= mallocArena,
		inaccessible(v) && was.Write && arenaAt(was.Start) && was.Name == "" && was.End > was.Start: // the rest of one
		return isMalloc, "malloc: arenas"
	case inaccessible(v):
		return isReserved, "reserved, without memory"
	case v.Write && inaccessible(was) && was.End > was.Start && was.End-was.Start <= 64<<10 && v.End-v.Start >= leastStack:
		return isThread, "stacks of threads" // behind a guard
	case strings.HasPrefix(was.Name, "/") && v.Write:
		return p.kindOfName(was) // variables that are zero at first
	}
	return isAnonymous, "other anonymous"
}

// arenaAt reports whether an arena of malloc may begin at an address. On 32-bit systems, whose addresses are
// below 4 GiB, arenas are smaller, and nothing tells them from others.
func arenaAt(addr uint64) bool { return addr >= 1<<32 && addr%mallocArena == 0 }

// kindOfName is kind for a mapping with a name.
func (p *Classifier) kindOfName(v *procfs.Mapping) (is mapping, name string) {
	const next = " (deleted)"
	has := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(s string) bool { return strings.HasPrefix(v.Name, s) })
	}
	switch base := path.Base(v.Name); {
	case v.Name == p.Program || v.Name == p.Program+next:
		return isProgram, "the program"
	case v.Name == "[heap]":
		return isMalloc, "malloc: [heap]"
	case v.Name == "[stack]":
		return isThread, "stacks of threads"
	case has("[vdso]", "[vvar", "[vsyscall]"):
		return isKernel, "of the kernel"
	case has("/memfd:", "/dev/shm/", "/SYSV", "/dev/zero", "[anon_shmem:"):
		return isShared, base
	case has("/") && isLibraryName(base):
		return isLibrary, base
	case has("/"):
		return isFile, base
	case has("[anon: Go: heap"):
		return isGoHeap, "Go heap"
	case has("[anon: Go: "):
		return isGo, "Go runtime"
	case has("[anon:cheap: heap"):
		return isCheap, "cheap"
	case has("[anon:cheap: "):
		return isCheapRecords, "cheap: records"
	case has("[anon: glibc: malloc arena"):
		return isMalloc, "malloc: arenas"
	case has("[anon: glibc: malloc"):
		return isBlock, "malloc: large blocks"
	case has("[anon: glibc: pthread stack"):
		return isThread, "stacks of threads"
	}
	return isAnonymous, v.Name
}

// isLibraryName reports whether a file is a shared library, such as libc.so.6.
func isLibraryName(base string) bool {
	base = strings.TrimSuffix(base, " (deleted)")
	return strings.HasSuffix(base, ".so") || strings.Contains(base, ".so.")
}

// inaccessible reports whether nothing may be done with the mapping.
func inaccessible(m *procfs.Mapping) bool { return !m.Read && !m.Write && !m.Exec }
