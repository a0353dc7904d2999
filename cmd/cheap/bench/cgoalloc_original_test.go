//go:build cgo

package bench

import (
	"testing"
	"unsafe"

	"github.com/CannibalVox/cgoalloc"
)

// originalWorks does what the benchmarks of cgoalloc do. The file of the
// drop-in differs from this one in the import, as its users' programs do.
var originalWorks = map[string]func(testing.TB, int){
	"DefaultTemporaryData": func(b testing.TB, n int) {
		alloc := &cgoalloc.DefaultAllocator{}
		for range n {
			a := alloc.Malloc(64)
			alloc.Free(a)
		}
		done(b, alloc)
	},

	"FBATemporaryData": func(b testing.TB, n int) {
		alloc, err := cgoalloc.CreateFixedBlockAllocator(&cgoalloc.DefaultAllocator{}, 4096, 64, 8)
		if err != nil {
			b.Fatal(err)
		}
		for range n {
			a := alloc.Malloc(64)
			alloc.Free(a)
		}
		done(b, alloc)
	},

	"ArenaTemporaryData": func(b testing.TB, n int) {
		alloc, err := cgoalloc.CreateFixedBlockAllocator(&cgoalloc.DefaultAllocator{}, 4096, 64, 8)
		if err != nil {
			b.Fatal(err)
		}
		for range n / 2 {
			arena := cgoalloc.CreateArenaAllocator(alloc)
			_ = arena.Malloc(64)
			_ = arena.Malloc(64)
			arena.FreeAll()
		}
		done(b, alloc)
	},

	"DefaultGrowShrink": func(b testing.TB, n int) {
		alloc := &cgoalloc.DefaultAllocator{}
		ptrs := make([]unsafe.Pointer, n)
		for i := range n {
			ptrs[i] = alloc.Malloc(8)
		}
		for i := range n {
			alloc.Free(ptrs[i])
		}
		done(b, alloc)
	},

	"FBAGrowShrink": func(b testing.TB, n int) {
		alloc, err := cgoalloc.CreateFixedBlockAllocator(&cgoalloc.DefaultAllocator{}, 1024*1024, 8, 8)
		if err != nil {
			b.Fatal(err)
		}
		ptrs := make([]unsafe.Pointer, n)
		for i := range n {
			ptrs[i] = alloc.Malloc(8)
		}
		for i := range n {
			alloc.Free(ptrs[i])
		}
		done(b, alloc)
	},

	"MultilayerTemporaryData": func(b testing.TB, n int) {
		defAlloc := &cgoalloc.DefaultAllocator{}
		lowerLevel, err := cgoalloc.CreateFixedBlockAllocator(defAlloc, 256, 8, 8)
		if err != nil {
			b.Fatal(err)
		}
		higherLevel, err := cgoalloc.CreateFixedBlockAllocator(defAlloc, 2048, 256, 8)
		if err != nil {
			b.Fatal(err)
		}
		alloc := cgoalloc.CreateFallbackAllocator(higherLevel, defAlloc)
		alloc = cgoalloc.CreateFallbackAllocator(lowerLevel, alloc)
		for i := range n {
			size := 4
			if i%100 == 0 {
				size = 512
			} else if i%10 == 0 {
				size = 128
			}
			a := alloc.Malloc(size)
			alloc.Free(a)
		}
		done(b, alloc)
	},

	"MultilayerGrowShrink": func(b testing.TB, n int) {
		defAlloc := &cgoalloc.DefaultAllocator{}
		lowerLevel, err := cgoalloc.CreateFixedBlockAllocator(defAlloc, 1024*1024, 8, 8)
		if err != nil {
			b.Fatal(err)
		}
		higherLevel, err := cgoalloc.CreateFixedBlockAllocator(defAlloc, 32*1024*1024, 256, 8)
		if err != nil {
			b.Fatal(err)
		}
		alloc := cgoalloc.CreateFallbackAllocator(higherLevel, defAlloc)
		alloc = cgoalloc.CreateFallbackAllocator(lowerLevel, alloc)
		ptrs := make([]unsafe.Pointer, n)
		for i := range n {
			size := 4
			if i%1000 == 0 {
				size = 512
			} else if i%100 == 0 {
				size = 128
			}
			ptrs[i] = alloc.Malloc(size)
		}
		for i := range n {
			alloc.Free(ptrs[i])
		}
		done(b, alloc)
	},
}
