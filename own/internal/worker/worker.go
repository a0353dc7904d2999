package worker

import (
	"fmt"
	"sync"
	"time"

	"github.com/cheapgo/cheap/own/internal/batch"
)

// A worker has a job, whose pool's release it calls.
type worker struct {
	index int // in work.workers
	call  *Call
	own   bool      // it is one of the pool's own workers, or helps
	helps bool      // it is a goroutine that makes owners, for one job
	jobs  []job     // one, or those of a bundle
	since time.Time // when it got the jobs
	stuck bool      // it is not counted in work.busy

	// Used by the goroutine only that works with the jobs.
	step   step
	until  time.Time     // when it leaves the rest of its jobs to the next goroutine that helps; or zero
	share  int           // of the last call of the release function, if until is set
	begun  bool          // the bundle has the jobs
	count  int           // entries of it that were released,
	took   time.Duration // in this time
	bundle batch.Bundle
	few    int // for Call.bundle; 0: not known
	errs   []failure
}

// A failure is an error that the release of some entries has returned.
type failure struct {
	spec  *batch.Spec
	count int
	err   error
}

// A step says how far a worker is with its job, also after a release function has
// ended its goroutine.
type step int

const (
	toRelease step = iota
	released       // or in the release function
	reported       // errors, or in OnReleaseError
	told           // what the collector found, or in OnCollect
)

// workers keeps what ended, because of the memory of its bundle.
var workers = sync.Pool{New: func() any { return new(worker) }}

func newWorker() *worker { return workers.Get().(*worker) }

// drop gives back a worker that is not in work.workers.
func (w *worker) drop() { workers.Put(w) }

// run is the function of a worker's goroutine. After a release function has ended
// the goroutine, the next one goes on with the same job.
func (w *worker) run() {
	for w.turn() {
	}
}

// turn does what is left of the worker's jobs. It reports false if it ends the worker.
func (w *worker) turn() bool {
	if !w.work() {
		w.leave()
		return false
	}
	w.bundle.Reset() // no lock is held
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
	c := w.call
	if !w.helps {
		c.running--
	}
	if w.few > 0 {
		c.bundle = w.few
	}
	if queued.Add(-int64(len(w.jobs))) == 0 {
		becameIdle.Ring()
	}
	clear(w.jobs)
	w.call, w.jobs, w.step, w.few, w.errs = nil, w.jobs[:0], toRelease, 0, nil
	w.until, w.begun, w.count, w.took = time.Time{}, false, 0, 0
	switch {
	case w.helps:
		w.helps = false
	case w.own:
		if ok = c.dead.first() != nil; ok {
			c.running++
			c.next(w, c.bundle)
		}
	default:
		if !w.stuck {
			work.busy--
		}
		w.stuck = false
		c.serve()
		if ok = turn(w); ok {
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

// work does what is left of the worker's jobs. If a release function or OnCollect
// ends the goroutine, another one goes on behind it. If one panics, the program
// ends, and the panic names the pool. In a goroutine that helps the panic reaches the
// caller, and another goroutine goes on.
//
// It reports false if the time is over, and something is left to do.
func (w *worker) work() (done bool) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		p := &releasePanic{pool: w.jobs[0].batch.Spec.Name, in: w.step.function(), value: v}
		if v != nil && !w.helps {
			panic(p)
		}
		w.until = time.Time{}
		go w.run()
		if v != nil {
			panic(p) // reaches the caller of Own or Make
		}
	}()
	if w.step == toRelease && !w.release(w.jobs[0]) {
		returned = true
		return false
	}
	if w.step == released {
		w.step = reported
	}
	// OnReleaseError and OnCollect may end the goroutine, and each call may take long.
	done = true
	for len(w.errs) > 0 && done {
		f := w.errs[0]
		w.errs = w.errs[1:]
		f.spec.Failed(f.count, f.err)
		done = len(w.errs)+w.bundle.Untold() == 0 || !w.late(Now())
	}
	if done {
		w.step = told
	}
	tells := w.jobs[0].batch.Spec.OnCollect != nil
	for w.bundle.Untold() > 0 && done {
		w.bundle.Tell()
		done = !tells || w.bundle.Untold() == 0 || !w.late(Now())
	}
	returned = true
	return done
}

// release releases what the worker's jobs have left, of which j is the first, and the
// parents that waited for it. Parents in other pools are queued there. It reports false if the
// time is over, and something is left.
func (w *worker) release(j job) bool {
	b := j.batch
	var o batch.Outcome
	switch {
	case j.entry&batch.Lost == 0:
		w.step = released
		w.bundle.AddApart(b, j.entry)
		o = b.Release(j.entry)
		w.note(b.Spec, 1, o.Err)
	case batch.Size(b, j.entry) > 0:
		if !w.begun {
			w.begun = true
			room := 0
			for _, j := range w.jobs {
				room += batch.Size(j.batch, j.entry)
			}
			w.bundle.Grow(room)
			for _, j := range w.jobs {
				w.bundle.Add(j.batch, j.entry)
			}
		}
		for begin := Now(); w.step == toRelease; {
			n := w.next()
			if n == w.bundle.Left() {
				w.step = released
			}
			o = w.bundle.Release(n)
			w.note(b.Spec, n, o.Err)
			now := Now()
			w.count += n
			w.took += now.Sub(begin)
			if begin = now; w.count > 0 {
				w.few = int(max(min(int64(w.count)*int64(aBit)/max(int64(w.took), 1), mostBundle), 1))
			}
			if w.step == toRelease && w.late(now) {
				return false
			}
		}
	default:
		w.step = released
		picked := w.bundle.Add(b, j.entry)
		o = picked.Release()
		w.note(b.Spec, picked.K, o.Err)
	}
	for o.Parent != nil && o.Parent.Spec == b.Spec && !w.late(Now()) {
		o = o.Parent.Release(o.Index)
		w.note(b.Spec, 1, o.Err)
	}
	if o.Parent != nil {
		o.Parent.Spec.Releaser.Dead(o.Parent, o.Index)
	}
	return true
}

// next returns how many entries of the bundle the next call of the release function has.
func (w *worker) next() int {
	left := w.bundle.Left()
	if w.until.IsZero() {
		return left
	}
	w.share = min(max(2*w.share, 1), mostShare)
	return min(w.share, left)
}

// late reports whether the time of a goroutine that helps is over.
func (w *worker) late(now time.Time) bool { return !w.until.IsZero() && !now.Before(w.until) }

// note keeps an error until all is released.
func (w *worker) note(k *batch.Spec, count int, err error) {
	if err != nil {
		w.errs = append(w.errs, failure{k, count, err})
	}
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

// function names the function that a worker is in.
func (s step) function() string {
	return [...]string{toRelease: "the release function", released: "the release function", reported: "Options.OnReleaseError", told: "Options.OnCollect"}[s]
}
