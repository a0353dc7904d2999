// Package memory has the API of modernc.org/memory, on the heap of
// github.com/cheapgo/cheap. A program that depends on modernc.org/memory, as
// modernc.org/sqlite and all that modernc.org/libc carries do, gets it by a
// replace line in its go.mod; see README.md.
//
// # What is different
//
// An Allocator is a heap of its own, with a cache for whoever uses it. Its
// bytes are counted with those of all heaps, so package pace knows of them.
//
// A block freed twice, and a pointer that no Allocator gave out, panic with a
// [cheap.MisuseError], where the original corrupts its lists. So do such
// pointers given to Realloc and UsableSize.
//
// Usable sizes are those of [cheap.RoundUp], at most an eighth more than was
// asked for above 128 bytes, where the original's are powers of two. Realloc to
// less than half gives memory back, and may move the block. Blocks are aligned
// to 16 bytes.
//
// Calloc of 0 bytes returns nil, as Malloc does; the slice form of the original
// faults there. Realloc of a block to a negative size is an error; the original
// returns the block as if it had the size.
//
// Memory that is idle goes back to the system by itself, as [cheap.SetDecay]
// says, and at Trim.
package memory

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// An Allocator allocates and frees memory. Its zero value is ready for use.
//
// Its methods must not be called by two goroutines at the same time; UsableSize
// of a block in use may be called at any time. An Allocator may be copied, like
// the original's, if only one copy is used on.
type Allocator struct {
	// The counters, which change only under the build tag memory.counters.

	Allocs int // blocks in use
	Bytes  int // held from the system, records and caches included
	Mmaps  int // always 0: the mappings belong to all heaps of the program

	heap  *cheap.Heap  // nil in the zero value
	local *cheap.Local // of heap; nil in the zero value
}

// open makes the heap of an Allocator that has none.
func (a *Allocator) open() error {
	h, err := cheap.NewHeap(cheap.Options{})
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	a.heap, a.local = h, h.NewLocal()
	heaps.add(h)
	return nil
}

// count keeps the counters, where there are any, after blocks came or went.
func (a *Allocator) count(blocks int) {
	if counters {
		a.Allocs += blocks
		a.Bytes = int(a.heap.Stats().Held)
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
	q, err := a.UnsafeRealloc(pointer(p), size)
	return uintptr(q), err
}

// UintptrFree is like Free except that its argument is a uintptr, which
// UintptrMalloc, UintptrCalloc or UintptrRealloc returned, or 0.
func (a *Allocator) UintptrFree(p uintptr) error { return a.UnsafeFree(pointer(p)) }

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

// mallocSlow allocates by f where the Allocator has no heap yet, and says why
// there is no block.
//
//go:noinline
func (a *Allocator) mallocSlow(size int, f func(*cheap.Local, int) unsafe.Pointer) (unsafe.Pointer, error) {
	if size < 0 {
		panic(fmt.Sprintf("memory: negative size %d", size))
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

// mustHaveHeap panics where an Allocator is given a block and has never given
// out any.
func (a *Allocator) mustHaveHeap(op string, p unsafe.Pointer) {
	if a.heap == nil {
		misuse(op, p, "the Allocator has no blocks; was it closed?")
	}
}

func misuse(op string, p unsafe.Pointer, reason string) {
	panic(&cheap.MisuseError{Op: op, Addr: uintptr(p), Reason: reason})
}

// Trim gives the memory of all free blocks back to the system. It is never
// needed: memory that stays idle goes back by itself. The error is always nil.
func (a *Allocator) Trim() error {
	if a.heap == nil {
		return nil
	}
	a.local.Close() // Heap.Trim leaves the blocks of Locals alone
	a.heap.Trim()
	a.local = a.heap.NewLocal()
	a.count(0)
	return nil
}

// Close gives all memory back to the system, that of blocks in use included,
// and sets a to its zero value, which may be used again. The error is always
// nil.
//
// An Allocator that is dropped without Close stays.
func (a *Allocator) Close() error {
	if a.heap != nil {
		heaps.remove(a.heap)
		a.local.Close() // or the heap would abandon the address space of its spans
		a.heap.DestroyAll()
	}
	*a = Allocator{}
	return nil
}

// pointer returns p as a pointer. It is for addresses outside the Go heap, which
// the collector does not follow: blocks of an Allocator. Written as a
// conversion it is what vet calls a possible misuse.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
