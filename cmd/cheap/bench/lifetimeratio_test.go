//go:build cgo && unix

package bench

import (
	"fmt"
	"testing"

	"github.com/cheapgo/cheap/cmd/cheap/internal/cside"
	"github.com/cheapgo/cheap/cmd/cheap/internal/lifetime"
)

// A lifetimeRow is one promise about what owning costs: the time on the clock
// and the time on processors are to be at most bar of theirs, and what is live
// in C at most peakBar of theirs.
type lifetimeRow struct {
	owner, than  string
	ours, theirs lifetime.Way
	malloc       string // whose: "libc", or "jemalloc", which is preloaded
	n            int    // objects in a round, which then takes a tenth of a second or more
	bar          float64
	peakBar      float64 // 0 where theirs has one block at a time
}

// lifetimeRows lists the promises.
var lifetimeRows = []lifetimeRow{
	{"own", "addcleanup", lifetime.Owner, lifetime.Cleanup, "libc", 400_000, 0.45, 1.25},
	{"make", "addcleanup", lifetime.Make, lifetime.Cleanup, "libc", 400_000, 0.35, 1.25},
	{"close", "manual", lifetime.Close, lifetime.ManualObject, "libc", 1_000_000, 1.25, 0},
	{"memory", "manual", lifetime.Memory, lifetime.ManualObject, "libc", 1_000_000, 0.75, 0},
	{"memory", "addcleanup", lifetime.Memory, lifetime.Cleanup, "libc", 400_000, 0.1, 1.25},
	{"memory", "go", lifetime.Memory, lifetime.Arrays, "libc", 2_000_000, 1, 0},
	{"group", "sixteens", lifetime.Group, lifetime.Manual, "libc", 8_000_000, 0.15, 0},
	{"own", "manual", lifetime.Owner, lifetime.ManualObject, "jemalloc", 1_000_000, 1.1, 0},
	{"make", "manual", lifetime.Make, lifetime.ManualObject, "jemalloc", 1_000_000, 0.8, 0},
}

func (r *lifetimeRow) name() string {
	return fmt.Sprintf("malloc=%s/owner=%s/than=%s", r.malloc, r.owner, r.than)
}

// here reports whether the row can run in this process, which has one malloc.
func (r *lifetimeRow) here() bool { return cside.IsJemalloc() == (r.malloc == "jemalloc") }

// shares are what ours costs, as parts of what theirs does.
type shares struct{ wall, cpu, peak []float64 }

// compare appends the shares of one round each. Who is first changes from turn
// to turn.
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
// one P and for two: -cpu=1,2.
//
// Rows for jemalloc run in a child process, for which it is preloaded.
func BenchmarkOwnRatio(b *testing.B) {
	for _, r := range lifetimeRows {
		b.Run(r.name(), func(b *testing.B) {
			if !r.here() {
				inPreloaded(b, r.malloc)
				return
			}
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

// TestOwnRatioRows runs each comparison once with few objects, so that a
// contender that does not do its work fails a test and not only a benchmark.
func TestOwnRatioRows(t *testing.T) {
	for _, r := range lifetimeRows {
		t.Run(r.name(), func(t *testing.T) {
			if !r.here() {
				inPreloaded(t, r.malloc)
				return
			}
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
