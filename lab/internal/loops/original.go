//go:build cgo

package loops

import "github.com/CannibalVox/cgoalloc"

// Original does what the benchmarks of cgoalloc do, under the names that they have there, and returns
// an error if a block is left. The drop-in's program differs in the import alone, as those of its users do.
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
