// Code generated from original.go by go generate. DO NOT EDIT.

//go:build cgo

package loops

import "github.com/cheapgo/cheap/x/cgoalloc"

// Dropin does what the benchmarks of cgoalloc do, under the names that they have there, and returns
// an error if a block is left. The drop-in's program differs in the import alone, as those of its users do.
var Dropin = map[string]func(n int) error{
	"DefaultTemporaryData":    on(dropinDefault, "TemporaryData"),
	"DefaultGrowShrink":       on(dropinDefault, "GrowShrink"),
	"FBATemporaryData":        on(dropinFixed(4096, 64), "TemporaryData"),
	"FBAGrowShrink":           on(dropinFixed(1<<20, 8), "GrowShrink"),
	"MultilayerTemporaryData": on(dropinLayers(256, 2048), "MultilayerTemporaryData"),
	"MultilayerGrowShrink":    on(dropinLayers(1<<20, 32<<20), "MultilayerGrowShrink"),

	"ArenaTemporaryData": func(n int) error {
		alloc, err := cgoalloc.CreateFixedBlockAllocator(&cgoalloc.DefaultAllocator{}, 4096, 64, 8)
		if err != nil {
			return err
		}
		arenas(func() arena { return cgoalloc.CreateArenaAllocator(alloc) }, n)
		return alloc.Destroy()
	},
}

func dropinDefault() (Allocator, error) { return &cgoalloc.DefaultAllocator{}, nil }

func dropinFixed(page, block uintptr) func() (Allocator, error) {
	return func() (Allocator, error) {
		return cgoalloc.CreateFixedBlockAllocator(&cgoalloc.DefaultAllocator{}, page, block, 8)
	}
}

func dropinLayers(lowerPage, higherPage uintptr) func() (Allocator, error) {
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
