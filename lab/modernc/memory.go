// Package memory has the functions of modernc.org/memory that modernc.org/libc calls, on a heap of
// package cheap. By a replace line all memory of modernc.org/sqlite is from that heap. It is for the
// suite in sqlitetest: there is next to nothing to gain for a program.
package memory

import (
	"fmt"
	"sync"

	"github.com/cheapgo/cheap"
)

// heap is that of all Allocators.
var heap = sync.OnceValue(func() *cheap.Heap {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		panic(err) // the program has no memory to begin with
	}
	return h
})

// An Allocator allocates and frees memory, in one goroutine at a time. Its zero value is ready for
// use.
type Allocator struct {
	Allocs, Bytes, Mmaps int // counters of the original, which stay 0

	local *cheap.Local // nil in the zero value
}

// open returns the Local of an Allocator.
func (a *Allocator) open() *cheap.Local {
	if a.local == nil {
		a.local = heap().NewLocal()
	}
	return a.local
}

// UintptrMalloc returns a block, or 0 if size is 0.
func (a *Allocator) UintptrMalloc(size int) (uintptr, error) {
	if size == 0 {
		return 0, nil
	}
	if p := a.open().Malloc(size); p != nil {
		return uintptr(p), nil
	}
	return 0, noMemory(size)
}

// UintptrCalloc returns a block of zeros, or 0 if size is 0.
func (a *Allocator) UintptrCalloc(size int) (uintptr, error) {
	if size == 0 {
		return 0, nil
	}
	if p := a.open().Calloc(1, size); p != nil {
		return uintptr(p), nil
	}
	return 0, noMemory(size)
}

// UintptrRealloc resizes a block. If p is 0 it allocates, and if size is 0 it frees.
func (a *Allocator) UintptrRealloc(p uintptr, size int) (uintptr, error) {
	switch {
	case p == 0:
		return a.UintptrMalloc(size)
	case size == 0:
		return 0, a.UintptrFree(p)
	case size < 0: // a size_t that is more than an int can be
		return 0, noMemory(size)
	}
	q := a.open().Realloc(cheap.Pointer(p), size)
	if q == nil {
		return 0, noMemory(size)
	}
	return uintptr(q), nil
}

// UintptrFree frees a block, or nothing if p is 0.
func (a *Allocator) UintptrFree(p uintptr) error {
	a.open().Free(cheap.Pointer(p))
	return nil
}

// UintptrUsableSize returns how many bytes a block has, 0 if p is 0.
func UintptrUsableSize(p uintptr) int {
	if p == 0 {
		return 0
	}
	return heap().UsableSize(cheap.Pointer(p))
}

func noMemory(size int) error { return fmt.Errorf("memory: %d bytes: %w", size, cheap.ErrNoMemory) }
