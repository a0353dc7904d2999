//go:build linux && cgo

package main

import (
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cheapgo/cheap/pace"
)

// A report is what a process that was not killed says.
type report struct {
	Requests, Refused int
	P50, P99          time.Duration // of a request
	CPU               time.Duration // processor time of a request, the mean
	Waits             int64         // of goroutines, for package pace
	Collections       int64         // that package pace has started
	Trims             int64         // how often malloc gave memory back
}

// serve runs the program in this process, in goroutines, for a time. Requests that end before warm has passed do not
// count.
func (p program) serve(w *way, goroutines int, d, warm time.Duration) (report, error) {
	if err := w.start(); err != nil {
		return report{}, err
	}
	defer pace.Stop()
	request := p.start(w)
	took := make([][]time.Duration, goroutines)
	var refused atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	var used time.Duration
	wg.Go(func() {
		time.Sleep(warm)
		used = processorTime()
	})
	for i := range took {
		wg.Go(func() {
			for asked := time.Now(); asked.Sub(begin) < d || took[i] == nil; {
				err := request()
				now := time.Now()
				if now.Sub(begin) >= warm {
					took[i] = append(took[i], now.Sub(asked))
					if err != nil {
						refused.Add(1)
					}
				}
				asked = now
			}
		})
	}
	wg.Wait()
	used = processorTime() - used
	all := slices.Concat(took...)
	slices.Sort(all)
	stats := pace.ReadStats()
	return report{
		Requests: len(all) - int(refused.Load()), Refused: int(refused.Load()),
		P50: all[len(all)/2], P99: all[len(all)*99/100], CPU: used / time.Duration(len(all)),
		Waits: stats.Waits, Collections: stats.Cycles, Trims: stats.Trims,
	}, nil
}

// processorTime returns what the process has taken.
func processorTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // it fails for a wrong argument only
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
