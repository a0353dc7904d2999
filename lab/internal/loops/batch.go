//go:build cgo

package loops

import "github.com/CannibalVox/cgoalloc"

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
