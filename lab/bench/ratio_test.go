//go:build cgo

package bench

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cheapgo/cheap"
)

// A work does n operations of one kind.
type work func(n int)

// A contender sets up one side of a comparison, and cleans up with the test.
type contender func(testing.TB) work

// A row is one ratio, about which there is a promise.
type row struct {
	work  string
	than  string // what it is compared with
	round func(testing.TB) func(turn int) float64
}

func (r *row) name() string { return fmt.Sprintf("work=%s/than=%s", r.work, r.than) }

// The reported ratio is the median over so many sessions of so many rounds. Each
// session sets up both sides again, because the time of a pair depends on the
// address of the block as well.
const (
	sessions = 3
	rounds   = 7
)

// rows lists the ratios.
func rows() []row {
	all := []row{
		{"pair/allocator=heap", "native", paired(200_000, heapPairs, nativePairs64)},
		{"pair/allocator=local", "cgoalloc", paired(200_000, localPairs, cgoallocPairs)},
		{"pair-2P/allocator=heap", "shared-nothing", scaling},
		{"replace/allocator=local", "native", paired(200_000, localReplace, nativeReplacing)},
		{"replace/allocator=heap", "native", paired(200_000, heapReplace, nativeReplacing)},
		{"handover/allocator=heap", "libc", paired(40, heapHandover, libcHandover)},
		{"arena/allocator=cheap", "cgoparam", paired(50_000, cheapArena, cgoparamArena)},
	}
	return slices.Concat(all, traceRows(), cgoallocRows(), cgoparamRows(), listRows())
}

// BenchmarkRatio reports each ratio as the median of paired rounds. One
// iteration is all the rounds, so -benchtime=1x is enough.
func BenchmarkRatio(b *testing.B) {
	for _, r := range rows() {
		b.Run(r.name(), func(b *testing.B) {
			runtime.LockOSThread() // malloc keeps caches by thread
			defer runtime.UnlockOSThread()
			var ratios []float64
			for b.Loop() {
				for range sessions {
					round := r.round(b)
					round(0) // fresh memory is touched, caches are filled
					for turn := range rounds {
						ratios = append(ratios, round(turn))
					}
				}
			}
			report(b, "x-"+r.than, median(ratios))
			b.ReportMetric(0, "ns/op") // not the time of anything
		})
	}
}

// paired times n operations of ours and of theirs one after the other. The first side
// changes from turn to turn.
func paired(n int, ours, theirs contender) func(testing.TB) func(turn int) float64 {
	return func(tb testing.TB) func(turn int) float64 {
		a, b := ours(tb), theirs(tb)
		return func(turn int) float64 {
			var x, y time.Duration
			if turn%2 == 0 {
				x = timed(a, n)
				y = timed(b, n)
			} else {
				y = timed(b, n)
				x = timed(a, n)
			}
			return float64(x) / float64(y)
		}
	}
}

func timed(w work, n int) time.Duration {
	start := time.Now()
	w(n)
	return time.Since(start)
}

// median returns the middle value, or the mean of the two in the middle.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	mid := len(values) / 2
	if len(values)%2 == 1 {
		return values[mid]
	}
	return (values[mid-1] + values[mid]) / 2
}

// newHeap returns a heap that must have no live blocks when tb ends.
func newHeap(tb testing.TB) *cheap.Heap {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := h.Destroy(); err != nil {
			tb.Error(err)
		}
	})
	return h
}

// newLocal returns a cache of a heap of its own.
func newLocal(tb testing.TB) *cheap.Local {
	l := newHeap(tb).NewLocal()
	tb.Cleanup(func() { l.Destroy() })
	return l
}

func TestMedian(t *testing.T) {
	if got := median([]float64{5, 1, 9}); got != 5 {
		t.Errorf("median of three is %v, want 5", got)
	}
	if got := median([]float64{4, 1, 9, 2}); got != 3 {
		t.Errorf("median of four is %v, want 3", got)
	}
}

// TestRatioRows runs each comparison once, so that a side that cannot do its work
// fails a test and not only a benchmark.
func TestRatioRows(t *testing.T) {
	for _, r := range rows() {
		t.Run(r.name(), func(t *testing.T) {
			if ratio := r.round(t)(0); !(ratio > 0) || math.IsInf(ratio, 0) {
				t.Errorf("ratio is %v", ratio)
			}
		})
	}
}
