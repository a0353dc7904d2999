package cheap

import (
	"cmp"
	"slices"

	"github.com/cheapgo/cheap/internal/percpu"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/sizeclass"
)

// Stats are the counts of a [Heap].
//
// One rule is true of all counts of the module, those of a method Stats and those of a
// function whose name begins with Read: they are exact, and agree with one another, if
// nobody uses what they count during the call. Under concurrent use the fields may not be
// mutually consistent.
type Stats struct {
	Blocks int64 // blocks in use
	Bytes  int64 // usable bytes of the blocks in use

	Mallocs int64 // blocks handed out since the heap was made
	Frees   int64 // blocks freed since the heap was made

	// Held is how many bytes the heap holds from the operating system, metadata included. Behind
	// the end of a span, or of a large block, less than 64 KiB more may be resident, which an
	// earlier block has left. That is idle memory: Trim and the decay release it ([SetDecay]).
	// While all heaps together have more than 4 MiB of it, and more than a third of the bytes of
	// their spans, a heap that takes or shrinks a span releases at once what lies behind that one;
	// what is there already stays until Trim or the decay. HeapOptions.HugePages says what else may
	// be resident.
	Held   int64
	Limit  int64 // HeapOptions.Limit
	Cached int64 // bytes of free blocks in caches, including those of Locals

	CacheMax int64 // the most that one cache may hold, in bytes
	Caches   int64 // how many caches there are
}

// tally is a sum over caches.
type tally struct {
	caches  int64
	mallocs uint64                  // blocks that they handed out
	byClass [sizeclass.Count]uint64 // the same, of the caches of Ps; see keep
	cached  [sizeclass.Count]int64  // blocks
}

// add counts the blocks of k, which other goroutines may be using.
//
//go:norace
func (t *tally) add(k *cache) {
	t.caches++
	t.mallocs += k.mallocs()
	for i := range k.classes {
		t.cached[i] += int64(k.classes[i].cached())
	}
}

// Heaps returns the heaps of the program, those made first at the front. It is for tools
// that show what a program holds. A heap that is destroyed is not among them.
func Heaps() []*Heap {
	var all []*Heap
	for h := range heaps.Range {
		all = append(all, h.(*Heap))
	}
	slices.SortFunc(all, func(x, y *Heap) int { return cmp.Compare(x.id, y.id) })
	return all
}

// Name returns HeapOptions.Name, or its default. It may be called after Destroy.
func (h *Heap) Name() string { return h.account.Name() }

// Stats returns the heap's counts. Of a heap that is destroyed, also during the call, all
// are 0.
//
//go:norace
func (h *Heap) Stats() Stats {
	if h.id == 0 {
		h.panicNotOpen("Heap.Stats")
	}
	race.Enter()
	defer race.Leave()
	h.seize.Lock()
	defer h.seize.Unlock()
	if h.closed.Load() {
		return Stats{}
	}
	return h.count()
}

// count counts the blocks of the installed caches and of the classes. The caller
// holds seize.
//
//go:norace
func (h *Heap) count() Stats {
	t := h.gone
	for place := range percpu.Max {
		if slot := h.caches.Installed(place); slot != 0 {
			t.add(cacheAt(slot))
		}
	}
	for l := h.locals; l != nil; l = l.next {
		if l.slot != 0 {
			t.add(cacheAt(l.slot))
		}
	}
	s := Stats{
		Held:     h.account.Held(),
		Limit:    h.account.Limit(),
		CacheMax: cacheLimit,
		Caches:   t.caches,
		Mallocs:  int64(t.mallocs) + h.large.mallocs.Load(),
	}
	for i := range h.classes {
		s.Mallocs += int64(h.classes[i].read(&s, i, t.cached[i]))
	}
	sampled := h.sampledClasses()
	for i := range sampled {
		s.Mallocs += int64(sampled[i].read(&s, i, 0))
	}
	s.Blocks += h.large.blocks.Load()
	s.Bytes += h.large.bytes.Load()
	s.Blocks, s.Bytes = h.checked.countsOr(s.Blocks, s.Bytes) // not the quarantine
	s.Frees = s.Mallocs - s.Blocks
	return s
}

// read adds the blocks of class c that are in use to s, where cached of its blocks are in
// caches, and returns how many mallocs the class has served.
//
//go:norace
func (cl *class) read(s *Stats, c int, cached int64) uint64 {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	size := int64(sizeclass.Classes[c].Size)
	s.Blocks += cl.out - cached
	s.Bytes += (cl.out - cached) * size
	s.Cached += cached * size
	return cl.mallocs
}

// live counts the blocks in use, for the account.
//
//go:norace
func (h *Heap) live() (blocks, bytes int64) {
	race.Enter()
	defer race.Leave()
	h.seize.Lock()
	defer h.seize.Unlock()
	s := h.count()
	return s.Blocks, s.Bytes
}
