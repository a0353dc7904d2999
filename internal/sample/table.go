package sample

import (
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/cheapgo/cheap/internal/stacks"
)

// A Holder is what hands out blocks: a heap. Samples of holders with different names are
// counted apart.
type Holder struct {
	Name string

	first *record // of its blocks in use; under the lock of the table
}

// names are what a sample is counted under besides its stack and its size. Equal names have one
// address. They have no holder, because a program may make and destroy any number of heaps.
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

// A stack is the program counters of a call, as [runtime.Callers] returns them. Equal stacks are
// one.
type stack struct {
	pcs   []uintptr
	id    uint32 // 0 if Stack has not returned it
	next  *stack // another one with the same hash
	sites []*site
	index map[siteKey]*site // of sites, from manySites of them on
	live  float64           // bytes in use
}

const manySites = 16

// A record is what is known of a sampled block that is in use. The records of a holder are a
// list, so that Drop looks at no others.
type record struct {
	of         *Holder
	next, prev *record
	site       *site
	p, size    uintptr
	weight     float64
	since      time.Duration // after start
}

// link puts r at the head of its holder's list.
func (r *record) link() {
	if r.next = r.of.first; r.next != nil {
		r.next.prev = r
	}
	r.of.first = r
}

// unlink takes r out of its holder's list.
func (r *record) unlink() {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		r.of.first = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	}
}

// newRecord returns a record, perhaps one that was used before. The lock is held.
func newRecord(r record) *record {
	n := table.spare
	if n == nil {
		n = new(record)
	} else {
		table.spare = n.next
		table.spares--
	}
	*n = r
	return n
}

// release gives back a record that is in no list. The lock is held.
func (r *record) release() {
	if table.spares < mostSpare {
		*r = record{next: table.spare}
		table.spare = r
		table.spares++
	}
}

const mostSpare = 256 // 16 KiB

// deepest is how many frames of a stack are kept, the innermost ones.
const deepest = 64

var table struct {
	mu     sync.Mutex
	stacks map[uint64]*stack   // by hash
	live   map[uintptr]*record // by address

	// byFrames has the stacks by a hash of the return addresses on them. Several of these may
	// lead to one stack of stacks, because they have the frames of package cheap. The addresses
	// themselves would take half of the memory of the table. Two of n stacks have one hash with
	// the probability n² / 2⁶⁵: one in four million if there are three million stacks.
	byFrames map[uint64]*stack

	numbered []*stack // by id, less 1

	// spare has up to mostSpare records of samples that have ended, so that a program that frees
	// what it allocates makes no Go object for each sample.
	spare  *record
	spares int

	names   map[names]*names
	inUse   float64 // bytes of blocks in use
	foldAt  int64   // see mayFold
	counted         // what the table has
}

var start = time.Now()

// Now returns a time in nanoseconds, of a clock that only goes forward.
func Now() int64 { return int64(time.Since(start)) }

// Add records a block that was handed out at p and is to be sampled. The stack is that of the
// caller of Add. A sample that is still there for p is ended.
func Add(p, size uintptr, of *Holder) {
	now := time.Since(start)
	rate := Rate()
	if rate == 0 {
		return
	}

	table.mu.Lock()
	prepare()
	ended := end(p, now)
	s := here().site(namesOf(of.Name, ""), size)
	weight := 1 / probability(size, rate)
	s.take(weight, size)
	r := newRecord(record{of: of, site: s, p: p, size: size, weight: weight, since: now})
	r.link()
	table.live[p] = r
	table.records = max(table.records, len(table.live))
	table.now.Store(int64(len(table.live)))
	mayFold()
	table.mu.Unlock()
	if t := tracer.Load(); t != nil {
		if ended {
			(*t).Free(p)
		}
		(*t).Alloc(p, size, weight)
	}
}

// prepare makes the maps. The lock is held.
func prepare() {
	if table.live == nil {
		table.stacks, table.live = map[uint64]*stack{}, map[uintptr]*record{}
		table.byFrames, table.names = map[uint64]*stack{}, map[names]*names{}
	}
}

// Stack returns a number for the stack of the caller of its caller; equal stacks have one
// number, which is not 0. PCs returns the stack.
func Stack() uint32 {
	table.mu.Lock()
	defer table.mu.Unlock()
	prepare()
	s := here()
	if s.id == 0 {
		table.numbered = append(table.numbered, s)
		s.id = uint32(len(table.numbered))
	}
	return s.id
}

// PCs returns the program counters of the stack with that number, or nil if there is none.
func PCs(id uint32) []uintptr {
	table.mu.Lock()
	defer table.mu.Unlock()
	if s := held.stacks[id]; s != nil {
		return s.pcs
	}
	if id == 0 || uint64(id) > uint64(len(table.numbered)) {
		return nil
	}
	return table.numbered[id-1].pcs
}

// Remove records that the block at p was freed, or is about to be. It does nothing if the
// block was not sampled.
func Remove(p uintptr) {
	now := time.Since(start)
	table.mu.Lock()
	ended := end(p, now)
	table.mu.Unlock()
	if t := tracer.Load(); t != nil && ended {
		(*t).Free(p)
	}
}

// SetPool says for which pool the block at p was allocated. It does nothing if the block was
// not sampled. It must be called once for a block, and not long after Add.
func SetPool(p uintptr, name string) {
	if Rate() == 0 {
		return
	}
	table.mu.Lock()
	defer table.mu.Unlock()
	r, ok := table.live[p]
	if !ok {
		return
	}
	old := r.site
	old.take(-r.weight, r.size)
	old.inUse -= 2 // take has counted it as another one
	r.site = old.stack.site(namesOf(old.of.heap, name), r.size)
	r.site.take(r.weight, r.size)
}

// Drop ends all samples of a holder, whose blocks are gone. Their lives are not counted.
func Drop(of *Holder) {
	t := tracer.Load()
	var ended []uintptr // if there is a tracer
	table.mu.Lock()
	for r := of.first; r != nil; r = r.next {
		r.site.free(r.weight, r.size)
		delete(table.live, r.p)
		if t != nil {
			ended = append(ended, r.p)
		}
	}
	of.first = nil
	table.now.Store(int64(len(table.live)))
	table.mu.Unlock()
	for _, p := range ended {
		(*t).Free(p)
	}
}

// end ends the sample of the block at p, and returns false if there is none. The lock is held.
func end(p uintptr, now time.Duration) bool {
	r, ok := table.live[p]
	if !ok {
		return false
	}
	r.unlink()
	delete(table.live, p)
	table.now.Store(int64(len(table.live)))
	s := r.site
	s.free(r.weight, r.size)
	d := now - r.since
	s.life(ageOf(d), Life{r.weight, r.weight * float64(d)})
	r.release()
	return true
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

// here returns the stack of the caller of its caller. The lock is held.
//
// Most samples come from a stack that is known. The return addresses of the frames are
// enough to find that, and [stacks.Frames] reads them in a fiftieth of the time of
// runtime.Callers, which knows of inlined functions as well. A deeper stack than it reads is
// not found by them.
func here() *stack {
	var frames [stacks.MostFrames]uintptr
	short := stacks.Frames(&frames)
	short %= stacks.MostFrames
	sum := hash(frames[:short])
	if s := table.byFrames[sum]; s != nil && short > 0 {
		return s
	}
	var pcs [deepest]uintptr
	s := stackOf(pcs[:runtime.Callers(3, pcs[:])])
	if short > 0 {
		table.byFrames[sum] = s
	}
	return s
}

// hash returns a number that depends on all program counters and on their order. Each step
// permutes the numbers, and spreads each bit over the upper ones and, turned, over the lower.
func hash(pcs []uintptr) uint64 {
	sum := uint64(len(pcs))
	for _, pc := range pcs {
		sum = bits.RotateLeft64(sum^uint64(pc), 27) * 0x9E3779B97F4A7C15 // 2⁶⁴ divided by the golden ratio
	}
	return sum
}

// stackOf returns the stack with those program counters. The lock is held.
func stackOf(pcs []uintptr) *stack {
	sum := hash(pcs)
	first := table.stacks[sum]
	for s := first; s != nil; s = s.next {
		if slices.Equal(s.pcs, pcs) {
			return s
		}
	}
	s := &stack{pcs: slices.Clone(pcs), next: first}
	table.numStacks++
	table.frames += len(pcs)
	table.stacks[sum] = s
	return s
}

// A Life adds up the lives of blocks that lived about as long.
type Life struct {
	Blocks float64
	Total  float64 // of their lives, in nanoseconds
}

// Ages is the number of ranges in which the lives of blocks are counted. The first is up to
// 10 µs, each is ten times as long as the one before, and the last has no end.
const Ages = 10

// ageOf returns the range of a life.
func ageOf(d time.Duration) int {
	i := 0
	for limit := 10 * time.Microsecond; i < Ages-1 && d >= limit; limit *= 10 {
		i++
	}
	return i
}

// AgeLimit returns the end of range i, or 0 for the last one.
func AgeLimit(i int) time.Duration {
	if i >= Ages-1 {
		return 0
	}
	d := 10 * time.Microsecond
	for range i {
		d *= 10
	}
	return d
}

// A Site describes what one place in the program has allocated: blocks of one size, from
// heaps of one name. The numbers are estimates, sums over the samples.
type Site struct {
	Heap string
	Pool string  // for which pool of package own the blocks were allocated, or ""
	Size uintptr // of a block in bytes, or the mean if there are several
	PCs  []uintptr

	Allocs, Frees float64 // blocks
	Space         float64 // bytes of Allocs

	// Lives has the blocks in Frees by how long they lived: range i ends at AgeLimit(i). Those
	// whose heap was destroyed are missing.
	Lives [Ages]Life
}

// Sites returns all sites, in no order.
func Sites() []Site {
	table.mu.Lock()
	defer table.mu.Unlock()
	var all []Site
	for _, same := range table.stacks {
		for st := same; st != nil; st = st.next {
			for _, s := range st.sites {
				if s.allocs < 0.5 {
					continue // SetPool has taken the only one
				}
				o := Site{Heap: s.of.heap, Pool: s.of.pool, Size: s.size, PCs: st.pcs, Allocs: s.allocs, Frees: s.frees, Space: s.space}
				if s.size == manySizes {
					o.Size = uintptr(math.Round(s.space / s.allocs))
				}
				for _, l := range s.lives {
					o.Lives[l.age] = l.Life
				}
				all = append(all, o)
			}
		}
	}
	return all
}

// A Place is a stack with the bytes that are in use of what it has allocated.
type Place struct {
	PCs  []uintptr
	Live float64 // an estimate
}

// Top returns the n stacks with the most bytes in use, the largest first. It takes some
// nanoseconds for each stack of the program.
func Top(n int) []Place {
	var top []Place
	table.mu.Lock()
	for _, same := range table.stacks {
		for s := same; s != nil; s = s.next {
			if s.live < 1 || len(top) == n && s.live <= top[n-1].Live {
				continue
			}
			at := len(top)
			for at > 0 && top[at-1].Live < s.live {
				at--
			}
			top = slices.Insert(top, at, Place{s.pcs, s.live})
			top = top[:min(n, len(top))]
		}
	}
	table.mu.Unlock()
	return top
}

// Live returns how many samples are of blocks in use.
func Live() int {
	table.mu.Lock()
	defer table.mu.Unlock()
	return len(table.live)
}
