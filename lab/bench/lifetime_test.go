//go:build cgo && unix

package bench

import (
	"runtime"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/cside"
	"github.com/cheapgo/cheap/lab/internal/lifetime"
	"github.com/cheapgo/cheap/own"
)

// ownings are the ways to own blocks of C that are compared.
var ownings = []struct {
	name string
	way  lifetime.Way
}{
	{"manual", lifetime.ManualObject},
	{"bulk", lifetime.Bulk},
	{"addcleanup", lifetime.Cleanup},
	{"setfinalizer", lifetime.Finalizer},
	{"own", lifetime.Owner},
	{"own-inline", lifetime.OwnerInline},
	{"make", lifetime.Make},
	{"make-inline", lifetime.MakeInline},
	{"close", lifetime.Close},
	{"memory", lifetime.Memory},
	{"go", lifetime.Arrays},
	{"group", lifetime.Group},
	{"sixteens", lifetime.Manual}, // sixteen blocks by hand; an object for them would not matter, so there is none
}

// open opens a lifetime, which ends with the test.
func open(tb testing.TB, way lifetime.Way) *lifetime.Lifetime {
	tb.Helper()
	l, err := way()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Error(err)
		}
	})
	return l
}

// newPool returns a pool of blocks, which is destroyed with the test.
func newPool(tb testing.TB) *own.Pool {
	p := lifetime.NewPool()
	tb.Cleanup(func() {
		if err := lifetime.ClosePool(p); err != nil {
			tb.Error(err)
		}
	})
	return p
}

// settle runs collections until all resources of objects are released.
func settle(tb testing.TB, l *lifetime.Lifetime) {
	tb.Helper()
	if err := l.Settle(); err != nil {
		tb.Fatal(err)
	}
}

// A cost is that of a round.
type cost struct {
	wall, cpu time.Duration
	peak      int64 // most bytes of C that were live at once
}

// round does n lifetimes. It ends when C has counted every destruction; the
// collections for that are on the clock. Before the clock starts, the previous round
// has left nothing.
func round(tb testing.TB, l *lifetime.Lifetime, n int) cost {
	settle(tb, l)
	runtime.GC() // the first collection swept what the last round left
	cside.ResetPeak()
	if l.Peak != nil {
		l.Peak()
	}
	l.Begin()
	cpu, start := cside.CPUTime(), time.Now()
	l.Run(n)
	settle(tb, l)
	c := cost{wall: time.Since(start), cpu: cside.CPUTime() - cpu}
	if l.Peak != nil {
		c.peak = l.Peak()
	} else {
		c.peak = cside.Count().Peak
	}
	if err := l.Check(n); err != nil {
		tb.Error(err)
	}
	return c
}

// BenchmarkForget makes objects and drops them. The time is that of an object,
// until C has destroyed the last block; next to it stand the process's CPU time
// and the most bytes of C that were live at once.
func BenchmarkForget(b *testing.B) {
	for _, o := range ownings {
		b.Run("owner="+o.name, func(b *testing.B) {
			l := open(b, o.way)
			b.ResetTimer()
			c := round(b, l, b.N)
			b.ReportMetric(float64(c.wall.Nanoseconds())/float64(b.N), "ns/op") // without the quiet before
			b.ReportMetric(float64(c.cpu.Nanoseconds())/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(c.peak)/(1<<20), "peak-MiB")
		})
	}
}

// BenchmarkForgetParallel makes objects and drops them on every P. Run it with
// -cpu=1,2. The time is that of making. Releases run at the same time, and the
// benchmark does not wait for the last ones.
func BenchmarkForgetParallel(b *testing.B) {
	var p *own.Pool
	for _, o := range []struct {
		owner string
		make  func() any
	}{
		{"manual", func() any {
			o := lifetime.NewPlain()
			cside.Destroy(o.Block)
			return o
		}},
		{"addcleanup", func() any { return lifetime.NewWithCleanup() }},
		{"own", func() any { return lifetime.NewOwned(p) }},
	} {
		b.Run("owner="+o.owner, func(b *testing.B) {
			p = newPool(b)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				sink := new([16]any) // on lines of its own
				for pb.Next() {
					sink[8] = o.make()
				}
			})
			b.StopTimer()
			settle(b, open(b, lifetime.Manual))
		})
	}
}
