//go:build cgo

package loops

import (
	"unsafe"

	"github.com/CannibalVox/cgoparam"
)

// An Allocator is one of cgoalloc, or of the drop-in for it: each call is one through an interface, as
// those of a program are that takes any of them.
type Allocator interface {
	Malloc(size int) unsafe.Pointer
	Free(block unsafe.Pointer)
	Destroy() error
}

// An arena frees its blocks together.
type arena interface {
	Malloc(size int) unsafe.Pointer
	FreeAll()
}

// loops are what the benchmarks of cgoalloc do, under the names that they have there.
var loops = map[string]func(alloc Allocator, n int){
	"TemporaryData": func(alloc Allocator, n int) {
		for range n {
			a := alloc.Malloc(64)
			alloc.Free(a)
		}
	},

	"GrowShrink": func(alloc Allocator, n int) {
		ptrs := make([]unsafe.Pointer, n)
		for i := range n {
			ptrs[i] = alloc.Malloc(8)
		}
		for i := range n {
			alloc.Free(ptrs[i])
		}
	},

	"MultilayerTemporaryData": func(alloc Allocator, n int) {
		for i := range n {
			a := alloc.Malloc(temporarySize(i))
			alloc.Free(a)
		}
	},

	"MultilayerGrowShrink": func(alloc Allocator, n int) {
		ptrs := make([]unsafe.Pointer, n)
		for i := range n {
			ptrs[i] = alloc.Malloc(grownSize(i))
		}
		for i := range n {
			alloc.Free(ptrs[i])
		}
	},

	// Without arenas, which C's malloc does not have.
	"ArenaTemporaryData": func(alloc Allocator, n int) {
		for range (n + 1) / 2 {
			a := alloc.Malloc(64)
			b := alloc.Malloc(64)
			alloc.Free(a)
			alloc.Free(b)
		}
	},
}

// arenas takes an arena for each two blocks.
func arenas(open func() arena, n int) {
	for range (n + 1) / 2 {
		a := open()
		_ = a.Malloc(64)
		_ = a.Malloc(64)
		a.FreeAll()
	}
}

// on is a loop on an allocator that open makes, which returns an error if a block is left.
func on(open func() (Allocator, error), loop string) func(n int) error {
	return func(n int) error {
		alloc, err := open()
		if err != nil {
			return err
		}
		loops[loop](alloc, n)
		return alloc.Destroy()
	}
}

// Malloc is a loop on C's malloc and free, with a cgo call for each.
func Malloc(loop string) func(n int) error { return on(originalDefault, loop) }

// BatchCgoparam is ArenaBatch on cgoparam, as its benchmark of a small batch.
func BatchCgoparam(n int) {
	for range n {
		batchCgoparam()
	}
}

func batchCgoparam() {
	alloc := cgoparam.GetAlloc()
	defer cgoparam.ReturnAlloc(alloc)

	_ = alloc.Malloc(1)
	_ = alloc.Malloc(10)
	_ = alloc.Malloc(100)
	_ = alloc.Malloc(1000)
}

// Batch is ArenaBatch on an allocator.
func Batch(alloc Allocator, n int) {
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
