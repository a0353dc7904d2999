package sample

import (
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"time"
)

// A Holder is what hands out blocks: a heap. Samples of different holders are counted apart.
type Holder struct {
	Name string // for people to read
	ID   uint64 // tells holders of one name apart
}

// A site is a place in the program that allocated blocks of one size from one holder.
type site struct {
	of    *Holder
	pool  string // what SetPool has said
	size  uintptr
	stack *stack

	allocs, frees float64 // sums of weights
	lives         *[Ages]Life
}

// A key finds a site.
type key struct {
	of    *Holder
	pool  string
	size  uintptr
	stack *stack
}

// A stack is the program counters of a call, as [runtime.Callers] returns them. Equal stacks are
// one.
type stack struct {
	pcs  []uintptr
	live float64 // bytes in use
}

// A record is what is known of a sampled block that is in use.
type record struct {
	site   *site
	weight float64
	since  time.Duration // after start
}

// deepest is how many frames of a stack are kept, the innermost ones.
const deepest = 64

var table struct {
	mu     sync.Mutex
	sites  map[key]*site
	stacks map[uint64][]*stack // by hash
	live   map[uintptr]record  // by address
}

var start = time.Now()

// Add records a block that was handed out at p and is to be sampled. The stack is that of the
// caller of Add. A sample that is still there for p is ended.
func Add(p, size uintptr, of *Holder) {
	var pcs [deepest]uintptr
	n := runtime.Callers(2, pcs[:])
	now := time.Since(start)
	rate := Rate()
	if rate == 0 {
		return
	}
	weight := 1 / probability(size, rate)

	table.mu.Lock()
	defer table.mu.Unlock()
	if table.live == nil {
		table.sites, table.stacks, table.live = map[key]*site{}, map[uint64][]*stack{}, map[uintptr]record{}
	}
	end(p, now)
	s := siteOf(key{of: of, size: size, stack: stackOf(pcs[:n])})
	s.allocs += weight
	s.stack.live += weight * float64(size)
	table.live[p] = record{s, weight, now}
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
	r.site = siteOf(key{of: r.site.of, pool: name, size: r.site.size, stack: r.site.stack})
	r.site.allocs += r.weight
	table.live[p] = r
}

// Drop ends all samples of a holder, whose blocks are gone. Their lives are not counted.
func Drop(of *Holder) {
	table.mu.Lock()
	defer table.mu.Unlock()
	for p, r := range table.live {
		if r.site.of == of {
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

// siteOf returns the site with that key. The lock is held.
func siteOf(k key) *site {
	s := table.sites[k]
	if s == nil {
		s = &site{of: k.of, pool: k.pool, size: k.size, stack: k.stack}
		table.sites[k] = s
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

// A Site describes what one place in the program has allocated: blocks of one size, from one
// holder. The numbers are estimates, sums over the samples.
type Site struct {
	Of   *Holder
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
	all := make([]Site, 0, len(table.sites))
	for _, s := range table.sites {
		if s.allocs < 0.5 {
			continue // SetPool has taken the only one
		}
		o := Site{Of: s.of, Pool: s.pool, Size: s.size, PCs: s.stack.pcs, Allocs: s.allocs, Frees: s.frees}
		if s.lives != nil {
			o.Lives = *s.lives
		}
		all = append(all, o)
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
