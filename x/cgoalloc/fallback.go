//go:build cgo

package cgoalloc

import "unsafe"

// FallbackAllocator takes each block that is small enough from a
// [FixedBlockAllocator], and all others from a second allocator, which may be a
// FallbackAllocator itself.
//
// Only one goroutine at a time may use it.
type FallbackAllocator struct {
	fixedBlock FixedBlockAllocator
	fallback   Allocator

	blockSize int // fixedBlock.assignedBlockSize()

	// own is fixedBlock if that is one of this package, for calls that do not go
	// through an interface; else nil.
	own *fixedBlockAlloc
}

// CreateFallbackAllocator returns a FallbackAllocator over two allocators. Its
// Destroy destroys both.
func CreateFallbackAllocator(fixedBlock FixedBlockAllocator, fallback Allocator) *FallbackAllocator {
	own, _ := fixedBlock.(*fixedBlockAlloc)
	return &FallbackAllocator{
		fixedBlock: fixedBlock,
		fallback:   fallback,
		blockSize:  fixedBlock.assignedBlockSize(),
		own:        own,
	}
}

// Malloc returns a block of the FixedBlockAllocator. If size is too large for it,
// or it has no memory, Malloc returns a block of the other allocator.
func (a *FallbackAllocator) Malloc(size int) unsafe.Pointer {
	if size <= a.blockSize {
		if a.own != nil {
			if p := a.own.Malloc(size); p != nil {
				return p
			}
		} else if p := a.fixedBlock.Malloc(size); p != nil {
			return p
		}
	}
	return a.fallback.Malloc(size)
}

// Free frees a block of either allocator. If ptr is nil, it does nothing.
func (a *FallbackAllocator) Free(ptr unsafe.Pointer) {
	if a.own != nil {
		if a.own.Contains(ptr) {
			a.own.Free(ptr)
			return
		}
	} else if a.fixedBlock.tryFree(ptr) {
		return
	}
	a.fallback.Free(ptr)
}

// Destroy destroys the FixedBlockAllocator and then, if that succeeded, the
// other allocator.
func (a *FallbackAllocator) Destroy() error {
	if err := a.fixedBlock.Destroy(); err != nil {
		return err
	}
	return a.fallback.Destroy()
}
