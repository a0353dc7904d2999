package memory

import (
	"unsafe"

	"github.com/cheapgo/cheap"
)

// page is the size of the largest pages that are common.
const page = 16 << 10

var heap = func() *cheap.Heap {
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: "arrow"})
	if err != nil {
		panic(err)
	}
	return h
}()

// A GoAllocator has its buffers outside the Go heap. One of a page or more begins and ends at a page.
type GoAllocator struct{}

func NewGoAllocator() *GoAllocator { return &GoAllocator{} }

func (a *GoAllocator) Allocate(size int) []byte {
	if size == 0 {
		return []byte{}
	}
	align := alignment
	if size >= page {
		align = page
	}
	n := (size + align - 1) &^ (align - 1)
	p := heap.Calloc(1, n) // a block whose size is a multiple of 64 is aligned to 64
	if p != nil && uintptr(p)&uintptr(align-1) != 0 {
		heap.Free(p)
		if p = heap.AlignedMalloc(n, align); p != nil {
			clear(unsafe.Slice((*byte)(p), n))
		}
	}
	if p == nil {
		panic(cheap.ErrNoMemory)
	}
	return unsafe.Slice((*byte)(p), n)[:size:size]
}

func (a *GoAllocator) Reallocate(size int, b []byte) []byte {
	if cap(b) >= size {
		return b[:size]
	}
	grown := a.Allocate(size)
	copy(grown, b)
	a.Free(b)
	return grown
}

// Free leaves what is not of the heap to the collector.
func (a *GoAllocator) Free(b []byte) {
	if p := unsafe.Pointer(unsafe.SliceData(b)); heap.Owns(p) {
		heap.Free(p)
	}
}

var _ Allocator = (*GoAllocator)(nil)
