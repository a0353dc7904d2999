//go:build cgo

package cgoalloc

import (
	"fmt"
	"unsafe"
)

// ArenaAllocator calls an inner allocator for Malloc and Free, and records which
// blocks are live. FreeAll frees all of them.
//
// Only one goroutine at a time may use it. New programs use a
// [github.com/cheapgo/cheap.Arena], which is several times faster, because it
// does not call the inner allocator for each block.
type ArenaAllocator struct {
	inner Allocator

	// The live blocks, unordered: n of them in few, the others in more. An arena
	// with few blocks does not allocate a slice.
	few  [4]unsafe.Pointer
	n    int
	more []unsafe.Pointer

	// index has the position of each block in more. It is nil until a Free does
	// not find its block among the last ones of more.
	index map[unsafe.Pointer]int
}

// searched is the number of blocks in more that Free searches without an index.
const searched = 12

// CreateArenaAllocator returns an arena over inner, which may have other users,
// and is not destroyed with the arena.
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

// Free frees a block, in constant time. If ptr is nil, it does nothing. It panics
// if ptr is not a live block of the arena.
func (a *ArenaAllocator) Free(ptr unsafe.Pointer) {
	if ptr == nil {
		return
	}
	if !a.forget(ptr) {
		panic("arenaallocator: attempted to free a pointer which had not been allocated with this allocator")
	}
	a.inner.Free(ptr)
}

// forget removes ptr from the live blocks. It returns false if ptr is not one.
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

// find returns the position of ptr in more.
func (a *ArenaAllocator) find(ptr unsafe.Pointer) (int, bool) {
	if a.index == nil {
		// The youngest blocks are the likeliest.
		n := len(a.more)
		for i := n - 1; i >= max(0, n-searched); i-- {
			if a.more[i] == ptr {
				return i, true
			}
		}
		if n <= searched {
			return 0, false
		}
		// This takes a step for each block, once.
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

// Destroy returns an error if the arena has live blocks. It does nothing else: the
// inner allocator is not destroyed.
func (a *ArenaAllocator) Destroy() error {
	if live := a.n + len(a.more); live > 0 {
		return fmt.Errorf("arenaallocator: attempted to Destroy but not all allocations have been freed: %d are left", live)
	}
	return nil
}
