package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"
)

var rounds = flag.Int("rounds", 1, "in how many rounds, which take turns, the benchmarks compare")

// BenchmarkRatio prints the cost of the same work with our memory, divided by that with
// the original: time on the clock, time on processors, and peak resident memory. Both
// run in processes of their own, in turns. The median of the rounds is printed, and for
// time on processors, which other work on the machine disturbs least, also the least and
// the most.
func BenchmarkRatio(b *testing.B) {
	for _, work := range []string{"single", "private", "shared"} {
		b.Run("work="+work, func(b *testing.B) {
			paths := []string{built(b, "go.mod"), original(b)}
			args := []string{fmt.Sprint("-scale=", *scale), fmt.Sprint("-conns=", *conns), work}
			for b.Loop() {
				var times, cpus, peaks []float64
				waits := [2][]float64{}
				for round := range *rounds {
					var r [2]result
					var cpu [2]time.Duration
					for i := range r {
						k := (i + round) % 2
						r[k], cpu[k] = child(b, paths[k], args...)
						waits[k] = append(waits[k], float64(r[k].WaitNs)/float64(r[k].Ns))
					}
					if r[0].Digest != r[1].Digest {
						b.Fatalf("the results are %s and %s", r[0].Digest, r[1].Digest)
					}
					times = append(times, float64(r[0].Ns)/float64(r[1].Ns))
					cpus = append(cpus, float64(cpu[0])/float64(cpu[1]))
					peaks = append(peaks, float64(r[0].PeakRSS)/float64(r[1].PeakRSS))
				}
				b.ReportMetric(median(times), "time/original")
				b.ReportMetric(median(cpus), "cpu/original")
				b.ReportMetric(median(peaks), "rss/original")
				if *rounds > 1 {
					b.ReportMetric(slices.Min(cpus), "least-cpu")
					b.ReportMetric(slices.Max(cpus), "most-cpu")
				}
				// The mean number of goroutines that waited for a mutex.
				b.ReportMetric(median(waits[0]), "waiting")
				b.ReportMetric(median(waits[1]), "waiting-original")
			}
		})
	}
}

// BenchmarkShare prints the share of processor time that is spent in the allocation
// functions of modernc.org/libc, the mutex included, and the share in package memory
// below them. The second is the most that another memory can save. The difference is the
// cost of the mutex and its defer.
func BenchmarkShare(b *testing.B) {
	for _, work := range []string{"single", "private", "shared"} {
		for _, modfile := range []string{"go.mod", "original.mod"} {
			b.Run("work="+work+"/modfile="+modfile, func(b *testing.B) {
				for b.Loop() {
					path, profile := built(b, modfile), filepath.Join(b.TempDir(), "profile")
					child(b, path, fmt.Sprint("-scale=", *scale), fmt.Sprint("-conns=", *conns), "-cpuprofile="+profile, work)
					b.ReportMetric(100*share(b, path, profile, `^modernc\.org/libc\.(X(malloc|calloc|realloc|free|malloc_usable_size)|UsableSize)$`), "%libc")
					b.ReportMetric(100*share(b, path, profile, `^modernc\.org/memory\.`), "%memory")
				}
			})
		}
	}
}

var accounted = regexp.MustCompile(`accounting for .*, ([\d.]+)% of `)

// share returns the share of a profile's samples that have a function on their stack.
func share(b *testing.B, path, profile, function string) float64 {
	b.Helper()
	out := goCommand(b, "tool", "pprof", "-top", "-nodefraction=0", "-edgefraction=0", "-nodecount=100000", "-focus="+function, path, profile)
	m := accounted.FindSubmatch(out)
	if m == nil {
		b.Fatalf("pprof does not say which part of the samples has %s:\n%s", function, out)
	}
	percent, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return percent / 100
}

func median(x []float64) float64 {
	slices.Sort(x)
	if n := len(x); n%2 == 0 {
		return (x[n/2-1] + x[n/2]) / 2
	}
	return x[len(x)/2]
}
