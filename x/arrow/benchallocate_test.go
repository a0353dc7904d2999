//go:build cgo

package cheaparrow_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/memory/mallocator"
	cheaparrow "github.com/cheapgo/cheap/x/arrow"
)

type allocatorRow struct {
	name string
	mem  memory.Allocator
}

// The allocators that are compared, ours first.
var allocators = []allocatorRow{
	{"cheap", cheaparrow.Allocator{}},
	{"go", memory.NewGoAllocator()},
	{"mallocator", mallocator.NewMallocator()},
}

var rounds = flag.Int("rounds", 3, "rounds of a benchmark that compares; the allocators take turns, and medians are reported")

// BenchmarkAllocateFree allocates and frees a buffer, with each allocator in turn,
// and reports the time of ours divided by that of the others. All of them clear the
// buffer.
func BenchmarkAllocateFree(b *testing.B) {
	for _, size := range []int{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			// About the same number of bytes for each size, and the same time for
			// each round.
			n := min(100_000, max(20, 64<<20/size))
			times := make([][]float64, len(allocators))
			for b.Loop() {
				for range *rounds {
					for i, a := range allocators {
						start := time.Now()
						for range n {
							a.mem.Free(a.mem.Allocate(size))
						}
						times[i] = append(times[i], float64(time.Since(start))/float64(n))
					}
				}
			}
			report(b, times)
		})
	}
}

// report reports the time of ours, and its ratio to each of the others.
func report(b *testing.B, times [][]float64) {
	b.ReportMetric(0, "ns/op") // not the time of anything
	ours := median(times[0])
	b.ReportMetric(ours, "cheap-ns")
	for i, a := range allocators[1:] {
		b.ReportMetric(ours/median(times[i+1]), "cheap/"+a.name)
	}
}

func median(xs []float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	return (xs[len(xs)/2] + xs[(len(xs)-1)/2]) / 2
}
