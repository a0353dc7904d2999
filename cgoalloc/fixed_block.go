//go:build cgo

package cgoalloc

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
)

// FixedBlockAllocator hands out blocks of one size, which it cuts off pages that
// it takes from another allocator. A Malloc of more than that size panics. Both
// ways take constant time, and pages that are empty go back, but for some.
//
// It may be used by one goroutine at a time. Free panics if it is given what is
// no live block.
type FixedBlockAllocator interface {
	Allocator

	// tryFree is Free that returns false, and does nothing, if ptr does not
	// point into memory of the allocator.
	tryFree(ptr unsafe.Pointer) bool

	// assignedBlockSize is the largest size that Malloc takes.
	assignedBlockSize() int
}

// CreateFixedBlockAllocator returns an allocator of blocks of blockSize bytes,
// which must be a multiple of alignment, a power of two. Pages of at least
// pageSize bytes, which must be a multiple of blockSize, come from inner.
func CreateFixedBlockAllocator(inner Allocator, pageSize, blockSize, alignment uintptr) (FixedBlockAllocator, error) {
	if alignment == 0 || blockSize%alignment != 0 {
		return nil, errors.New("fixed block allocator: blocksize must be a multiple of alignment")
	}
	if blockSize == 0 || pageSize%blockSize != 0 {
		return nil, errors.New("fixed block allocator: pagesize must be a multiple of blocksize")
	}
	if pageSize > math.MaxInt || blockSize > math.MaxInt {
		return nil, fmt.Errorf("fixed block allocator: pages of %d bytes", pageSize)
	}
	a := &fixedBlockAlloc{inner: inner, pageSize: int(pageSize), align: int(alignment), blockSize: int(blockSize)}
	if err := a.reset(); err != nil {
		return nil, fmt.Errorf("fixed block allocator: %w", err)
	}
	return a, nil
}

// fixedBlockAlloc is the FixedBlockAllocator of this package.
type fixedBlockAlloc struct {
	*cheap.FixedBlock

	inner     Allocator
	pageSize  int
	align     int
	blockSize int
}

// reset makes an allocator without a page.
func (a *fixedBlockAlloc) reset() (err error) {
	for inner := a.inner; ; {
		var pages cheap.Allocator = inner
		if _, ok := inner.(*DefaultAllocator); ok {
			pages = libc.Allocator{} // the same memory, and it can align
		}
		a.FixedBlock, err = cheap.NewFixedBlock(pages, a.blockSize, a.align, a.pageSize)
		below, ok := inner.(*fixedBlockAlloc)
		if err == nil || !ok {
			return err
		}
		inner = below.inner // blocks of this one are too small for a page
	}
}

// Destroy gives all pages back to the inner allocator, or returns an error if
// there are live blocks. The allocator is then as when it was new.
func (a *fixedBlockAlloc) Destroy() error {
	if err := a.FixedBlock.Destroy(); err != nil {
		return fmt.Errorf("fixedblockallocator: attempted to Destroy, but not all allocations had been freed: %w", err)
	}
	return a.reset()
}

func (a *fixedBlockAlloc) tryFree(ptr unsafe.Pointer) bool {
	if !a.Owns(ptr) {
		return false
	}
	a.Free(ptr)
	return true
}

func (a *fixedBlockAlloc) assignedBlockSize() int { return a.MaxSize() }
