//go:build cgo && unix

package bench

import (
	"flag"
	"fmt"
	"runtime"
	"testing"

	"github.com/cheapgo/cheap/cmd/cheap/internal/cside"
	"github.com/cheapgo/cheap/cmd/cheap/internal/lifetime"
)

// A lifetimeRow is one promise about the cost of owning: the wall-clock time and the
// processor time should be at most bar of theirs, and the bytes that are live in C
// at most peakBar of theirs.
type lifetimeRow struct {
	owner, than  string
	ours, theirs lifetime.Way
	malloc       string // "libc", or "jemalloc", which is preloaded
	n            int    // objects in a round, which then takes a tenth of a second or more
	bar          float64
	peakBar      float64 // 0 where theirs has one block at a time

	// The same pair under another load, with a name for it, or "".
	load  string
	procs int // the row sets GOMAXPROCS to this; 0: it leaves GOMAXPROCS as it is
}

var ownratioLong = flag.Bool("ownratio.long", false, "run BenchmarkOwnRatio with 10,000,000 objects in a round as well, for half a minute more")

// lifetimeRows lists the promises.
func lifetimeRows() []lifetimeRow {
	rows := []lifetimeRow{
		{owner: "own", than: "addcleanup", ours: lifetime.Owner, theirs: lifetime.Cleanup, malloc: "libc", n: 400_000, bar: 0.45, peakBar: 1.25},
		{owner: "make", than: "addcleanup", ours: lifetime.Make, theirs: lifetime.Cleanup, malloc: "libc", n: 400_000, bar: 0.35, peakBar: 1.25},
		{owner: "close", than: "manual", ours: lifetime.Close, theirs: lifetime.ManualObject, malloc: "libc", n: 1_000_000, bar: 1.25},
		{owner: "memory", than: "manual", ours: lifetime.Memory, theirs: lifetime.ManualObject, malloc: "libc", n: 1_000_000, bar: 0.75},
		{owner: "memory", than: "addcleanup", ours: lifetime.Memory, theirs: lifetime.Cleanup, malloc: "libc", n: 400_000, bar: 0.1, peakBar: 1.25},
		{owner: "memory", than: "go", ours: lifetime.Memory, theirs: lifetime.Arrays, malloc: "libc", n: 2_000_000, bar: 1},
		{owner: "group", than: "sixteens", ours: lifetime.Group, theirs: lifetime.Manual, malloc: "libc", n: 8_000_000, bar: 0.15},
		{owner: "own", than: "manual", ours: lifetime.Owner, theirs: lifetime.ManualObject, malloc: "jemalloc", n: 1_000_000, bar: 1.1},
		{owner: "make", than: "manual", ours: lifetime.Make, theirs: lifetime.ManualObject, malloc: "jemalloc", n: 1_000_000, bar: 0.8},
		{owner: "own", than: "manual", ours: lifetime.Owner, theirs: lifetime.ManualObject, malloc: "libc", n: 1_000_000, bar: 1.8, load: "n=1e6"},
		{owner: "make", than: "manual", ours: lifetime.Make, theirs: lifetime.ManualObject, malloc: "libc", n: 1_000_000, bar: 1.4},
		{owner: "own-inline", than: "manual", ours: lifetime.OwnerInline, theirs: lifetime.ManualObject, malloc: "jemalloc", n: 1_000_000, bar: 1.15},
		{owner: "own-inline", than: "manual", ours: lifetime.OwnerInline, theirs: lifetime.ManualObject, malloc: "libc", n: 1_000_000, bar: 1.8},
		{owner: "make-inline", than: "manual", ours: lifetime.MakeInline, theirs: lifetime.ManualObject, malloc: "libc", n: 1_000_000, bar: 1.4},
		{owner: "bare", than: "manual", ours: lifetime.Bare, theirs: lifetime.ManualObject, malloc: "libc", n: 1_000_000, bar: 0.45},
		{owner: "children", than: "own", ours: lifetime.Children, theirs: lifetime.Owner, malloc: "libc", n: 400_000, bar: 1.05},
		{
			owner: "own", than: "manual", ours: lifetime.OwnerParallel(2, false), theirs: lifetime.ManualParallel(2), malloc: "libc", n: 1_000_000, bar: 1.8,
			load: "goroutines=2", procs: 2,
		},
		{
			owner: "own-inline", than: "manual", ours: lifetime.OwnerParallel(2, true), theirs: lifetime.ManualParallel(2), malloc: "libc", n: 1_000_000, bar: 1.8,
			load: "goroutines=2", procs: 2,
		},
		{
			owner: "own", than: "addcleanup", ours: lifetime.OwnerParallel(2, false), theirs: lifetime.CleanupParallel(2), malloc: "libc", n: 400_000, bar: 0.45,
			load: "goroutines=2", procs: 2,
		},
	}
	if *ownratioLong {
		rows = append(rows, lifetimeRow{
			owner: "own", than: "manual", ours: lifetime.Owner, theirs: lifetime.ManualObject, malloc: "libc", n: 10_000_000, bar: 1.8, load: "n=1e7",
		})
	}
	return rows
}

func (r *lifetimeRow) name() string {
	name := fmt.Sprintf("malloc=%s/owner=%s/than=%s", r.malloc, r.owner, r.than)
	if r.load != "" {
		name += "/" + r.load
	}
	return name
}

// setProcs sets GOMAXPROCS as the row wants it until the returned function is called.
func (r *lifetimeRow) setProcs() (restore func()) {
	if r.procs == 0 {
		return func() {}
	}
	before := runtime.GOMAXPROCS(r.procs)
	return func() { runtime.GOMAXPROCS(before) }
}

// here reports whether the row can run in this process, which has one malloc.
func (r *lifetimeRow) here() bool { return cside.IsJemalloc() == (r.malloc == "jemalloc") }

// shares are the costs of ours, as parts of those of theirs.
type shares struct{ wall, cpu, peak []float64 }

// compare appends the shares of one round each. The first side changes from turn to
// turn.
func (s *shares) compare(tb testing.TB, ours, theirs *lifetime.Lifetime, n, turn int) {
	var x, y cost
	if turn%2 == 0 {
		x = round(tb, ours, n)
		y = round(tb, theirs, n)
	} else {
		y = round(tb, theirs, n)
		x = round(tb, ours, n)
	}
	s.wall = append(s.wall, float64(x.wall)/float64(y.wall))
	s.cpu = append(s.cpu, float64(x.cpu)/float64(y.cpu))
	s.peak = append(s.peak, float64(x.peak)/float64(y.peak))
}

// BenchmarkOwnRatio reports for each promise the medians of paired rounds. One
// iteration is all the rounds, so -benchtime=1x is enough. The promises are for
// one P and for two: -cpu=1,2. Rows with two goroutines have two Ps in any case.
//
// Rows for jemalloc run in a child process, for which it is preloaded.
func BenchmarkOwnRatio(b *testing.B) {
	for _, r := range lifetimeRows() {
		b.Run(r.name(), func(b *testing.B) {
			if !r.here() {
				inPreloaded(b, r.malloc)
				return
			}
			defer r.setProcs()()
			var s shares
			for b.Loop() {
				ours, theirs := open(b, r.ours), open(b, r.theirs)
				new(shares).compare(b, ours, theirs, r.n, 0) // fresh memory is touched
				for turn := range rounds {
					s.compare(b, ours, theirs, r.n, turn)
				}
			}
			b.ReportMetric(median(s.wall), "x-"+r.than+"-wall")
			b.ReportMetric(median(s.cpu), "x-"+r.than+"-cpu")
			b.ReportMetric(r.bar, "bar")
			if r.peakBar > 0 {
				b.ReportMetric(median(s.peak), "x-"+r.than+"-peak")
				b.ReportMetric(r.peakBar, "peak-bar")
			}
			b.ReportMetric(0, "ns/op") // not the time of anything
		})
	}
}

// BenchmarkOwnScaling reports how many objects two goroutines on two Ps own and forget in
// a second, until all are released, as a part of what one goroutine does on one P. The
// rounds of both take turns.
func BenchmarkOwnScaling(b *testing.B) {
	const n = 1_000_000
	on := func(procs int, l *lifetime.Lifetime, n int) cost {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		return round(b, l, n)
	}
	for _, o := range []struct {
		owner    string
		one, two lifetime.Way
	}{
		{"manual", lifetime.ManualObject, lifetime.ManualParallel(2)},
		{"addcleanup", lifetime.Cleanup, lifetime.CleanupParallel(2)},
		{"own", lifetime.Owner, lifetime.OwnerParallel(2, false)},
		{"own-inline", lifetime.OwnerInline, lifetime.OwnerParallel(2, true)},
	} {
		b.Run("owner="+o.owner, func(b *testing.B) {
			one, two := open(b, o.one), open(b, o.two)
			on(2, two, 2*n) // fresh memory is touched
			var ratios []float64
			for b.Loop() {
				for range rounds {
					x, y := on(2, two, 2*n), on(1, one, n)
					ratios = append(ratios, 2*float64(y.wall)/float64(x.wall))
				}
			}
			b.ReportMetric(median(ratios), "x-one-P")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestOwnRatioRows runs each comparison once with few objects, so that a side that
// does not do its work fails a test and not only a benchmark.
func TestOwnRatioRows(t *testing.T) {
	for _, r := range lifetimeRows() {
		t.Run(r.name(), func(t *testing.T) {
			if !r.here() {
				inPreloaded(t, r.malloc)
				return
			}
			defer r.setProcs()()
			var s shares
			s.compare(t, open(t, r.ours), open(t, r.theirs), 10_000, 0)
			if !(s.wall[0] > 0) {
				t.Errorf("the ratio is %v", s.wall[0])
			}
		})
	}
}

// TestOwnings runs the others, too.
func TestOwnings(t *testing.T) {
	for _, o := range ownings {
		t.Run(o.name, func(t *testing.T) {
			if c := round(t, open(t, o.way), 1000); c.wall <= 0 {
				t.Errorf("it took %v", c.wall)
			}
		})
	}
}
