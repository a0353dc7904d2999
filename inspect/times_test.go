//go:build cheap_times && unix

package inspect

import (
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestTimeScrapes compares how long a thousand Mallocs take beside a thousand reads a second, and
// beside a goroutine that uses the same processor time and reads nothing.
func TestTimeScrapes(t *testing.T) {
	h, memory := scraped(t)
	cost := costOfRead(500)
	// The times that 999 of 1,000 batches of Mallocs do not exceed, in microseconds, while beside is
	// called a thousand times a second.
	measure := func(beside func()) float64 {
		const d = 2 * time.Second
		times := make([][]time.Duration, runtime.GOMAXPROCS(0))
		load(h, memory, func(g int, mallocs func()) {
			begin := time.Now()
			mallocs()
			times[g] = append(times[g], time.Since(begin))
		}, func() {
			begin := time.Now()
			for next := begin; next.Sub(begin) < d; next = next.Add(time.Millisecond) {
				time.Sleep(time.Until(next))
				beside()
			}
		})
		all := slices.Concat(times...)
		slices.Sort(all)
		return float64(all[len(all)*999/1000].Nanoseconds()) / 1e3
	}
	var ratios, scraped, controlled []float64
	for range 7 {
		x := measure(func() { ReadMetrics() })
		y := measure(func() { spin(cost) })
		scraped, controlled, ratios = append(scraped, x), append(controlled, y), append(ratios, x/y)
	}
	slices.Sort(ratios)
	t.Logf("a Read takes %v of processor time; p99.9 of 1,000 Mallocs: %.0f µs beside reads, %.0f µs beside the control; the ratios are %.3f",
		cost, scraped, controlled, ratios)
	// Where nothing else runs, 1.1 is enough. A thread that the system takes the processor from makes
	// a batch many times as long, on either side.
	if ratio := ratios[len(ratios)/2]; ratio > 2 {
		t.Errorf("the ratio is %.3f, the bar is 2", ratio)
	}
}

// costOfRead returns the processor time of a Read, with that of the collections that it causes.
func costOfRead(n int) time.Duration {
	begin := processorTime()
	for range n {
		ReadMetrics()
	}
	return (processorTime() - begin) / time.Duration(n)
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // there is no other error than a wrong argument
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func spin(d time.Duration) {
	for begin := time.Now(); time.Since(begin) < d; {
	}
}
