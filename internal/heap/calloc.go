package heap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// Calloc is cheap.Heap.Calloc.
func (h *Heap) Calloc(count, size int) unsafe.Pointer {
	if p := h.allocZeroedCached(count, size); p != nil {
		return p
	}
	p, _ := h.allocZeroed("Heap.Calloc", nil, count, size)
	return p
}

// TryCalloc is cheap.Heap.TryCalloc.
func (h *Heap) TryCalloc(count, size int) (unsafe.Pointer, error) {
	if p := h.allocZeroedCached(count, size); p != nil {
		return p, nil
	}
	return h.allocZeroed("Heap.TryCalloc", nil, count, size)
}

// pinnedBytes is how many bytes a goroutine clears or copies at most while it is pinned.
// That takes about as long as Malloc and Free.
const pinnedBytes = 4 << 10

// allocZeroedCached is Calloc from the list of the P's cache. It returns nil if that does not
// serve.
//
//go:norace
func (h *Heap) allocZeroedCached(count, size int) unsafe.Pointer {
	n, small := smallProduct(count, size)
	if !small || n > pinnedBytes {
		return nil
	}
	var p uintptr
	slot := h.caches.Pin()
	if slot != 0 {
		p = cacheAt(slot).allocZeroed(n)
	}
	h.caches.Unpin(slot)
	return osmem.Pointer(p)
}

// smallProduct returns count × size and true, if neither is negative or above 65,535.
func smallProduct(count, size int) (n uint, ok bool) {
	return uint(count) * uint(size), uint(count)|uint(size) < 1<<16
}

// allocZeroed takes a block from the list of the class of n bytes, and clears n bytes of it.
// It returns 0 if the list has none.
//
// The block is taken and cleared by the owner of the cache, so Destroy, which seizes the
// cache, waits until it is cleared.
//
//go:norace
func (k *cache) allocZeroed(n uint) uintptr {
	cc := k.class(sizeclass.Of(int(n)))
	if race.Told || cc.due() { // the slow path tells the detector of the block before it is cleared
		return 0
	}
	p, was := cc.pop()
	if p != 0 {
		zero(p, int(n), was)
	}
	return p
}

// allocZeroed is Calloc. The cache is that of l or, if l is nil, that of the P.
func (h *Heap) allocZeroed(op string, l *Local, count, size int) (unsafe.Pointer, error) {
	n, ok := mustMul(op, count, size)
	ptr, err := h.tryAllocZeroed(op, l, n, ok)
	h.refused(n, err)
	return ptr, err
}

// tryAllocZeroed is allocZeroed of n bytes without a call of HeapOptions.OnLimit.
func (h *Heap) tryAllocZeroed(op string, l *Local, n int, ok bool) (unsafe.Pointer, error) {
	h.begin(op)
	defer h.end()
	if !ok {
		return nil, noMemory(errTooLarge)
	}
	var p uintptr
	var was block.State
	if l == nil {
		p, was = h.takeCached(n)
	}
	if p == 0 {
		var err error
		if p, was, err = h.alloc(op, l, n, sizeclass.Quantum); err != nil {
			return nil, err
		}
	}
	return zero(p, n, was), nil
}

// zero clears the first n bytes of the block at p, which had the state was as a
// free block.
//
//go:norace
func zero(p uintptr, n int, was block.State) unsafe.Pointer {
	if was&block.Zeroed != 0 {
		n = min(n, sizeclass.Quantum)
	}
	ptr := osmem.Pointer(p)
	// A block of a heap with a CheckLevel begins behind its header, so it need not begin or end
	// with a page.
	if was&block.Zeroed == 0 && n >= span.OwnMapping && span.Hollow(p, uintptr(n)) {
		return ptr // pages that the program does not touch take no memory
	}
	clear(unsafe.Slice((*byte)(ptr), n)) // the block has n bytes or more
	return ptr
}
