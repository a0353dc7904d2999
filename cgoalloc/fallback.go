//go:build cgo

package cgoalloc

import "unsafe"

// FallbackAllocator sends each Malloc that fits in a block of its
// [FixedBlockAllocator] there, and all others to a second allocator, which may
// be a FallbackAllocator itself.
//
// It may be used by one goroutine at a time.
type FallbackAllocator struct {
	fixedBlock FixedBlockAllocator
	fallback   Allocator

	blockSize int              // fixedBlock.assignedBlockSize()
	own       *fixedBlockAlloc // fixedBlock if it is one of this package, for calls without an interface; or nil
}

// CreateFallbackAllocator returns a FallbackAllocator over the two, which it
// destroys with itself.
func CreateFallbackAllocator(fixedBlock FixedBlockAllocator, fallback Allocator) *FallbackAllocator {
	own, _ := fixedBlock.(*fixedBlockAlloc)
	return &FallbackAllocator{
		fixedBlock: fixedBlock,
		fallback:   fallback,
		blockSize:  fixedBlock.assignedBlockSize(),
		own:        own,
	}
}

// Malloc returns a block of the FixedBlockAllocator, or, if size does not fit
// there or it has no memory, one of the other allocator.
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

// Free gives a block back to the allocator that it came from. A nil pointer is
// ignored.
func (a *FallbackAllocator) Free(ptr unsafe.Pointer) {
	if a.own != nil {
		if a.own.Owns(ptr) {
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
