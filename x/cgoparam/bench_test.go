package cgoparam

import "testing"

// The benchmarks of the original, by the same names and with the same work.

func BenchmarkCgoparamSmallBatch(b *testing.B) {
	for b.Loop() {
		smallBatch()
	}
}

func smallBatch() {
	alloc := GetAlloc()
	defer ReturnAlloc(alloc)

	_ = alloc.Malloc(1)
	_ = alloc.Malloc(10)
	_ = alloc.Malloc(100)
	_ = alloc.Malloc(1000)
}

func BenchmarkCgoparamMultipage(b *testing.B) {
	for b.Loop() {
		multipage()
	}
}

func multipage() {
	alloc := GetAlloc()
	defer ReturnAlloc(alloc)

	for range 10 {
		_ = alloc.Malloc(1000)
	}
}
