package worker

import (
	"fmt"
	"sync"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// A worker has jobs of one pool, and calls the pool's release function for them.
type worker struct {
	index      int // in work.workers
	dispatcher *Dispatcher
	own        bool        // it is one of the pool's own workers, or helps
	helps      bool        // it is a goroutine that makes owners, for one bundle
	jobs       []batch.Job // one, or those of a bundle
	since      time.Time   // when it got the jobs
	stuck      bool        // it is not counted in work.busy

	// Used only by the goroutine that works on the jobs.
	until  time.Time // when it leaves the rest of its jobs to the next goroutine that helps; or zero
	bundle batch.Bundle
}

// workers keeps workers that ended, to reuse the memory of their bundles.
var workers = sync.Pool{New: func() any { return new(worker) }}

func newWorker() *worker { return workers.Get().(*worker) }

// drop gives back a worker that is not in work.workers.
func (w *worker) drop() { workers.Put(w) }

// run is the function of a worker's goroutine. After a release function has ended
// the goroutine, the next one goes on with the same job.
func (w *worker) run() {
	for w.runJobs() {
	}
}

// runJobs does what is left of the worker's jobs. It reports false if it ends the worker.
func (w *worker) runJobs() bool {
	if !w.work() {
		w.leave()
		return false
	}
	work.mu.Lock()
	ok := w.goesOn()
	work.mu.Unlock()
	if !ok {
		w.drop()
	}
	return ok
}

// goesOn ends the worker's jobs, and gives it others or ends the worker. The caller
// holds work.mu.
func (w *worker) goesOn() (ok bool) {
	d := w.dispatcher
	if !w.helps {
		d.running--
	}
	w.measure()
	if account.Process.Queued.Add(-int64(len(w.jobs))) == 0 {
		becameIdle.Ring()
	}
	clear(w.jobs)
	w.dispatcher, w.jobs, w.until = nil, w.jobs[:0], time.Time{}
	switch {
	case w.helps:
		w.helps = false
	case w.own:
		if ok = d.dead.first() != nil; ok {
			d.running++
			d.next(w, d.bundle)
		}
	default:
		if !w.stuck {
			work.busy--
		}
		w.stuck = false
		d.serve()
		if ok = assign(w); ok {
			work.busy++
		}
		hire() // arms or stops the timer
	}
	if ok {
		w.since = Now()
		return true
	}
	last := len(work.workers) - 1
	work.workers[w.index] = work.workers[last]
	work.workers[w.index].index = w.index
	work.workers[last] = nil
	if work.workers = work.workers[:last]; last == 0 {
		work.workers = nil // idle, nothing is kept
	}
	return false
}

// measure sets how many entries the next bundle of the pool may have. The caller holds
// work.mu.
func (w *worker) measure() {
	if n := int64(w.bundle.Count); n > 0 {
		w.dispatcher.bundle = int(max(min(n*int64(aBit)/max(int64(w.bundle.Took), 1), mostBundle), 1))
	}
}

// work does what is left of the worker's jobs. If a function of the program ends the
// goroutine, another one goes on behind it. If one panics, the program ends, and the panic
// names the pool. In a goroutine that helps the panic reaches the caller, and another
// goroutine goes on.
//
// It reports false if the time is over, and something is left to do.
func (w *worker) work() (done bool) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		p := &releasePanic{pool: w.jobs[0].Batch.Spec.Name, in: w.bundle.Function(), value: v}
		if v != nil && !w.helps {
			panic(p)
		}
		w.until = time.Time{}
		go w.run()
		if v != nil {
			panic(p) // reaches the caller of Own or Make
		}
	}()
	done = w.bundle.Run(w.jobs, w.until, Now)
	returned = true
	return done
}

// A releasePanic is the panic value with which a goroutine of this package ends the
// program.
type releasePanic struct {
	pool  string
	in    string // the function that panicked
	value any
}

func (e *releasePanic) Error() string {
	return fmt.Sprintf("cheap: %s: %s panicked: %v", e.pool, e.in, e.value)
}
