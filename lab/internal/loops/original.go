// Code generated from rival.tmpl by go generate. DO NOT EDIT.

//go:build cgo

package loops

import (
	"github.com/CannibalVox/cgoalloc"
	"github.com/CannibalVox/cgoparam"
)

// Original does what the benchmarks of cgoalloc do, under the names that they have there, and returns
// an error if a block is left. Original and Dropin differ in the import, as their users' programs do.
var Original = map[string]func(n int) error{
	"DefaultTemporaryData":    on(originalDefault, "TemporaryData"),
	"DefaultGrowShrink":       on(originalDefault, "GrowShrink"),
	"FBATemporaryData":        on(originalFixed(4096, 64), "TemporaryData"),
	"FBAGrowShrink":           on(originalFixed(1<<20, 8), "GrowShrink"),
	"MultilayerTemporaryData": on(originalLayers(256, 2048), "MultilayerTemporaryData"),
	"MultilayerGrowShrink":    on(originalLayers(1<<20, 32<<20), "MultilayerGrowShrink"),

	"ArenaTemporaryData": func(n int) error {
		alloc, err := cgoalloc.CreateFixedBlockAllocator(&cgoalloc.DefaultAllocator{}, 4096, 64, 8)
		if err != nil {
			return err
		}
		arenas(func() arena { return cgoalloc.CreateArenaAllocator(alloc) }, n)
		return alloc.Destroy()
	},
}

func originalDefault() (Allocator, error) { return &cgoalloc.DefaultAllocator{}, nil }

func originalFixed(page, block uintptr) func() (Allocator, error) {
	return func() (Allocator, error) {
		return cgoalloc.CreateFixedBlockAllocator(&cgoalloc.DefaultAllocator{}, page, block, 8)
	}
}

func originalLayers(lowerPage, higherPage uintptr) func() (Allocator, error) {
	return func() (Allocator, error) {
		malloc := &cgoalloc.DefaultAllocator{}
		lower, err := cgoalloc.CreateFixedBlockAllocator(malloc, lowerPage, 8, 8)
		if err != nil {
			return nil, err
		}
		higher, err := cgoalloc.CreateFixedBlockAllocator(malloc, higherPage, 256, 8)
		if err != nil {
			return nil, err
		}
		return cgoalloc.CreateFallbackAllocator(lower, cgoalloc.CreateFallbackAllocator(higher, malloc)), nil
	}
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
