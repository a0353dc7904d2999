//go:build cgo && unix

package bench

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/cside"
	"github.com/cheapgo/cheap/lab/internal/lifetime"
)

// A lifetimeRow compares the costs of two ways to own. There is a promise about the wall-clock
// time and about the processor time, and with peak about the bytes that are live in C.
type lifetimeRow struct {
	owner, than  string
	ours, theirs lifetime.Way
	malloc       string // "libc", or "jemalloc", which is preloaded
	n            int    // objects in a round, which then takes a tenth of a second or more
	peak         bool   // false where theirs has one block at a time

	// The same pair under another load, with a name for it, or "".
	load  string
	procs int // the row sets GOMAXPROCS to this; 0: it leaves GOMAXPROCS as it is
}

var ownratioLong = flag.Bool("ownratio.long", false, "run BenchmarkOwnRatio with 10,000,000 objects in a round as well, for half a minute more")

// lifetimeRows lists the comparisons, with long those that take half a minute.
func lifetimeRows(long bool) []lifetimeRow {
	rows := []lifetimeRow{
		{owner: "own", than: "addcleanup", ours: lifetime.Owner, theirs: lifetime.Cleanup, malloc: "libc", n: 400_000, peak: true},
		{owner: "make", than: "addcleanup", ours: lifetime.Make, theirs: lifetime.Cleanup, malloc: "libc", n: 400_000, peak: true},
		{owner: "close", than: "manual", ours: lifetime.Close, theirs: lifetime.ManualObject, malloc: "libc", n: 1_000_000},
		{owner: "memory", than: "manual", ours: lifetime.Memory, theirs: lifetime.ManualObject, malloc: "libc", n: 1_000_000},
		{owner: "memory", than: "addcleanup", ours: lifetime.Memory, theirs: lifetime.Cleanup, malloc: "libc", n: 400_000, peak: true},
		{owner: "memory", than: "go", ours: lifetime.Memory, theirs: lifetime.Arrays, malloc: "libc", n: 2_000_000},
		{owner: "group", than: "sixteens", ours: lifetime.Group, theirs: lifetime.Manual, malloc: "libc", n: 8_000_000},
		{owner: "own", than: "manual", ours: lifetime.Owner, theirs: lifetime.ManualObject, malloc: "jemalloc", n: 1_000_000},
		{owner: "make", than: "manual", ours: lifetime.Make, theirs: lifetime.ManualObject, malloc: "jemalloc", n: 1_000_000},
		{owner: "own", than: "manual", ours: lifetime.Owner, theirs: lifetime.ManualObject, malloc: "libc", n: 1_000_000, load: "n=1e6"},
		{owner: "make", than: "manual", ours: lifetime.Make, theirs: lifetime.ManualObject, malloc: "libc", n: 1_000_000},
		{owner: "own-inline", than: "manual", ours: lifetime.OwnerInline, theirs: lifetime.ManualObject, malloc: "jemalloc", n: 1_000_000},
		{owner: "own-inline", than: "manual", ours: lifetime.OwnerInline, theirs: lifetime.ManualObject, malloc: "libc", n: 1_000_000},
		{owner: "make-inline", than: "manual", ours: lifetime.MakeInline, theirs: lifetime.ManualObject, malloc: "libc", n: 1_000_000},
		{owner: "bare", than: "manual", ours: lifetime.Bare, theirs: lifetime.ManualObject, malloc: "libc", n: 1_000_000},
		{owner: "children", than: "own", ours: lifetime.Children, theirs: lifetime.Owner, malloc: "libc", n: 400_000},
		{
			owner: "own", than: "manual", ours: lifetime.OwnerParallel(2, false), theirs: lifetime.ManualParallel(2), malloc: "libc", n: 1_000_000,
			load: "goroutines=2", procs: 2,
		},
		{
			owner: "own-inline", than: "manual", ours: lifetime.OwnerParallel(2, true), theirs: lifetime.ManualParallel(2), malloc: "libc", n: 1_000_000,
			load: "goroutines=2", procs: 2,
		},
		{
			owner: "own", than: "addcleanup", ours: lifetime.OwnerParallel(2, false), theirs: lifetime.CleanupParallel(2), malloc: "libc", n: 400_000,
			load: "goroutines=2", procs: 2,
		},
	}
	if long {
		rows = append(rows, lifetimeRow{
			owner: "own", than: "manual", ours: lifetime.Owner, theirs: lifetime.ManualObject, malloc: "libc", n: 10_000_000, load: "n=1e7",
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

// units are those of what the row reports.
func (r *lifetimeRow) units() []string {
	units := []string{"x-" + r.than + "-wall", "x-" + r.than + "-cpu"}
	if r.peak {
		units = append(units, "x-"+r.than+"-peak")
	}
	return units
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

// BenchmarkOwnRatio reports for each row the medians of paired rounds. One
// iteration is all the rounds, so -benchtime=1x is enough. The promises are for
// one P and for two: -cpu=1,2. Rows with two goroutines have two Ps in any case.
//
// Rows for jemalloc run in a child process, for which it is preloaded.
func BenchmarkOwnRatio(b *testing.B) {
	for _, r := range lifetimeRows(*ownratioLong) {
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
			values := [][]float64{s.wall, s.cpu, s.peak}
			for i, unit := range r.units() {
				report(b, unit, median(values[i]))
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
	for _, r := range lifetimeRows(*ownratioLong) {
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

// TestPromises looks whether the promises are about benchmarks that there are, and whether each was
// measured.
func TestPromises(t *testing.T) {
	known := map[string]bool{
		"OwnTail x-addcleanup-p99.9": true,
		"OwnLive x-addcleanup-wall":  true, "OwnLive x-addcleanup-cpu": true, "OwnLive heap-B/owner": true,
	}
	for _, one := range survivorRates {
		known[fmt.Sprintf("Survivors/one=%d x-addcleanup-cpu", one)] = true
	}
	for _, r := range rows() {
		known["Ratio/"+r.name()+" x-"+r.than] = true
		if trace, ok := strings.CutPrefix(r.work, "trace-"); ok && r.than == "native" {
			trace, _, _ = strings.Cut(trace, "/")
			for _, allocator := range []string{"heap", "local"} {
				row := "/work=trace-" + trace + "/allocator=" + allocator
				known["Sampled"+row+" x-unsampled"], known["Guarded"+row+" x-unguarded"] = true, true
			}
		}
	}
	for _, r := range lifetimeRows(true) {
		for _, unit := range r.units() {
			known["OwnRatio/"+r.name()+" "+unit] = true
		}
	}
	seen := map[string]bool{}
	for i := range promises {
		p := &promises[i]
		key := p.bench + " " + p.unit
		if seen[key] {
			t.Errorf("two promises about %s", key)
		}
		seen[key] = true
		if !known[key] {
			t.Errorf("nothing measures %s", key)
		}
		if p.bar <= 0 || p.limit(1) <= 0 || p.limit(2) <= 0 {
			t.Errorf("%s has the bar %v and the limits %v and %v", key, p.bar, p.limit(1), p.limit(2))
		}
	}
	for key := range known {
		if !seen[key] {
			t.Errorf("there is no promise about %s", key)
		}
	}
}
