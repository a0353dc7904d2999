package sample

import (
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/cheapgo/cheap/internal/goroutine"
)

// A Holder is what hands out blocks: a heap. Samples of holders with different names are
// counted apart.
type Holder struct{ Name string }

// A siteKey tells the sites of one stack apart. It has no holder, because a program may make
// and destroy any number of heaps.
type siteKey struct {
	heap string // Name of the holder
	pool string // what SetPool has said
	size uintptr
}

// A site is a place in the program that allocated blocks of one size from heaps of one name.
type site struct {
	siteKey
	stack *stack

	rate   int64 // for which weight was computed
	weight float64

	allocs, frees float64 // sums of weights
	lives         *[Ages]Life
}

// A stack is the program counters of a call, as [runtime.Callers] returns them. Equal stacks are
// one.
type stack struct {
	pcs   []uintptr
	id    uint32 // 0 if Stack has not returned it
	sites []*site
	index map[siteKey]*site // of sites, from manySites of them on
	live  float64           // bytes in use
}

const manySites = 16

// A record is what is known of a sampled block that is in use.
type record struct {
	of     *Holder
	site   *site
	weight float64
	since  time.Duration // after start
}

// deepest is how many frames of a stack are kept, the innermost ones.
const deepest = 64

var table struct {
	mu     sync.Mutex
	stacks map[uint64][]*stack // by hash
	live   map[uintptr]record  // by address

	// byFrames has the stacks by the return addresses on them. Several of these may lead to
	// one stack of stacks, because they have the frames of package cheap.
	byFrames map[[goroutine.MostFrames]uintptr]*stack

	numbered []*stack // by id, less 1
}

var start = time.Now()

// Add records a block that was handed out at p and is to be sampled. The stack is that of the
// caller of Add. A sample that is still there for p is ended.
func Add(p, size uintptr, of *Holder) {
	now := time.Since(start)
	rate := Rate()
	if rate == 0 {
		return
	}

	table.mu.Lock()
	defer table.mu.Unlock()
	prepare()
	end(p, now)
	s := here().site(siteKey{of.Name, "", size})
	if s.rate != rate {
		s.rate, s.weight = rate, 1/probability(size, rate)
	}
	s.allocs += s.weight
	s.stack.live += s.weight * float64(size)
	table.live[p] = record{of, s, s.weight, now}
}

// prepare makes the maps. The lock is held.
func prepare() {
	if table.live == nil {
		table.stacks, table.live = map[uint64][]*stack{}, map[uintptr]record{}
		table.byFrames = map[[goroutine.MostFrames]uintptr]*stack{}
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
	if id == 0 || int(id) > len(table.numbered) {
		return nil
	}
	return table.numbered[id-1].pcs
}

// Remove records that the block at p was freed, or is about to be. It does nothing if the
// block was not sampled.
func Remove(p uintptr) {
	now := time.Since(start)
	table.mu.Lock()
	defer table.mu.Unlock()
	end(p, now)
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
	r.site.allocs -= r.weight
	r.site = r.site.stack.site(siteKey{r.site.heap, name, r.site.size})
	r.site.allocs += r.weight
	table.live[p] = r
}

// Drop ends all samples of a holder, whose blocks are gone. Their lives are not counted.
func Drop(of *Holder) {
	table.mu.Lock()
	defer table.mu.Unlock()
	for p, r := range table.live {
		if r.of == of {
			r.site.free(r.weight)
			delete(table.live, p)
		}
	}
}

// end ends the sample of the block at p, if there is one. The lock is held.
func end(p uintptr, now time.Duration) {
	r, ok := table.live[p]
	if !ok {
		return
	}
	delete(table.live, p)
	s := r.site
	s.free(r.weight)
	if s.lives == nil {
		s.lives = new([Ages]Life)
	}
	l := &s.lives[ageOf(now-r.since)]
	l.Blocks += r.weight
	l.Total += r.weight * float64(now-r.since)
}

// free counts blocks that were freed. The lock is held.
func (s *site) free(weight float64) {
	s.frees += weight
	s.stack.live -= weight * float64(s.size)
}

// site returns the site of a stack, which is new if there was none. The lock is held.
func (st *stack) site(k siteKey) *site {
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
	st.sites = append(st.sites, s)
	switch {
	case st.index != nil:
		st.index[k] = s
	case len(st.sites) == manySites:
		st.index = map[siteKey]*site{}
		for _, s := range st.sites {
			st.index[s.siteKey] = s
		}
	}
	return s
}

// here returns the stack of the caller of its caller. The lock is held.
//
// Most samples come from a stack that is known. The return addresses of the frames are
// enough to find that, and [goroutine.Frames] reads them in a fiftieth of the time of
// runtime.Callers, which knows of inlined functions as well. A deeper stack than it reads is
// not found by them.
func here() *stack {
	var frames [goroutine.MostFrames]uintptr
	short := goroutine.Frames(&frames)
	short %= goroutine.MostFrames
	if s := table.byFrames[frames]; s != nil && short > 0 {
		return s
	}
	var pcs [deepest]uintptr
	s := stackOf(pcs[:runtime.Callers(3, pcs[:])])
	if short > 0 {
		table.byFrames[frames] = s
	}
	return s
}

// stackOf returns the stack with those program counters. The lock is held.
func stackOf(pcs []uintptr) *stack {
	sum := uint64(len(pcs))
	for _, pc := range pcs {
		sum = bits.RotateLeft64(sum^uint64(pc), 27) * 0x9E3779B97F4A7C15 // 2⁶⁴ divided by the golden ratio
	}
	for _, s := range table.stacks[sum] {
		if slices.Equal(s.pcs, pcs) {
			return s
		}
	}
	s := &stack{pcs: slices.Clone(pcs)}
	table.stacks[sum] = append(table.stacks[sum], s)
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
	Size uintptr // of a block in bytes
	PCs  []uintptr

	Allocs, Frees float64 // blocks

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
		for _, st := range same {
			for _, s := range st.sites {
				if s.allocs < 0.5 {
					continue // SetPool has taken the only one
				}
				o := Site{Heap: s.heap, Pool: s.pool, Size: s.size, PCs: st.pcs, Allocs: s.allocs, Frees: s.frees}
				if s.lives != nil {
					o.Lives = *s.lives
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
		for _, s := range same {
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
