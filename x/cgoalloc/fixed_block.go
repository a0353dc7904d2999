//go:build cgo

package cgoalloc

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
)

// FixedBlockAllocator is an allocator of blocks of one size, cut from pages that
// it takes from an inner allocator. Malloc and Free take constant time. Malloc
// panics if the size is larger than that of the blocks. Free panics if the
// pointer is not a live block of the allocator. Empty pages are freed, but for a
// few.
//
// Only one goroutine at a time may use it.
type FixedBlockAllocator interface {
	Allocator

	// tryFree is Free that returns false, and does nothing, if ptr does not
	// point into memory of the allocator.
	tryFree(ptr unsafe.Pointer) bool

	// assignedBlockSize is the largest size that Malloc takes.
	assignedBlockSize() int
}

// CreateFixedBlockAllocator returns an allocator of blocks of blockSize bytes. It
// takes pages of at least pageSize bytes from inner. alignment must be a power of
// two, blockSize a multiple of alignment, and pageSize a multiple of blockSize;
// otherwise CreateFixedBlockAllocator returns an error, as the original does.
func CreateFixedBlockAllocator(inner Allocator, pageSize, blockSize, alignment uintptr) (FixedBlockAllocator, error) {
	if alignment == 0 || blockSize%alignment != 0 {
		return nil, errors.New("fixed block allocator: blocksize must be a multiple of alignment")
	}
	if blockSize == 0 || pageSize%blockSize != 0 {
		return nil, errors.New("fixed block allocator: pagesize must be a multiple of blocksize")
	}
	if alignment&(alignment-1) != 0 {
		return nil, errors.New("fixed block allocator: alignment must be a power of two")
	}
	if max(pageSize, blockSize) > 1<<(bits.UintSize-4) {
		return nil, fmt.Errorf("fixed block allocator: pages of %d bytes", pageSize)
	}
	a := &fixedBlockAlloc{inner: inner, pageSize: int(pageSize), align: int(alignment), blockSize: int(blockSize)}
	for {
		below, ok := a.inner.(cheap.BoundedAllocator)
		if !ok || a.chunkBound() <= below.MaxSize() {
			break
		}
		fixed, ok := below.(*fixedBlockAlloc)
		if !ok {
			return nil, fmt.Errorf("fixed block allocator: blocks of the inner allocator have at most %d bytes, pages need up to %d", below.MaxSize(), a.chunkBound())
		}
		a.inner = fixed.inner
	}
	a.reset()
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

// chunkBound is an upper bound of the size that a [cheap.FixedBlock] requests from
// its inner allocator: twice a chunk, whose size is a power of two.
func (a *fixedBlockAlloc) chunkBound() int {
	return 2 << bits.Len(uint(max(64<<10, a.pageSize, a.blockSize+a.align)-1))
}

// reset makes an allocator without a page.
func (a *fixedBlockAlloc) reset() {
	var pages cheap.Allocator = a.inner
	if _, ok := pages.(*DefaultAllocator); ok {
		pages = libc.Allocator{} // the same memory, with AlignedMalloc
	}
	a.FixedBlock = cheap.NewFixedBlock(pages, cheap.FixedBlockOptions{BlockSize: a.blockSize, Align: a.align, ChunkSize: a.pageSize})
}

// Destroy returns all pages to the inner allocator, and makes the allocator as it
// was when it was new. It returns an error, and does nothing, if there are live
// blocks.
func (a *fixedBlockAlloc) Destroy() error {
	if err := a.FixedBlock.Destroy(); err != nil {
		return fmt.Errorf("fixedblockallocator: attempted to Destroy, but not all allocations had been freed: %w", err)
	}
	a.reset()
	return nil
}

func (a *fixedBlockAlloc) tryFree(ptr unsafe.Pointer) bool {
	if !a.Contains(ptr) {
		return false
	}
	a.Free(ptr)
	return true
}

func (a *fixedBlockAlloc) assignedBlockSize() int { return a.MaxSize() }
