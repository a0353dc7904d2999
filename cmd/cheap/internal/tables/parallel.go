package tables

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/cmd/cheap/internal/measure"
)

// A worker is what one goroutine of a row does.
type worker struct {
	run func(n int) // n operations, in a loop of its own with direct calls

	// count returns how many operations have left a trace, all rounds together.
	// Nil where they leave none, and only the compiled code tells.
	count func() int

	close func() // nil where there is nothing to close
}

// shares is how many parts of a round each goroutine gets at first. Who is faster
// takes more of them, so that none waits for a slower core.
const shares = 64

// parallel makes a work for procs goroutines, each with a worker. It ends when all
// operations are done: on more processors the time of one is smaller.
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
		return fmt.Errorf("of %d operations %d were done", n, did)
	}
	return nil
}

var errNoMemory = errors.New("there is no memory")

// A line keeps what lies behind it off the cache lines before.
type line [128]byte
