// Package worker runs releases that no Close runs: those that the collector caused,
// and those of pools whose releases are bound to one goroutine. Its two types are
// sinks of package ledger. A [Call] releases where the owner is closed, and leaves
// dead batches to workers. A [Queue] leaves all to a Drain or to a thread.
package worker

import (
	"container/list"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/cleanup"
	"github.com/cheapgo/cheap/internal/goroutine"
	"github.com/cheapgo/cheap/own/internal/ledger"
)

func init() { account.SetReleases(waiting, goroutine.Entered) }

// waiting returns the number of releases that wait or run. A walk over registrations
// counts as one: it may find more, and releases those of a Memory.
func waiting() int64 {
	n := queued.Load()
	if cleanup.Walking() {
		n++
	}
	return n
}

// A Call is the sink of a pool whose releases run in Close and on workers.
type Call struct {
	workers int // of its own; 0 if it shares those of all pools

	// Under work.mu.
	dead    queue // for workers
	running int   // workers with a job of the pool
	line    line
}

// NewCall returns the sink of a pool with a number of workers of its own. 0 stands
// for the workers that pools share.
func NewCall(workers int) *Call { return &Call{workers: workers} }

// Closed releases the entry.
func (c *Call) Closed(l *ledger.Ledger, i uint32) ledger.Outcome { return l.Release(i) }

// Dead queues a batch or an entry for a worker.
func (c *Call) Dead(l *ledger.Ledger, i uint32) {
	queued.Add(1)
	work.mu.Lock()
	defer work.mu.Unlock()
	c.dead.push(job{ledger: l, entry: i})
	work.batches++
	c.serve()
	hire()
}

// Workers are goroutines that release what the collector found dead. They are
// started by a cleanup or by another worker, so outside of all bubbles of
// testing/synctest, and end when nothing is queued for them.
//
// Shared workers serve all pools. There are a few (see fewBusy), and pools take
// turns. A worker that has been in one release for longer than StuckAfter is
// stuck, and does not count as one of the few. A pool that has waited for as long
// and has no worker gets one, however many there are. So a pool waits for
// StuckAfter at most, whatever the release functions of other pools do. A pool
// occupies MostOfPool shared workers at most.
//
// A pool with Options.Workers has workers of its own instead, which serve no
// other pool.
const (
	LeastBusy  = 2
	mostBusy   = 8
	MostOfPool = 4
	StuckAfter = 50 * time.Millisecond
)

// fewBusy returns how many shared workers may run that are not stuck.
func fewBusy() int { return max(LeastBusy, min(runtime.GOMAXPROCS(0)/4, mostBusy)) }

var work struct {
	mu sync.Mutex

	// Pools with dead batches queued, in the order of their turns: without a
	// worker, and with fewer workers than they may have. A pool with workers of its
	// own is in neither.
	waiting, more list.List

	workers []*worker
	batches int // queued
	busy    int // shared workers that are not stuck
	timer   *time.Timer
	armed   bool // the timer will call look; only while a pool waits
}

// A line is the place of a pool in work.waiting or work.more.
type line struct {
	in    *list.List // nil if the pool is in neither
	at    *list.Element
	since time.Time // when it came there
}

// A worker has a job, whose pool's release it calls.
type worker struct {
	index int // in work.workers
	call  *Call
	own   bool // it is one of the pool's own workers
	job   job
	since time.Time // when it got the job
	stuck bool      // it is not counted in work.busy

	// Used by the worker's goroutine only.
	step  step
	found int // entries of the batch that the collector found
	errs  []failure
	buf   []uintptr
}

// A failure is an error that the release of some entries has returned.
type failure struct {
	kind  *ledger.Kind
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

// queued counts the batches and parents that wait for a worker or are with one,
// and the entries that wait for the thread of their pool. toDrain counts the
// releases that wait for a Drain or run in one.
var queued, toDrain atomic.Int64

// serve puts the call in the line where it belongs, or starts workers of its
// own. It is called when dead or running has changed. The caller holds work.mu.
func (c *Call) serve() {
	if c.workers > 0 {
		for c.running < c.workers && c.dead.first() != nil {
			start(c, c.next(), true)
		}
		return
	}
	var want *list.List
	switch {
	case c.dead.first() == nil || c.running >= MostOfPool:
	case c.running == 0:
		want = &work.waiting
	default:
		want = &work.more
	}
	if want != c.line.in {
		c.leaveLine()
		if want != nil {
			c.line = line{in: want, at: want.PushBack(c), since: time.Now()}
		}
	}
}

func (c *Call) leaveLine() {
	if c.line.in != nil {
		c.line.in.Remove(c.line.at)
		c.line = line{}
	}
}

// next takes the next job of a pool that has one. The caller holds work.mu.
func (c *Call) next() job {
	j := *c.dead.first()
	c.dead.pop()
	work.batches--
	c.running++
	return j
}

// turn takes the next job of the pool whose turn it is. It returns no job if no
// further worker may run. The caller holds work.mu.
func turn() (c *Call, j job, ok bool) {
	e := work.waiting.Front()
	free := work.busy < fewBusy()
	if e == nil && free {
		e = work.more.Front()
	}
	if e == nil {
		return nil, job{}, false
	}
	c = e.Value.(*Call)
	if !free && time.Since(c.line.since) < StuckAfter {
		return nil, job{}, false
	}
	c.leaveLine() // its next turn comes after those of the others
	j = c.next()
	c.serve()
	return c, j, true
}

// hire starts shared workers, as many as may be started. The caller holds
// work.mu.
func hire() {
	for {
		c, j, ok := turn()
		if !ok {
			break
		}
		work.busy++
		start(c, j, false)
	}
	if e := work.waiting.Front(); e != nil {
		arm(StuckAfter - time.Since(e.Value.(*Call).line.since))
	} else if work.more.Len() > 0 {
		arm(StuckAfter)
	} else if work.armed {
		work.armed = !work.timer.Stop()
	}
}

// start starts a worker with a job. The caller holds work.mu.
func start(c *Call, j job, own bool) {
	w := &worker{index: len(work.workers), call: c, own: own, job: j, since: time.Now()}
	work.workers = append(work.workers, w)
	go w.run()
}

// arm starts the timer that calls look, because a pool waits. The caller holds
// work.mu.
func arm(d time.Duration) {
	if work.armed {
		return
	}
	work.armed = true
	if d = max(d, 0); work.timer == nil {
		work.timer = time.AfterFunc(d, look)
	} else {
		work.timer.Reset(d)
	}
}

// look is called by the timer. It finds the workers that are stuck, and starts
// others in their place.
func look() {
	work.mu.Lock()
	defer work.mu.Unlock()
	work.armed = false
	now := time.Now()
	for _, w := range work.workers {
		if !w.own && !w.stuck && now.Sub(w.since) >= StuckAfter {
			w.stuck = true
			work.busy--
		}
	}
	hire()
}

// run is the function of a worker's goroutine. After a release function has ended
// the goroutine, the next one goes on with the same job.
func (w *worker) run() {
	for {
		w.work()
		work.mu.Lock()
		if !w.another() {
			work.mu.Unlock()
			return
		}
		work.mu.Unlock()
	}
}

// another ends the worker's job, and gives it another one or ends the worker. The
// caller holds work.mu.
func (w *worker) another() (ok bool) {
	w.call.running--
	queued.Add(-1)
	w.job, w.step, w.found, w.errs = job{}, toRelease, 0, nil
	switch {
	case w.own:
		if ok = w.call.dead.first() != nil; ok {
			w.job = w.call.next()
		}
	default:
		if !w.stuck {
			work.busy--
		}
		w.stuck = false
		w.call.serve()
		if w.call, w.job, ok = turn(); ok {
			work.busy++
		}
		hire() // arms or stops the timer
	}
	if ok {
		w.since = time.Now()
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

// work does what is left of the worker's job. If a release function or OnCollect
// ends the goroutine, another one goes on behind it. If one panics, the program
// ends, and the panic names the pool.
func (w *worker) work() {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			panic(&releasePanic{pool: w.job.ledger.Kind.Name, in: w.step.function(), value: v})
		}
		go w.run()
	}()
	l := w.job.ledger
	if w.step == toRelease {
		w.step = released
		w.release(l)
	}
	if w.step == released {
		w.step = reported
	}
	for len(w.errs) > 0 { // OnReleaseError may end the goroutine
		f := w.errs[0]
		w.errs = w.errs[1:]
		f.kind.Failed(f.count, f.err)
	}
	if w.step == reported {
		w.step = told
		l.Tell(w.found)
	}
	returned = true
}

// release releases the batch or the entry of the worker's job, and the parents
// that waited for it. Parents in other pools are queued there.
func (w *worker) release(l *ledger.Ledger) {
	var o ledger.Outcome
	if w.job.entry&ledger.Lost == 0 {
		o = l.Release(w.job.entry)
		w.note(l.Kind, 1, o.Err)
	} else {
		d := ledger.Dead{Ledger: l, Job: w.job.entry, Others: w.job.entry != ledger.All, Buf: w.buf}
		picked := d.Claim(int(l.Len()))
		w.found, w.buf = d.Found, d.Buf
		o = picked.Release()
		w.note(l.Kind, picked.K, o.Err)
	}
	for o.Parent != nil && o.Parent.Kind == l.Kind {
		o = o.Parent.Release(o.Index)
		w.note(l.Kind, 1, o.Err)
	}
	if o.Parent != nil {
		o.Parent.Kind.Sink.Dead(o.Parent, o.Index)
	}
}

// note keeps an error until all is released.
func (w *worker) note(k *ledger.Kind, count int, err error) {
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
	return [...]string{released: "the release function", reported: "Options.OnReleaseError", told: "Options.OnCollect"}[s]
}

// A State describes the workers.
type State struct {
	Workers, Batches int
	Oldest           time.Duration
	OldestPool       string
}

// Look returns the state of the workers.
func Look() State {
	work.mu.Lock()
	defer work.mu.Unlock()
	st := State{Workers: len(work.workers), Batches: work.batches}
	for _, w := range work.workers {
		if d := time.Since(w.since); d >= st.Oldest {
			st.Oldest, st.OldestPool = d, w.job.ledger.Kind.Name
		}
	}
	return st
}

// Waiting reports whether releases wait for a worker or a thread, or run there.
func Waiting() bool { return queued.Load() != 0 }

// Idle reports whether no release is queued, also for a Drain, and none runs on a
// goroutine of this package or of package cleanup.
func Idle() bool { return waiting()+toDrain.Load() == 0 }
