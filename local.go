package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap"
)

// A Local is a cache of a [Heap] for one goroutine. It is for hot loops: it does
// not pin the goroutine to its P, and the pin is about half of the cost of
// Heap.Malloc and Heap.Free.
//
// Several goroutines must not call methods of one Local at the same time: a block may get two
// owners, and the heap panics later, as for a block that is freed twice at the same time. A
// build with -race reports that. A Local must not be copied: the heap takes the cache from
// the Local that [Heap.NewLocal] has returned.
// The blocks belong to the heap: any goroutine may free them, by the Heap or by any of its
// Locals, and they stay valid when the Local is destroyed.
//
// Destroy returns the cached blocks to the heap. If a Local becomes unreachable without
// Destroy, its cached blocks return after the next garbage collection, and are not
// available until then. If a Local is not used, its cached blocks return as idle memory
// does: see [SetDecay] and [Trim].
type Local heap.Local

// NewLocal returns a Local of h. If there is no memory for its cache, a few KiB, or
// the limit is reached, the Local has no cache and is no faster than the heap.
func (h *Heap) NewLocal() *Local { return (*Local)((*heap.Heap)(h).NewLocal()) }

// Malloc is [Heap.Malloc].
func (l *Local) Malloc(size int) unsafe.Pointer { return (*heap.Local)(l).Malloc(size) }

// TryMalloc is [Heap.TryMalloc].
func (l *Local) TryMalloc(size int) (unsafe.Pointer, error) { return (*heap.Local)(l).TryMalloc(size) }

// Free is [Heap.Free].
func (l *Local) Free(ptr unsafe.Pointer) { (*heap.Local)(l).Free(ptr) }

// Calloc is [Heap.Calloc].
func (l *Local) Calloc(count, size int) unsafe.Pointer { return (*heap.Local)(l).Calloc(count, size) }

// TryCalloc is [Heap.TryCalloc].
func (l *Local) TryCalloc(count, size int) (unsafe.Pointer, error) {
	return (*heap.Local)(l).TryCalloc(count, size)
}

// AlignedMalloc is [Heap.AlignedMalloc].
func (l *Local) AlignedMalloc(size, align int) unsafe.Pointer {
	return (*heap.Local)(l).AlignedMalloc(size, align)
}

// Realloc is [Heap.Realloc].
func (l *Local) Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer {
	return (*heap.Local)(l).Realloc(ptr, size)
}

// TryRealloc is [Heap.TryRealloc].
func (l *Local) TryRealloc(ptr unsafe.Pointer, size int) (unsafe.Pointer, error) {
	return (*heap.Local)(l).TryRealloc(ptr, size)
}

// UsableSize is [Heap.UsableSize].
func (l *Local) UsableSize(ptr unsafe.Pointer) int { return (*heap.Local)(l).UsableSize(ptr) }

// Destroy returns the cached blocks of l to the heap. Live blocks stay as they are:
// they belong to the heap. A second Destroy returns [ErrDestroyed]; any other use
// of l after Destroy panics.
func (l *Local) Destroy() error { return (*heap.Local)(l).Destroy() }
