//go:build cgo && libgit2 && unix

package main

import (
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cheapgo/cheap/examples/git/internal/raw"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// A cost is the cost of one walk, until all its objects were freed.
type cost struct {
	wall, cpu time.Duration
	release   time.Duration // in which objects were freed
}

// benchmarked is the number of commits of the measured history: enough for several
// collections during a walk.
const benchmarked = 16_000

// BenchmarkHistory walks the same history with each binding in turn. A round is
// one iteration, so -benchtime=7x takes the medians of seven. It reports the time of
// own, without any Close and with all of them, divided by that of the other
// bindings: on the clock, and of processors, which includes the work of other
// threads. It also reports the share of processor time that was spent on freeing.
//
// The time of a binding without Close includes two or three collections at the end,
// which free the last objects, and which a program would not run.
func BenchmarkHistory(b *testing.B) {
	h := history(b, benchmarked)
	costs := make(map[string][]cost)
	turn := 0
	for b.Loop() {
		for i := range variants {
			v := variants[(i+turn)%len(variants)]
			costs[v.name] = append(costs[v.name], measured(b, v, h))
		}
		turn++
	}
	wall := func(c cost) time.Duration { return c.wall }
	cpu := func(c cost) time.Duration { return c.cpu }
	for _, r := range []struct {
		name, than string
		unit       string
	}{
		{"own", "cleanup", "own/cleanup"},
		{"own", "manual", "own/manual"},
		{"own-close", "manual", "own-close/manual"},
	} {
		b.ReportMetric(ratio(costs[r.name], costs[r.than], wall), r.unit)
		b.ReportMetric(ratio(costs[r.name], costs[r.than], cpu), r.unit+"-cpu")
	}
	for _, v := range variants {
		var share []float64
		for _, c := range costs[v.name] {
			share = append(share, 100*float64(c.release)/float64(c.cpu))
		}
		b.ReportMetric(median(share), v.name+"-freeing-%")
	}
	b.ReportMetric(0, "ns/op") // not the time of anything
}

// measured walks a history once.
func measured(b *testing.B, v variant, h made) cost {
	runtime.GC() // garbage of other bindings does not count
	start, cpu, release := time.Now(), cpuTime(b), raw.Released()
	report := counted(b, v, h.dir)
	settled(b)
	c := cost{time.Since(start), cpuTime(b) - cpu, raw.Released() - release}
	if report.Commits != h.want.Commits || !slices.Equal(report.Files, h.want.Files) {
		b.Fatalf("%s has counted something else", v.name)
	}
	return c
}

// cpuTime returns the processor time that this process has taken, in all of its
// threads.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	testcall.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ratio returns the median of the ratios of the costs of two bindings in the same
// round.
func ratio(ours, theirs []cost, what func(cost) time.Duration) float64 {
	var all []float64
	for i := range ours {
		all = append(all, float64(what(ours[i]))/float64(what(theirs[i])))
	}
	return median(all)
}

// median returns the middle value, or the mean of the two in the middle.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
