package tables

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/lab/internal/measure"
)

// A worker is what one goroutine of a row does.
type worker struct {
	run func(n int) // n operations, in a separate loop with direct calls

	// count returns how many operations were counted, in all rounds together. It is
	// nil if they cannot be counted, and only the compiled code shows them.
	count func() int

	close func() // may be nil
}

// shares is how many parts of a round there are for each goroutine. A faster
// goroutine takes more of them, so that none waits for a slower core.
const shares = 64

// parallel makes a work for procs goroutines, each with a worker. A round ends when
// all operations are done, so that more processors make the time of one smaller.
func parallel(procs int, open func() (worker, error)) (measure.Work, error) {
	workers := make([]worker, procs)
	for i := range workers {
		var err error
		if workers[i], err = open(); err != nil {
			closeAll(workers[:i])
			return measure.Work{}, err
		}
	}
	run := workers[0].run
	if procs > 1 {
		run = func(n int) { divide(n, workers) }
	}
	work := measure.Work{Run: run, Close: func() { closeAll(workers) }}
	if workers[0].count != nil {
		before := 0
		work.Check = func(n int) error {
			now := countAll(workers)
			did := now - before
			before = now
			return allDone(did, n)
		}
	}
	return work, nil
}

// divide has workers do n operations, at the same time.
func divide(n int, workers []worker) {
	var next atomic.Int64
	var all sync.WaitGroup
	part := max(n/(shares*len(workers)), 1)
	for _, w := range workers {
		all.Go(func() {
			for {
				from := int(next.Add(int64(part))) - part
				if from >= n {
					return
				}
				w.run(min(part, n-from))
			}
		})
	}
	all.Wait()
}

func countAll(workers []worker) int {
	sum := 0
	for _, w := range workers {
		sum += w.count()
	}
	return sum
}

func closeAll(workers []worker) {
	for _, w := range workers {
		if w.close != nil {
			w.close()
		}
	}
}

// allDone returns an error unless as many operations were done as there should be.
func allDone(did, n int) error {
	if did != n {
		return fmt.Errorf("%d operations were done, not %d", did, n)
	}
	return nil
}

var errNoMemory = errors.New("there is no memory")

// A line separates the fields around it by a cache line.
type line [128]byte
