//go:build linux && cgo

package main

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/pace"
)

// A report is what a process that was not killed says.
type report struct {
	Requests, Refused int
	P50, P99          time.Duration // of a request
	Waits             int64         // of goroutines, for package pace
	Collections       int64         // that package pace has started
	Trims             int64         // how often malloc gave memory back
}

// serve runs the program in this process, in goroutines, for a time.
func (p program) serve(w *way, goroutines int, d time.Duration) (report, error) {
	if err := w.start(); err != nil {
		return report{}, err
	}
	defer pace.Stop()
	request := p.start(w)
	took := make([][]time.Duration, goroutines)
	var refused atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range took {
		wg.Go(func() {
			for asked := time.Now(); asked.Sub(begin) < d || took[i] == nil; {
				if request() != nil {
					refused.Add(1)
				}
				now := time.Now()
				took[i] = append(took[i], now.Sub(asked))
				asked = now
			}
		})
	}
	wg.Wait()
	all := slices.Concat(took...)
	slices.Sort(all)
	stats := pace.ReadStats()
	return report{
		Requests: len(all) - int(refused.Load()), Refused: int(refused.Load()),
		P50: all[len(all)/2], P99: all[len(all)*99/100],
		Waits: stats.Waits, Collections: stats.Cycles, Trims: stats.Trims,
	}, nil
}
