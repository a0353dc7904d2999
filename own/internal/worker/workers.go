// Package worker runs releases that no Close runs: those that the collector caused,
// and those of pools whose releases are bound to one goroutine. Its two types are
// releasers of package batch. A [Dispatcher] releases closed owners on the goroutine that
// closes them, and leaves dead batches to workers. A [Queue] leaves all to a Drain or to a
// thread. NewPool of package own chooses by Options.Run.
//
//	workers.go  a Dispatcher, and how many workers there are
//	worker.go   one worker
//	help.go     a Dispatcher with Inline
//	drain.go    a Queue
//	queue.go    the list that both keep jobs in
package worker

import (
	"container/list"
	"runtime"
	"sync"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/bell"
)

// A Dispatcher is the releaser of a pool whose releases run in Close and on workers.
type Dispatcher struct {
	workers int  // of its own; 0 if it shares those of all pools
	inline  bool // goroutines that make owners help, see Help

	// Under work.mu.
	dead    queue[batch.Job] // for workers
	entries int              // of the jobs in dead, at most
	running int              // workers with a job of the pool
	line    line
	bundle  int // entries that are released in aBit, as far as is known
	help    help
}

// NewDispatcher returns the releaser of a pool with a number of workers of its own. 0 stands
// for the workers that pools share. With inline set, the goroutines that make owners
// call Help.
func NewDispatcher(workers int, inline bool) *Dispatcher {
	return &Dispatcher{workers: workers, inline: inline}
}

// Closed releases the entry.
func (d *Dispatcher) Closed(b *batch.Batch, i uint32) batch.Outcome { return b.Release(i) }

// Dead queues a job for a worker.
func (d *Dispatcher) Dead(j batch.Job) {
	account.Process.Queued.Add(1)
	work.mu.Lock()
	defer work.mu.Unlock()
	d.dead.push(j)
	d.entries += max(int(j.Size), 1)
	work.batches++
	d.serve()
	if d.inline && !d.help.late {
		d.expectHelp()
		return
	}
	// What the collector has found comes from a walk, which finds many in a short time. A
	// worker that begins after it releases them in few calls. A walk may take long, so a few
	// are not many. See Walked.
	if j.Entry&batch.Lost == 0 || j.Batch.Stock || d.dead.n >= manyJobs {
		hire()
	} else {
		arm(StuckAfter)
	}
}

// AfterWalk has a method of [gcwatch.Follower].
type AfterWalk struct{}

// Walked is called after a walk, and starts workers for what it has found.
func (AfterWalk) Walked() {
	if account.Process.Queued.Load() == 0 {
		becameIdle.Ring()
		return
	}
	work.mu.Lock()
	defer work.mu.Unlock()
	hire()
}

// Workers are goroutines that release what the collector found dead. They are started by a
// cleanup or by another worker, so outside of all bubbles of testing/synctest, and end when
// nothing is queued for them.
//
// Shared workers serve all pools, in the order in which they wait (assign):
//
//	shared workers that are not stuck   <= fewBusy()
//	shared workers of one pool          <= MostOfPool
//	time a pool waits for its first     <= StuckAfter
//
// A worker is stuck if one release has taken StuckAfter. A pool that has waited as long, and
// has no worker, gets one even if fewBusy() others run. So a pool waits for StuckAfter at
// most, whatever the release functions of other pools do.
//
// A worker takes as many jobs of a pool at once as it releases in aBit, estimated from the
// last ones. If a pool has queued more than that, it gets a second worker.
//
// A pool with Workers has workers of its own instead, which serve no other pool.
const (
	LeastBusy  = 2
	mostBusy   = 8
	MostOfPool = 4
	StuckAfter = 50 * time.Millisecond

	aBit       = 2 * time.Millisecond
	mostBundle = 32768 // entries of the jobs of a worker
	mostJobs   = 1024  // of a worker
	manyJobs   = 64    // of a pool: a worker begins before the walk is over
)

// fewBusy returns how many shared workers may run that are not stuck.
func fewBusy() int { return max(LeastBusy, min(runtime.GOMAXPROCS(0)/4, mostBusy)) }

// Now returns the time by which releases are slow, and pools wait. Tests replace it by a clock
// of their own, in init functions.
var Now = time.Now

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
	armed   bool // the timer will call replaceStuck; only while a pool waits
}

// A line is the place of a pool in work.waiting or work.more.
type line struct {
	in    *list.List // nil if the pool is in neither
	at    *list.Element
	since time.Time // when it came there
}

// serve puts the call in the line where it belongs, or starts workers of its
// own. It is called when dead or running has changed. The caller holds work.mu.
func (d *Dispatcher) serve() {
	if d.workers > 0 {
		for d.running < d.workers && d.dead.first() != nil {
			w := newWorker()
			d.running++
			d.next(w, d.bundle)
			start(w, true)
			go w.run()
		}
		return
	}
	var want *list.List
	switch {
	case d.dead.first() == nil || d.running >= MostOfPool || d.inline && !d.help.late:
	case d.running == 0:
		want = &work.waiting
	default:
		want = &work.more
	}
	if want != d.line.in {
		d.leaveLine()
		if want != nil {
			d.line = line{in: want, at: want.PushBack(d), since: Now()}
		}
	}
}

func (d *Dispatcher) leaveLine() {
	if d.line.in != nil {
		d.line.in.Remove(d.line.at)
		d.line = line{}
	}
}

// next gives a worker the next job of a pool that has one, and those behind it that may
// be released with it, while there is room for their entries. The caller holds work.mu.
func (d *Dispatcher) next(w *worker, room int) {
	w.dispatcher = d
	defer d.isLate()
	for {
		j := *d.dead.first()
		n := int(j.Size)
		if len(w.jobs) > 0 && (n == 0 || n > room || len(w.jobs) == mostJobs || j.Parent != w.jobs[0].Parent) {
			return
		}
		d.dead.pop()
		d.entries -= max(n, 1)
		work.batches--
		w.jobs = append(w.jobs, j)
		if room -= n; n == 0 || d.dead.first() == nil {
			return
		}
	}
}

// another reports whether a pool with a worker needs another one, at the time now: it
// has more queued than a worker releases in a bit, or has waited. The caller holds
// work.mu.
func (d *Dispatcher) another(now time.Time) bool {
	return d.entries > d.bundle || now.Sub(d.line.since) >= StuckAfter
}

// assign gives a worker the next jobs of the pool whose turn it is. It reports false if no
// further worker may run. The caller holds work.mu.
func assign(w *worker) bool {
	e := work.waiting.Front()
	if work.busy < fewBusy() {
		if e == nil && work.more.Len() > 0 {
			now := Now()
			for e = work.more.Front(); e != nil && !e.Value.(*Dispatcher).another(now); {
				e = e.Next()
			}
		}
	} else if e != nil && Now().Sub(e.Value.(*Dispatcher).line.since) < StuckAfter {
		e = nil
	}
	if e == nil {
		return false
	}
	d := e.Value.(*Dispatcher)
	d.leaveLine() // its next turn comes after those of the others
	d.running++
	d.next(w, d.bundle)
	d.serve()
	return true
}

// hire starts shared workers, as many as may be started. The caller holds
// work.mu.
func hire() {
	for w := newWorker(); ; w = newWorker() {
		if !assign(w) {
			w.drop()
			break
		}
		work.busy++
		start(w, false)
		go w.run()
	}
	if e := work.waiting.Front(); e != nil {
		arm(StuckAfter - Now().Sub(e.Value.(*Dispatcher).line.since))
	} else if work.more.Len() > 0 {
		arm(StuckAfter)
	} else if work.armed {
		work.armed = !work.timer.Stop()
	}
}

// start adds a worker that has jobs to work.workers. The caller holds work.mu.
func start(w *worker, own bool) {
	w.index, w.own, w.since = len(work.workers), own, Now()
	work.workers = append(work.workers, w)
}

// arm starts the timer that calls replaceStuck, because a pool waits. The caller holds
// work.mu.
func arm(d time.Duration) {
	if work.armed {
		return
	}
	work.armed = true
	if d = max(d, 0); work.timer == nil {
		work.timer = time.AfterFunc(d, replaceStuck)
	} else {
		work.timer.Reset(d)
	}
}

// replaceStuck is called by the timer. It finds the workers that are stuck, and starts
// others in their place.
func replaceStuck() {
	work.mu.Lock()
	defer work.mu.Unlock()
	work.armed = false
	now := Now()
	for _, w := range work.workers {
		if !w.own && !w.stuck && now.Sub(w.since) >= StuckAfter {
			w.stuck = true
			work.busy--
		}
	}
	hire()
}

// A State describes the workers.
type State struct {
	Workers, Batches int64
	Oldest           time.Duration
	OldestPool       string
}

// CurrentState returns the state of the workers.
func CurrentState() State {
	work.mu.Lock()
	defer work.mu.Unlock()
	now := Now()
	st := State{Workers: int64(len(work.workers)), Batches: int64(work.batches)}
	for _, w := range work.workers {
		if d := now.Sub(w.since); d >= st.Oldest {
			st.Oldest, st.OldestPool = d, w.jobs[0].Batch.Spec.Name
		}
	}
	return st
}

// Waiting reports whether releases wait for a worker or a thread, or run there.
func Waiting() bool { return account.Process.Queued.Load() != 0 }

// becameIdle rings when Idle may have become true.
var becameIdle bell.Bell

// BecameIdle returns a channel that is closed when Idle may have become true; see
// [bell.Bell].
func BecameIdle() <-chan struct{} { return becameIdle.Listen() }

// Idle reports whether no release is queued, also for a Drain, and none runs on a
// goroutine of this package or of package gcwatch.
func Idle() bool {
	return !gcwatch.Walking() && account.Process.Queued.Load()+account.Process.ToDrain.Load() == 0
}
