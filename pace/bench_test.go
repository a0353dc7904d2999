package pace

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// Benchmarks compare two ways to do the same, in rounds that take turns, and
// report the median of the ratios. One iteration is all the rounds, so
// -benchtime=1x is enough.

// ratio reports how long ours takes, of the time that theirs takes.
func ratio(b *testing.B, unit string, ours, theirs func()) {
	const rounds = 9
	timed := func(f func()) time.Duration {
		start := time.Now()
		f()
		return time.Since(start)
	}
	var ratios []float64
	for b.Loop() {
		ours()
		theirs()
		for turn := range rounds {
			var x, y time.Duration
			if turn%2 == 0 {
				x, y = timed(ours), timed(theirs)
			} else {
				y, x = timed(theirs), timed(ours)
			}
			ratios = append(ratios, float64(x)/float64(y))
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], unit)
	b.ReportMetric(0, "ns/op") // not the time of anything
}

// BenchmarkChurn compares buffers that are forgotten with Heap.Malloc, write and
// Free: written by a loop, and by the fastest means, to which a block that was
// freed just now is still in the processor's cache.
func BenchmarkChurn(b *testing.B) {
	for _, row := range []struct {
		write string
		f     func([]byte)
		size  int
	}{
		{"loop", loop, 64 * kib},
		{"loop", loop, mib},
		{"loop", loop, 4 * mib},
		{"clear", func(b []byte) { clear(b) }, mib},
	} {
		size := row.size
		b.Run(fmt.Sprintf("write=%s/size=%dKiB", row.write, size/kib), func(b *testing.B) {
			was := writer
			writer = row.f
			defer func() { writer = was }()
			start(b, Options{})
			all := newBuffers()
			n := scaled(1<<10, 128) * mib / size
			ratio(b, "x-Heap", func() { all.churn(n, size) }, func() {
				var live [8]unsafe.Pointer
				for i := range n {
					if i >= 8 {
						all.heap.Free(live[i%8])
					}
					p := all.heap.Malloc(size)
					fill(p, size)
					live[i%8] = p
				}
				for i := range min(n, 8) {
					all.heap.Free(live[i])
				}
			})
			st := ReadStats()
			b.ReportMetric(float64(st.Cycles), "cycles")
			b.ReportMetric(float64(st.WaitTime.Milliseconds()), "waited-ms")
		})
	}
}

// BenchmarkGrowth reports the share of all processors' time that collections
// take while 1 GiB comes to live.
func BenchmarkGrowth(b *testing.B) {
	for b.Loop() {
		start(b, Options{})
		all := newBuffers()
		begin := time.Now()
		live := all.grow(scaled(1<<10, 256), mib)
		took := time.Since(begin)
		st := ReadStats()
		Stop()
		b.ReportMetric(100*float64(st.CPUTime)/float64(took)/float64(runtime.GOMAXPROCS(0)), "%-of-time")
		b.ReportMetric(float64(st.Cycles), "cycles")
		for _, m := range live {
			m.Close()
		}
	}
}

// BenchmarkOnlyGo compares a program that has nothing outside the Go heap with
// itself, without Start.
func BenchmarkOnlyGo(b *testing.B) {
	ratio(b, "x-unpaced", func() {
		testcall.Must(b, Start(Options{}))
		onlyGo(3000)
		Stop()
	}, func() { onlyGo(3000) })
}

// BenchmarkAdd measures the cost for a binding that reports sizes.
func BenchmarkAdd(b *testing.B) {
	for _, paced := range []bool{false, true} {
		b.Run(fmt.Sprintf("paced=%v", paced), func(b *testing.B) {
			if paced {
				start(b, Options{Limit: 1 << 40})
			}
			a := newAccount(b, AccountOptions{})
			for b.Loop() {
				testcall.Must(b, a.Add(4096))
				a.Remove(4096)
			}
		})
	}
}
