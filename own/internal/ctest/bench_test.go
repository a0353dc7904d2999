//go:build cgo && unix

package ctest

import (
	"runtime"
	"runtime/cgo"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/own"
)

// BenchmarkCallback compares a Callback with a cgo.Handle.
func BenchmarkCallback(b *testing.B) {
	o := must(b)
	defer o.Close()
	n := 0
	f := func(unsafe.Pointer) { n++ }
	var c own.Callback[func(unsafe.Pointer)]
	data := o.ConnectThread(&c, f)
	h := cgo.NewHandle(f)
	defer h.Delete()
	const repeats = 2000
	compare(b, "do=call", repeats, func() { Repeat(data, repeats) }, func() { RepeatHandle(h, repeats) })
	const sets = 1000
	compare(b, "do=set", sets, func() {
		for range sets {
			var c own.Callback[func(unsafe.Pointer)]
			o.ConnectThread(&c, f)
			c.Clear()
		}
	}, func() {
		for range sets {
			cgo.NewHandle(f).Delete()
		}
	})
	forgotten := make([]own.Callback[func(unsafe.Pointer)], sets)
	compare(b, "do=forget", sets, func() {
		clear(forgotten)
		for i := range forgotten {
			o.ConnectThread(&forgotten[i], f)
		}
	}, func() {
		for range sets {
			cgo.NewHandle(f).Delete()
		}
	})
	for _, live := range []int{1000, 1_000_000} {
		many := make([]own.Callback[func(unsafe.Pointer)], live)
		data, handles := make([]unsafe.Pointer, live), make([]cgo.Handle, live)
		for i := range many {
			data[i] = o.ConnectThread(&many[i], f)
			handles[i] = cgo.NewHandle(f)
		}
		x := uint32(1)
		next := func() int { x = x*1664525 + 1013904223; return int(uint64(x) * uint64(live) >> 32) }
		const calls = 500
		runtime.GC()
		compare(b, "do=call/live="+strconv.Itoa(live), calls, func() {
			for range calls {
				Repeat(data[next()], 1)
			}
		}, func() {
			for range calls {
				RepeatHandle(handles[next()], 1)
			}
		})
		for i := range many {
			many[i].Clear()
			handles[i].Delete()
		}
	}
}

// compare reports the least times of two ways in rounds that take turns, for each of n.
func compare(b *testing.B, name string, n int, callback, handle func()) {
	b.Run(name, func(b *testing.B) {
		var times [2][]float64
		for b.Loop() {
			for i, f := range []func(){callback, handle} {
				start := time.Now()
				f()
				times[i] = append(times[i], float64(time.Since(start))/float64(n))
			}
		}
		runtime.GC()
		b.ReportMetric(0, "ns/op")
		least := [2]float64{slices.Min(times[0]), slices.Min(times[1])}
		b.ReportMetric(least[0], "callback-ns")
		b.ReportMetric(least[1], "handle-ns")
		b.ReportMetric(least[0]/least[1], "ratio")
		slices.Sort(times[0])
		slices.Sort(times[1])
		b.ReportMetric(times[0][len(times[0])/2]/times[1][len(times[1])/2], "ratio-of-medians")
	})
}
