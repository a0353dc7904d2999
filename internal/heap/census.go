package heap

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/watch/census"
)

// gone is what the destroyed heaps have counted.
var gone struct {
	mu      sync.Mutex // held for some additions
	heaps   int64
	mallocs [sizeclass.Count]int64
	large   int64
}

// ticks counts the ticks of the decay.
var ticks atomic.Int64

// readHeaps reads the counts of all heaps. It takes no lock that Malloc or Free may take, but
// for Heap.seize, which a goroutine takes when it gives its P a cache; if that is locked the
// heap is Busy. One goroutine at a time calls it.
func readHeaps(all *census.Heaps) {
	// Before the heaps: one that is destroyed meanwhile is missing once, and is not counted
	// twice.
	gone.mu.Lock()
	all.Destroyed, all.Gone, all.GoneLarge = gone.heaps, gone.mallocs, gone.large
	gone.mu.Unlock()
	all.Ticks = ticks.Load()

	all.List = all.List[:0]
	index := map[uintptr]int{}
	for _, h := range Heaps() {
		index[h.id] = len(all.List)
		all.List = append(all.List, census.Heap{})
		if c := &all.List[len(all.List)-1]; !h.read(c) {
			delete(index, h.id)
			all.List = all.List[:len(all.List)-1]
		}
	}

	all.Large, all.Mapped, all.Space, all.Guarded = 0, 0, 0, 0
	last, c := uintptr(0), (*census.Heap)(nil)
	units := span.Walk(func(s *span.Span, tag uintptr) {
		if id := tag >> span.KindBits; id != last {
			last, c = id, nil
			if i, ok := index[id]; ok {
				c = &all.List[i]
			}
		}
		if c == nil {
			return
		}
		k := tag & span.KindMask
		if k == span.KindGuarded {
			size := atomic.LoadUintptr(&s.Size)
			all.Guarded += int64(osmem.RoundPage(size))
			c.Classes[sizeclass.Of(int(min(size, sizeclass.MaxSize)))].Carved++
			return
		}
		if k != span.KindLarge {
			k &^= span.KindSampled
			c.Classes[k].Spans++
			c.Classes[k].Carved += int64(atomic.LoadUint32(&s.Carved))
			return
		}
		c.LargeSpans++
		size, space := int64(atomic.LoadUintptr(&s.Size)), int64(s.Space)
		all.Large += size
		if space != 0 {
			all.Mapped, all.Space = all.Mapped+size, all.Space+space
		}
	})
	all.Units, all.Idle, all.Regions = int64(units.Used), int64(units.Warm), int64(units.Regions)
	all.Tails = int64(units.Tails)
}

// read reads the counts of h, and returns false if h is destroyed.
//
//go:norace
func (h *Heap) read(c *census.Heap) bool {
	race.Enter()
	defer race.Leave()
	*c = census.Heap{
		ID: uint64(h.id), Name: h.account.Name(),
		Held: h.account.Held(), Limit: h.account.Limit(),
	}
	if !h.seize.TryLock() {
		c.Busy = true
		return !h.closed.Load()
	}
	defer h.seize.Unlock()
	if h.closed.Load() {
		return false
	}
	c.Consolidations = h.consolidations.Load()
	c.LargeBlocks, c.LargeBytes, c.LargeMallocs = h.peekLarge()
	c.Mallocs = int64(h.gone.mallocs) + c.LargeMallocs
	for i := range h.classes {
		// Before the caches: a magazine that goes from the class to a cache meanwhile is missing
		// for a moment, and makes no count negative that is bounded below here.
		out, mallocs := h.classes[i].peek()
		c.Classes[i] = census.Class{Blocks: out, Mallocs: int64(mallocs + h.gone.byClass[i])}
		c.Mallocs += int64(mallocs)
	}
	sampled := h.sampledClasses() // no cache has their blocks
	for i := range sampled {
		out, mallocs := sampled[i].peek()
		c.Classes[i].Blocks += out
		c.Classes[i].Mallocs += int64(mallocs)
		c.Mallocs += int64(mallocs)
	}
	for place := range int(h.numPlaces.Load()) {
		if slot := h.caches.Installed(place); slot != 0 {
			c.Mallocs += cacheAt(slot).census(c, true)
		}
	}
	for l := h.locals; l != nil; l = l.next {
		if l.slot != 0 {
			c.Mallocs += cacheAt(l.slot).census(c, false)
		}
	}
	c.Blocks, c.Bytes = c.LargeBlocks, c.LargeBytes
	for i := range c.Classes {
		k := &c.Classes[i]
		k.Cached = max(k.Cached, 0)
		k.Blocks = max(k.Blocks-k.Cached, 0)
		c.Blocks += k.Blocks
		c.Bytes += k.Blocks * int64(sizeclass.Classes[i].Size)
	}
	c.Blocks, c.Bytes = h.checked.countsOr(c.Blocks, c.Bytes)
	// A magazine that is on its way to a cache counts as blocks, for a moment.
	c.Blocks = min(c.Blocks, c.Mallocs)
	c.Frees = c.Mallocs - c.Blocks
	return true
}

// census adds the blocks of k, which other goroutines may be using, and returns how many
// blocks it has handed out. Those are added to their classes as well if byClass is set.
//
//go:norace
func (k *cache) census(c *census.Heap, byClass bool) (mallocs int64) {
	c.Caches++
	for i := range k.classes {
		cc := &k.classes[i]
		takes := atomic.LoadInt64(&cc.takes)
		mallocs += takes
		c.Classes[i].Cached += int64(cc.cached())
		if byClass {
			c.Classes[i].Mallocs += takes
		}
	}
	return mallocs
}

// peek returns how many blocks caches and callers have, and how many calls of Malloc were
// served past a cache. The lock may be held during calls of the system, so peek does without,
// where a load of 64 bits is one instruction.
//
//go:norace
func (cl *class) peek() (out int64, mallocs uint64) {
	if bits.UintSize == 64 {
		return atomic.LoadInt64(&cl.out), atomic.LoadUint64(&cl.mallocs)
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.out, cl.mallocs
}

// peekLarge is peek of the large blocks.
//
//go:norace
func (h *Heap) peekLarge() (blocks, bytes, mallocs int64) {
	l := &h.large
	if bits.UintSize == 64 {
		return atomic.LoadInt64(&l.blocks), atomic.LoadInt64(&l.bytes), atomic.LoadInt64(&l.mallocs)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.blocks, l.bytes, l.mallocs
}

// keep adds the blocks that k has handed out, when k ends.
//
//go:norace
func (t *tally) keep(k *cache) {
	t.mallocs += k.mallocs()
	for i := range k.classes {
		t.byClass[i] += uint64(atomic.LoadInt64(&k.classes[i].takes))
	}
}

// noteGone adds the counts of h, which is being destroyed: its caches are counted as gone,
// and no goroutine is in a method but those of a Local. The caller holds seize.
//
//go:norace
func (h *Heap) noteGone() {
	gone.mu.Lock()
	defer gone.mu.Unlock()
	gone.heaps++
	_, _, large := h.peekLarge()
	gone.large += large
	for i := range h.classes {
		_, mallocs := h.classes[i].peek()
		gone.mallocs[i] += int64(mallocs + h.gone.byClass[i])
	}
	sampled := h.sampledClasses()
	for i := range sampled {
		_, mallocs := sampled[i].peek()
		gone.mallocs[i] += int64(mallocs)
	}
}
