package heap

import (
	"cmp"
	"slices"

	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
)

// Stats are cheap.Stats.
type Stats struct {
	Blocks, Bytes, Mallocs, Frees, Held, Limit, Cached, CacheMax, Caches int64
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

// Heaps is cheap.Heaps.
func Heaps() []*Heap {
	var all []*Heap
	for h := range heaps.Range {
		all = append(all, h.(*Heap))
	}
	slices.SortFunc(all, func(x, y *Heap) int { return cmp.Compare(x.id, y.id) })
	return all
}

// Name is cheap.Heap.Name.
func (h *Heap) Name() string { return h.account.Name() }

// Stats is cheap.Heap.Stats.
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
	blocks, bytes, mallocs := h.peekLarge()
	s := Stats{
		Held:     h.account.Held(),
		Limit:    h.account.Limit(),
		CacheMax: cacheLimit,
		Caches:   t.caches,
		Mallocs:  int64(t.mallocs) + mallocs,
	}
	for i := range h.classes {
		s.Mallocs += int64(h.classes[i].read(&s, i, t.cached[i]))
	}
	sampled := h.sampledClasses()
	for i := range sampled {
		s.Mallocs += int64(sampled[i].read(&s, i, 0))
	}
	s.Blocks += blocks
	s.Bytes += bytes
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
