// Code generated from cgoalloc.tmpl by go generate. DO NOT EDIT.

//go:build cgo

package loops

import (
	"unsafe"

	"github.com/CannibalVox/cgoalloc"
	"github.com/CannibalVox/cgoparam"
)

// Original does what the benchmarks of cgoalloc do, under the names that they have there, and returns
// an error if a block is left. Original and Dropin differ in the import, as their users' programs do.
var Original = map[string]func(n int) error{
	"DefaultTemporaryData": func(n int) error {
		alloc := &cgoalloc.DefaultAllocator{}
		for range n {
			a := alloc.Malloc(64)
			alloc.Free(a)
		}
		return alloc.Destroy()
	},

	"FBATemporaryData": func(n int) error {
		alloc, err := cgoalloc.CreateFixedBlockAllocator(&cgoalloc.DefaultAllocator{}, 4096, 64, 8)
		if err != nil {
			return err
		}
		for range n {
			a := alloc.Malloc(64)
			alloc.Free(a)
		}
		return alloc.Destroy()
	},

	"ArenaTemporaryData": func(n int) error {
		alloc, err := cgoalloc.CreateFixedBlockAllocator(&cgoalloc.DefaultAllocator{}, 4096, 64, 8)
		if err != nil {
			return err
		}
		for range (n + 1) / 2 {
			arena := cgoalloc.CreateArenaAllocator(alloc)
			_ = arena.Malloc(64)
			_ = arena.Malloc(64)
			arena.FreeAll()
		}
		return alloc.Destroy()
	},

	"DefaultGrowShrink": func(n int) error {
		alloc := &cgoalloc.DefaultAllocator{}
		ptrs := make([]unsafe.Pointer, n)
		for i := range n {
			ptrs[i] = alloc.Malloc(8)
		}
		for i := range n {
			alloc.Free(ptrs[i])
		}
		return alloc.Destroy()
	},

	"FBAGrowShrink": func(n int) error {
		alloc, err := cgoalloc.CreateFixedBlockAllocator(&cgoalloc.DefaultAllocator{}, 1024*1024, 8, 8)
		if err != nil {
			return err
		}
		ptrs := make([]unsafe.Pointer, n)
		for i := range n {
			ptrs[i] = alloc.Malloc(8)
		}
		for i := range n {
			alloc.Free(ptrs[i])
		}
		return alloc.Destroy()
	},

	"MultilayerTemporaryData": func(n int) error {
		defAlloc := &cgoalloc.DefaultAllocator{}
		lowerLevel, err := cgoalloc.CreateFixedBlockAllocator(defAlloc, 256, 8, 8)
		if err != nil {
			return err
		}
		higherLevel, err := cgoalloc.CreateFixedBlockAllocator(defAlloc, 2048, 256, 8)
		if err != nil {
			return err
		}
		alloc := cgoalloc.CreateFallbackAllocator(higherLevel, defAlloc)
		alloc = cgoalloc.CreateFallbackAllocator(lowerLevel, alloc)
		for i := range n {
			a := alloc.Malloc(temporarySize(i))
			alloc.Free(a)
		}
		return alloc.Destroy()
	},

	"MultilayerGrowShrink": func(n int) error {
		defAlloc := &cgoalloc.DefaultAllocator{}
		lowerLevel, err := cgoalloc.CreateFixedBlockAllocator(defAlloc, 1024*1024, 8, 8)
		if err != nil {
			return err
		}
		higherLevel, err := cgoalloc.CreateFixedBlockAllocator(defAlloc, 32*1024*1024, 256, 8)
		if err != nil {
			return err
		}
		alloc := cgoalloc.CreateFallbackAllocator(higherLevel, defAlloc)
		alloc = cgoalloc.CreateFallbackAllocator(lowerLevel, alloc)
		ptrs := make([]unsafe.Pointer, n)
		for i := range n {
			ptrs[i] = alloc.Malloc(grownSize(i))
		}
		for i := range n {
			alloc.Free(ptrs[i])
		}
		return alloc.Destroy()
	},
}

// OriginalBatch is ArenaBatch on cgoparam, as its benchmark of a small batch.
func OriginalBatch(n int) {
	for range n {
		originalBatch()
	}
}

func originalBatch() {
	alloc := cgoparam.GetAlloc()
	defer cgoparam.ReturnAlloc(alloc)

	_ = alloc.Malloc(1)
	_ = alloc.Malloc(10)
	_ = alloc.Malloc(100)
	_ = alloc.Malloc(1000)
}

// OriginalPages is cgoparam's benchmark of blocks that do not fit in a page.
func OriginalPages(n int) {
	for range n {
		originalPages()
	}
}

func originalPages() {
	alloc := cgoparam.GetAlloc()
	defer cgoparam.ReturnAlloc(alloc)

	for range 10 {
		_ = alloc.Malloc(1000)
	}
}
