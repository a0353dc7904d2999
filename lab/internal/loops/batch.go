//go:build cgo

package loops

import (
	"github.com/CannibalVox/cgoalloc"
	"github.com/CannibalVox/cgoparam"
)

// CgoparamBatch is ArenaBatch on cgoparam.
func CgoparamBatch(n int) {
	for range n {
		cgoparamBatch()
	}
}

func cgoparamBatch() {
	alloc := cgoparam.GetAlloc()
	defer cgoparam.ReturnAlloc(alloc)

	_ = alloc.Malloc(1)
	_ = alloc.Malloc(10)
	_ = alloc.Malloc(100)
	_ = alloc.Malloc(1000)
}

// MallocBatch is ArenaBatch on C's malloc and free, a cgo call for each.
func MallocBatch(n int) {
	alloc := &cgoalloc.DefaultAllocator{}
	for range n {
		a := alloc.Malloc(1)
		b := alloc.Malloc(10)
		c := alloc.Malloc(100)
		d := alloc.Malloc(1000)
		alloc.Free(d)
		alloc.Free(c)
		alloc.Free(b)
		alloc.Free(a)
	}
}

// CgoallocBatch is ArenaBatch on an allocator of cgoalloc.
func CgoallocBatch(alloc cgoalloc.Allocator, n int) {
	for range n {
		a := alloc.Malloc(1)
		b := alloc.Malloc(10)
		c := alloc.Malloc(100)
		d := alloc.Malloc(1000)
		alloc.Free(d)
		alloc.Free(c)
		alloc.Free(b)
		alloc.Free(a)
	}
}
