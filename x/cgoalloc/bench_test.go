//go:build cgo

package cgoalloc

import (
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// The benchmarks of the original, by the same names and with the same work.

func newFixedBlock(b *testing.B, pageSize, blockSize uintptr) FixedBlockAllocator {
	a, err := CreateFixedBlockAllocator(&DefaultAllocator{}, pageSize, blockSize, 8)
	testcall.Must(b, err)
	return a
}

func destroy(b *testing.B, a Allocator) {
	testcall.Want(b, a.Destroy())
}

func multilayer(b *testing.B, lowerPage, higherPage uintptr) Allocator {
	a := CreateFallbackAllocator(newFixedBlock(b, higherPage, 256), &DefaultAllocator{})
	return CreateFallbackAllocator(newFixedBlock(b, lowerPage, 8), a)
}

func BenchmarkDefaultTemporaryData(b *testing.B) {
	alloc := &DefaultAllocator{}
	defer destroy(b, alloc)

	for i := 0; i < b.N; i++ {
		a := alloc.Malloc(64)
		alloc.Free(a)
	}
}

func BenchmarkFBATemporaryData(b *testing.B) {
	alloc := newFixedBlock(b, 4096, 64)
	defer destroy(b, alloc)

	for i := 0; i < b.N; i++ {
		a := alloc.Malloc(64)
		alloc.Free(a)
	}
}

func BenchmarkArenaTemporaryData(b *testing.B) {
	alloc := newFixedBlock(b, 4096, 64)
	defer destroy(b, alloc)

	for i := 0; i < b.N/2; i++ {
		arena := CreateArenaAllocator(alloc)
		_ = arena.Malloc(64)
		_ = arena.Malloc(64)
		arena.FreeAll()
	}
}

func BenchmarkDefaultGrowShrink(b *testing.B) {
	alloc := &DefaultAllocator{}
	defer destroy(b, alloc)

	ptrs := make([]unsafe.Pointer, b.N)

	for i := 0; i < b.N; i++ {
		ptrs[i] = alloc.Malloc(8)
	}

	for i := 0; i < b.N; i++ {
		alloc.Free(ptrs[i])
	}
}

func BenchmarkFBAGrowShrink(b *testing.B) {
	alloc := newFixedBlock(b, 1024*1024, 8)
	defer destroy(b, alloc)

	ptrs := make([]unsafe.Pointer, b.N)

	for i := 0; i < b.N; i++ {
		ptrs[i] = alloc.Malloc(8)
	}

	for i := 0; i < b.N; i++ {
		alloc.Free(ptrs[i])
	}
}

func BenchmarkMultilayerTemporaryData(b *testing.B) {
	alloc := multilayer(b, 256, 2048)
	defer destroy(b, alloc)

	for i := 0; i < b.N; i++ {
		size := 4
		if i%100 == 0 {
			size = 512
		} else if i%10 == 0 {
			size = 128
		}
		a := alloc.Malloc(size)
		alloc.Free(a)
	}
}

func BenchmarkMultilayerGrowShrink(b *testing.B) {
	alloc := multilayer(b, 1024*1024, 32*1024*1024)
	defer destroy(b, alloc)

	ptrs := make([]unsafe.Pointer, b.N)
	for i := 0; i < b.N; i++ {
		size := 4
		if i%1000 == 0 {
			size = 512
		} else if i%100 == 0 {
			size = 128
		}
		ptrs[i] = alloc.Malloc(size)
	}

	for i := 0; i < b.N; i++ {
		alloc.Free(ptrs[i])
	}
}
