package heap

import (
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// cachePool holds unused caches. Their memory is used for caches only, because a
// goroutine that loaded a slot before it was seized may still try its lock.
var cachePool struct {
	mu   sync.Mutex
	free []uintptr
	cold []uintptr // caches whose pages have no memory
}

// mostFree is how many unused caches keep their memory.
const mostFree = 16

// newCache returns the address of an empty cache for h. The caller holds Heap.seize.
//
//go:norace
func newCache(h *Heap) (slot uintptr, err error) {
	if err := span.Init(); err != nil {
		return 0, err // a goroutine with a cache uses the map of package span without a check
	}
	cachePool.mu.Lock()
	defer cachePool.mu.Unlock()
	for _, list := range []*[]uintptr{&cachePool.free, &cachePool.cold} {
		if n := len(*list); n > 0 {
			slot, *list = (*list)[n-1], (*list)[:n-1]
			cacheAt(slot).setHeap(h)
			return slot, nil
		}
	}
	if slot, err = span.AllocMeta(unsafe.Sizeof(cache{})); err != nil {
		return 0, err
	}
	cacheAt(slot).setHeap(h)
	return slot, nil
}

// setHeap makes k, which is empty, a cache of h.
//
//go:norace
func (k *cache) setHeap(h *Heap) {
	k.base = h.id << span.KindBits
	at := h.firstSample()
	k.room = cacheLimit - sizeclass.CacheLeast
	for c := range k.classes {
		k.classes[c].factor = block.FactorOf(k.base | uintptr(c))
		k.classes[c].sampleAt = at
	}
}

// freeCache takes back a cache that no goroutine uses and that is empty.
//
//go:norace
func freeCache(slot uintptr) {
	k := cacheAt(slot)
	clear(k.classes[:])
	k.base, k.room = 0, 0
	cachePool.mu.Lock()
	defer cachePool.mu.Unlock()
	// If percpu is portable, a goroutine that had the slot may write to its lock once more. If
	// osmem.GoBacked, osmem.Decommit is for Go memory, and caches are elsewhere.
	if len(cachePool.free) < mostFree || percpu.Portable || osmem.GoBacked || !span.Hollow(slot, span.MetaSize(unsafe.Sizeof(cache{}))) {
		cachePool.free = append(cachePool.free, slot)
	} else {
		cachePool.cold = append(cachePool.cold, slot)
	}
}

// addCache gives the current P a cache, if it has none and there is memory.
//
//go:norace
func (h *Heap) addCache() {
	h.seize.Lock()
	defer h.seize.Unlock()
	place := h.caches.Place()
	if place < 0 || h.closed.Load() || h.checked != nil {
		return
	}
	if !h.account.TryCharge(cacheBytes) {
		return
	}
	slot, err := newCache(h)
	if err != nil {
		h.account.Uncharge(cacheBytes)
		return
	}
	h.caches.Install(place, slot)
	h.numPlaces.Store(max(h.numPlaces.Load(), int32(place)+1))
}

// unpin unpins the goroutine if it uses the cache of its P, which is k and may be nil. If local is
// not nil, the goroutine uses the cache of a Local and is not pinned: unpin does nothing.
//
//go:norace
func (h *Heap) unpin(local, k *cache) {
	if local == nil {
		h.caches.Unpin(uintptr(unsafe.Pointer(k))) // it lies outside the Go heap
	}
}
