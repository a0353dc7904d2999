package leaktest

import (
	"testing"

	"github.com/cheapgo/cheap/internal/watch/census"
)

// Benchmark has a benchmark report what C allocates for each operation, from this call on until it ends: C-B/op and
// C-allocs/op, beside the B/op and allocs/op of Go, in the format that benchstat reads. The program must import package
// cmem, which counts the calls of malloc and its like, and the bytes that they ask for:
//
//	import _ "github.com/cheapgo/cheap/cmem"
//
//	func BenchmarkDecode(b *testing.B) {
//		leaktest.Benchmark(b)
//		for b.Loop() {
//			decode(image)
//		}
//	}
//
// What other goroutines and threads allocate meanwhile counts as well, and so do parts for which the timer is stopped.
// What is allocated before the call does not count. The counts are exact, and cost the benchmark nothing that the import does
// not. Where package cmem does nothing, Benchmark logs why, and nothing is reported.
//
// It is not in package cmem so that programs which import that do not have package testing in them.
func Benchmark(b *testing.B) {
	b.Helper()
	heap := census.C()
	if heap == nil {
		b.Fatalf(`leaktest: Benchmark: nothing counts the memory of C; import _ "github.com/cheapgo/cheap/cmem" in the test`)
	}
	if why := heap.Off(); why != "" {
		b.Logf("leaktest: Benchmark: the memory of C is not counted: %s", why)
		return
	}
	before := heap.Read()
	b.Cleanup(func() {
		now := heap.Read()
		b.ReportMetric(float64(now.Bytes-before.Bytes)/float64(b.N), "C-B/op")
		b.ReportMetric(float64(now.Mallocs-before.Mallocs)/float64(b.N), "C-allocs/op")
	})
}
