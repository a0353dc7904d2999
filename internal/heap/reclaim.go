package heap

import (
	"sync"

	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// When memory is given back: at each tick of the decay, in Trim, and at a limit. The caches of Ps
// that no longer run are found here, magazines that no cache asks for in magazine.go, Locals
// that rest in local_cache.go, and idle units in package span.

// heaps has all heaps that are not destroyed, as keys.
var heaps sync.Map

// everyHeap yields all of them.
func everyHeap(yield func(*Heap) bool) {
	heaps.Range(func(h, _ any) bool { return yield(h.(*Heap)) })
}

// Tick is called by the decay of package span, with no lock held, before the decay releases
// idle memory.
func Tick() {
	ticks.Add(1)
	for h := range heaps.Range {
		h.(*Heap).dropIdle()
		h.(*Heap).sortUnasked()
		h.(*Heap).reclaimLarge(true)
	}
	seizeLocals(everyHeap, (*localCache).rests)
}

// Trim is cheap.Trim.
func Trim() {
	seizeLocals(everyHeap, anyLocal)
	for h := range heaps.Range {
		h.(*Heap).reclaim()
		h.(*Heap).releaseSampled(true)
	}
	span.TrimAll()
	for h := range heaps.Range {
		h.(*Heap).mustBeUndamaged(0)
	}
}

// Trim is cheap.Heap.Trim.
func (h *Heap) Trim() {
	h.mustBeOpen("Heap.Trim")
	seizeLocals(func(yield func(*Heap) bool) { yield(h) }, anyLocal)
	h.reclaim()
	h.releaseSampled(true)
	span.TrimAll()
	h.mustBeUndamaged(0)
}

// reclaim gives all spans back that have no block in use.
//
//go:norace
func (h *Heap) reclaim() {
	race.Enter()
	defer race.Leave()
	h.emptyCaches()
	h.sortMagazines()
	h.reclaimLarge(false)
}

// emptyCaches empties the caches of all Ps, and asks the Locals to empty theirs. It costs
// a stop of the world. A goroutine whose requests are refused one after the other calls it
// for each, and so do others at the same time. So it is left out where no cache has a
// block, and where another goroutine has done all of it meanwhile.
//
//go:norace
func (h *Heap) emptyCaches() {
	begun := h.emptyings.Load()
	if h.locals == nil && !h.hasCached() {
		return
	}
	h.seize.Lock()
	defer h.seize.Unlock()
	if h.emptyings.Load() != begun {
		return // it began after this call, and has ended
	}
	h.emptyings.Add(1)
	for l := h.locals; l != nil; l = l.next {
		l.flush.Store(true)
	}
	if !h.hasCached() {
		return
	}
	seized := h.caches.Seize(func(int) bool { return true })
	for _, s := range seized {
		h.empty(cacheAt(s.Slot))
	}
	h.caches.Restore(seized)
}

// hasCached reports whether the cache of a P has blocks. It reads words that only the
// goroutine on the P may write, and so sees what was freed before the call. It reads them
// twice, because a list moves from one word to the other. Caches stay mapped.
//
//go:norace
func (h *Heap) hasCached() bool {
	for range 2 {
		for id := range int(h.numPlaces.Load()) {
			if slot := h.caches.Installed(id); slot != 0 && cacheAt(slot).hasBlocks() {
				return true
			}
		}
	}
	return false
}

// empty gives all blocks of k, which belongs to the caller, back to the classes.
//
//go:norace
func (h *Heap) empty(k *cache) {
	var lists [2 * sizeclass.Count]magazine
	k.takeAll(&lists)
	h.sortAll(&lists)
}

// sortAll gives the lists that takeAll took back to the classes.
//
//go:norace
func (h *Heap) sortAll(lists *[2 * sizeclass.Count]magazine) {
	for i, b := range lists {
		if b.list != 0 {
			h.classes[i/2].sort(h, b)
		}
	}
}

// dropIdle gives up the caches of Ps that no longer run because GOMAXPROCS was
// lowered. It is called at each tick, and by consolidate, with no lock held.
// It may run in a goroutine of the runtime.
//
//go:norace
func (h *Heap) dropIdle() {
	if n := int(h.numPlaces.Load()); n == 0 || !percpu.Beyond(n-1) {
		return
	}
	h.seize.Lock()
	defer h.seize.Unlock()
	most := 0
	seized := h.caches.Seize(func(place int) bool {
		if percpu.Beyond(place) {
			return true
		}
		most = place + 1
		return false
	})
	h.numPlaces.Store(int32(most))
	percpu.Drop(seized)
	for _, s := range seized {
		h.gone.keep(cacheAt(s.Slot))
		h.account.Uncharge(cacheBytes)
		h.empty(cacheAt(s.Slot))
		freeCache(s.Slot)
	}
}

// mustConsolidate reports whether to consolidate before the heap takes cost more bytes in units
// units: whether it grows beyond a bound, and no idle unit serves. The units are for class cl, and it
// reports false if that has blocks to give; or for a large block if cl is nil.
//
//go:norace
func (h *Heap) mustConsolidate(cost int64, units int, cl *class) bool {
	if h.account.Held()+cost <= h.consolidateAt.Load() || span.Warm() >= units {
		return false
	}
	if cl == nil {
		return true
	}
	cl.mu.Lock()
	empty := cl.numFull == 0 && cl.spans == 0
	cl.mu.Unlock()
	return empty
}

// consolidate sorts the free blocks at hand into their spans, so that whole spans
// become free: the blocks of one cache, local or if that is nil the one of the
// current P, and the magazines that the classes keep. Free blocks that are pages
// long give up their pages. It is called before the heap takes cost bytes that the
// process does not have yet, with no lock held: docs/decisions.md has
// the reason and the gain.
//
//go:norace
func (h *Heap) consolidate(local *cache, cost int64) {
	h.consolidations.Add(1)
	h.dropIdle()
	before := h.account.Held()
	var lists [2 * sizeclass.Count]magazine
	k := local
	if k == nil {
		k = cacheAt(h.caches.Pin())
	}
	if k != nil {
		k.takeAll(&lists)
	}
	h.unpin(local, k)
	h.sortAll(&lists)
	h.sortMagazines()
	h.reclaimLarge(false)
	for i := range h.classes {
		if sizeclass.Classes[i].Size >= releasePagesFrom {
			h.classes[i].releaseFreePages()
		}
	}
	held := h.account.Held()
	at := held + held/consolidateShare
	if held < before {
		at = max(at, before+min(cost, consolidateMost)) // it may take again what it gave back
	}
	h.consolidateAt.Store(at)
}

// releasePagesFrom is the block size, in bytes, from which consolidation releases
// the pages of free blocks.
const releasePagesFrom = 8 << 10

// Between two consolidations a heap may grow by a part, one in consolidateShare.
// If a consolidation gave spans back, the heap may also grow by what it asked
// for then, up to consolidateMost, beyond what it had before. Without that, an
// almost empty heap that is used for one size after the other would give back
// for each size what the others need.
const (
	consolidateShare = 64
	consolidateMost  = 1 << 20
)
