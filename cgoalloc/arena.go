//go:build cgo

package cgoalloc

import (
	"fmt"
	"unsafe"
)

// ArenaAllocator passes Malloc and Free on to another allocator, and remembers
// which blocks are live: FreeAll frees them all.
//
// It may be used by one goroutine at a time. For new programs, a
// [github.com/cheapgo/cheap.Arena] is several times faster, as it does not ask
// the inner allocator for each block.
type ArenaAllocator struct {
	inner Allocator

	// The live blocks, in no order: n of them in few, the others in more. Few
	// spares an arena that lives for a moment the allocation of a slice.
	few  [4]unsafe.Pointer
	n    int
	more []unsafe.Pointer

	// Where in more each block is. It is made by the first Free that does not
	// find its block at once, and kept up from then on; nil before.
	index map[unsafe.Pointer]int
}

// searched is how many of the blocks in more Free looks at without an index.
const searched = 12

// CreateArenaAllocator returns an arena over inner, which may have other users
// besides, and is not destroyed with it.
func CreateArenaAllocator(inner Allocator) *ArenaAllocator {
	return &ArenaAllocator{inner: inner}
}

// Malloc returns what the inner allocator's Malloc returns.
func (a *ArenaAllocator) Malloc(size int) unsafe.Pointer {
	p := a.inner.Malloc(size)
	if p == nil {
		return nil
	}
	if a.n < len(a.few) {
		a.few[a.n] = p
		a.n++
		return p
	}
	if a.index != nil {
		a.index[p] = len(a.more)
	}
	a.more = append(a.more, p)
	return p
}

// Free frees a block before FreeAll does, in constant time. A nil pointer is
// ignored. A pointer that is no live block of the arena panics.
func (a *ArenaAllocator) Free(ptr unsafe.Pointer) {
	if ptr == nil {
		return
	}
	if !a.forget(ptr) {
		panic("arenaallocator: attempted to free a pointer which had not been allocated with this allocator")
	}
	a.inner.Free(ptr)
}

// forget removes ptr from the live blocks, and returns false if it is none.
func (a *ArenaAllocator) forget(ptr unsafe.Pointer) bool {
	for i := range a.n {
		if a.few[i] == ptr {
			a.n--
			a.few[i] = a.few[a.n]
			a.few[a.n] = nil
			return true
		}
	}
	i, ok := a.find(ptr)
	if !ok {
		return false
	}
	last := len(a.more) - 1
	moved := a.more[last]
	a.more[i] = moved
	a.more[last] = nil
	a.more = a.more[:last]
	if a.index != nil {
		a.index[moved] = i
		delete(a.index, ptr)
	}
	return true
}

// find returns where in more ptr is.
func (a *ArenaAllocator) find(ptr unsafe.Pointer) (int, bool) {
	if a.index == nil {
		// The youngest are the likeliest.
		n := len(a.more)
		for i := n - 1; i >= max(0, n-searched); i-- {
			if a.more[i] == ptr {
				return i, true
			}
		}
		if n <= searched {
			return 0, false
		}
		// As many steps as there were Mallocs, once.
		a.index = make(map[unsafe.Pointer]int, n)
		for i, p := range a.more {
			a.index[p] = i
		}
	}
	i, ok := a.index[ptr]
	return i, ok
}

// FreeAll frees all live blocks of the arena.
func (a *ArenaAllocator) FreeAll() {
	for i := range a.n {
		a.inner.Free(a.few[i])
	}
	for _, p := range a.more {
		a.inner.Free(p)
	}
	*a = ArenaAllocator{inner: a.inner}
}

// Destroy returns an error if the arena has live blocks. There is nothing else
// that it must do: the inner allocator is its owner's to destroy.
func (a *ArenaAllocator) Destroy() error {
	if live := a.n + len(a.more); live > 0 {
		return fmt.Errorf("arenaallocator: attempted to Destroy but not all allocations have been freed: %d are left", live)
	}
	return nil
}
