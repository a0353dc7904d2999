// Package memory has the API of modernc.org/memory, on the heap of
// github.com/cheapgo/cheap. A program that depends on modernc.org/memory, as
// modernc.org/sqlite and all users of modernc.org/libc do, uses it by a replace
// line in its go.mod; see README.md. It is a suite for the heap: there is next to nothing to
// gain for a program.
//
// # What is different
//
// An Allocator is a heap of its own, with a cache. Its bytes are counted with those
// of all heaps, so package pace knows of them.
//
// Free, Realloc and UsableSize panic with a [cheap.MisuseError] if the pointer is
// not a live block of an Allocator. The original corrupts its lists.
//
// The usable size of a block is that of [cheap.GoodSize]: above 128 bytes at
// most an eighth more than requested. In the original it is a power of two. Realloc
// to less than half of the size frees memory, and may move the block. Blocks are
// aligned to 16 bytes.
//
// Calloc of 0 bytes returns nil, as Malloc does; the slice form of the original
// faults. Realloc of a block to a negative size returns an error; the original
// returns the block as if it had that size.
//
// With the tag memory.counters, Bytes is 0 when no block is in use, as in the original.
// The heap of an Allocator keeps its records until Close, some KiB, and free blocks in
// its cache until Trim.
//
// Idle memory is released to the operating system automatically, as
// [cheap.SetDecay] says, and by Trim.
package memory

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// An Allocator allocates and frees memory. Its zero value is ready for use.
//
// Its methods must not be called by two goroutines at the same time, but UsableSize
// of a block in use may be called at any time. An Allocator may be copied, as in the
// original, if only one copy is used afterwards.
type Allocator struct {
	// The counters, which change only under the build tag memory.counters.

	Allocs int // number of blocks in use
	Bytes  int // bytes held from the system, records and caches included; 0 if no block is in use
	Mmaps  int // always 0, because mappings belong to all heaps of the program

	heap  *cheap.Heap  // nil in the zero value
	local *cheap.Local // of heap; nil in the zero value
}

// open makes the heap of an Allocator without one.
func (a *Allocator) open() error {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	a.heap, a.local = h, h.NewLocal()
	heaps.add(h)
	return nil
}

// count updates the counters, under the build tag memory.counters, after blocks were
// allocated or freed.
func (a *Allocator) count(blocks int) {
	if counters {
		a.Allocs += blocks
		a.Bytes = 0
		if a.Allocs != 0 {
			a.Bytes = int(a.heap.Stats().Held)
		}
	}
}

// UintptrMalloc is like Malloc except that it returns a uintptr.
func (a *Allocator) UintptrMalloc(size int) (uintptr, error) {
	p, err := a.UnsafeMalloc(size)
	return uintptr(p), err
}

// UintptrCalloc is like Calloc except that it returns a uintptr.
func (a *Allocator) UintptrCalloc(size int) (uintptr, error) {
	p, err := a.UnsafeCalloc(size)
	return uintptr(p), err
}

// UintptrRealloc is like Realloc except that its first argument is a uintptr,
// which UintptrMalloc, UintptrCalloc or UintptrRealloc returned, or 0.
func (a *Allocator) UintptrRealloc(p uintptr, size int) (uintptr, error) {
	q, err := a.UnsafeRealloc(cheap.Pointer(p), size)
	return uintptr(q), err
}

// UintptrFree is like Free except that its argument is a uintptr, which
// UintptrMalloc, UintptrCalloc or UintptrRealloc returned, or 0.
func (a *Allocator) UintptrFree(p uintptr) error { return a.UnsafeFree(cheap.Pointer(p)) }

// UnsafeMalloc is like Malloc except that it returns an unsafe.Pointer.
func (a *Allocator) UnsafeMalloc(size int) (unsafe.Pointer, error) {
	if size > 0 && a.local != nil {
		if p := a.local.Malloc(size); p != nil {
			a.count(1)
			return p, nil
		}
	}
	return a.mallocSlow(size, (*cheap.Local).Malloc)
}

// UnsafeCalloc is like Calloc except that it returns an unsafe.Pointer.
func (a *Allocator) UnsafeCalloc(size int) (unsafe.Pointer, error) {
	if size > 0 && a.local != nil {
		if p := calloc(a.local, size); p != nil {
			a.count(1)
			return p, nil
		}
	}
	return a.mallocSlow(size, calloc)
}

func calloc(l *cheap.Local, size int) unsafe.Pointer { return l.Calloc(1, size) }

// mallocSlow is the slow path of allocations. It makes the heap and allocates by f,
// or returns the error.
//
//go:noinline
func (a *Allocator) mallocSlow(size int, f func(*cheap.Local, int) unsafe.Pointer) (unsafe.Pointer, error) {
	if size < 0 {
		misuse("memory.Malloc", nil, fmt.Sprintf("the size %d is negative; pass 0 or more", size))
	}
	if size == 0 {
		return nil, nil
	}
	if a.local == nil {
		if err := a.open(); err != nil {
			return nil, err
		}
		if p := f(a.local, size); p != nil {
			a.count(1)
			return p, nil
		}
	}
	return nil, noMemory(size)
}

func noMemory(size int) error { return fmt.Errorf("memory: %d bytes: %w", size, cheap.ErrNoMemory) }

// UnsafeRealloc is like Realloc except that its first argument is an
// unsafe.Pointer, which UnsafeMalloc, UnsafeCalloc or UnsafeRealloc returned,
// or nil.
func (a *Allocator) UnsafeRealloc(p unsafe.Pointer, size int) (unsafe.Pointer, error) {
	switch {
	case p == nil:
		return a.UnsafeMalloc(size)
	case size == 0:
		return nil, a.UnsafeFree(p)
	case size < 0: // a size_t that is more than an int can be
		return nil, noMemory(size)
	}
	a.mustHaveHeap("memory.Realloc", p)
	q := a.local.Realloc(p, size)
	if q == nil {
		return nil, noMemory(size)
	}
	a.count(0)
	return q, nil
}

// UnsafeFree is like Free except that its argument is an unsafe.Pointer, which
// UnsafeMalloc, UnsafeCalloc or UnsafeRealloc returned, or nil. The error is
// always nil.
func (a *Allocator) UnsafeFree(p unsafe.Pointer) error {
	if p == nil {
		return nil
	}
	if a.local == nil {
		a.mustHaveHeap("memory.Free", p)
	}
	a.local.Free(p)
	a.count(-1)
	return nil
}

// mustHaveHeap panics if an Allocator is given a block, and has no heap and so no
// blocks.
func (a *Allocator) mustHaveHeap(op string, p unsafe.Pointer) {
	if a.heap == nil {
		misuse(op, p, "the Allocator has no blocks; it was closed, or another one has this block")
	}
}

func misuse(op string, p unsafe.Pointer, reason string) {
	panic(&cheap.MisuseError{Op: op, Addr: uintptr(p), Reason: reason})
}

// Trim releases the memory of all free blocks to the operating system. A program
// need not call it, because idle memory is released automatically. The error is
// always nil.
func (a *Allocator) Trim() error {
	if a.heap == nil {
		return nil
	}
	_ = a.local.Destroy() // Heap.Trim does not release the blocks of Locals
	a.heap.Trim()
	a.local = a.heap.NewLocal()
	a.count(0)
	return nil
}

// Close frees all memory, also that of blocks in use, and sets a to its zero value,
// which may be used again. The error is always nil.
//
// If an Allocator becomes unreachable without Close, its memory is never freed.
func (a *Allocator) Close() error {
	if a.heap != nil {
		heaps.remove(a.heap)
		_ = a.local.Destroy() // else the heap could not reuse the address space of its spans
		_ = a.heap.DestroyAll()
	}
	*a = Allocator{}
	return nil
}
