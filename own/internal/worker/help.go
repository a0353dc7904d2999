package worker

import (
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// A pool with Inline is served by the goroutines that make its owners: each
// releases something before or after it has begun a batch. So C gets memory back
// before it is asked for more, and on the same thread. If no such goroutine comes for
// helpWithin, workers serve the pool until nothing is queued.
const (
	helpWithin = 2 * time.Millisecond

	// aMoment is how long a call of Help takes, if enough is queued. It ends with the call of
	// the release function, OnReleaseError or OnCollect that passes this time.
	aMoment = time.Millisecond
)

// A help is the state of a Dispatcher whose pool has Inline. It is under work.mu.
type help struct {
	timer  *time.Timer // calls unhelped; nil before the first job
	armed  bool
	helped bool // a goroutine has called Help since the timer was started
	late   bool // none has; workers serve the pool

	rests []*worker // what goroutines have begun and left, because their time was over
}

// Help releases queued entries on the calling goroutine, for about aMoment. The goroutine
// holds no lock that a release function takes, and is in no bubble of testing/synctest.
func (d *Dispatcher) Help() {
	if account.Process.Queued.Load() == 0 || gcwatch.InSection() {
		return
	}
	// Parents, and batches of one, are released apart, and there may be many of them for
	// each batch that is begun. So one release is not enough if it is short.
	for begin := Now(); d.helpOnce(begin.Add(aMoment)) && Now().Sub(begin) < aMoment/2; {
	}
}

// helpOnce goes on with what another goroutine has left, or takes jobs with half as many
// entries as a worker would. It stops at the time until. It reports false if there is
// nothing to do.
func (d *Dispatcher) helpOnce(until time.Time) bool {
	work.mu.Lock()
	d.help.helped = true
	var w *worker
	if last := len(d.help.rests) - 1; last >= 0 {
		w = d.help.rests[last]
		d.help.rests[last] = nil
		d.help.rests = d.help.rests[:last]
	} else if d.dead.first() != nil {
		w = newWorker()
		w.helps = true
		d.next(w, d.bundle/int(aBit/aMoment))
		d.serve()
		start(w, true)
	}
	work.mu.Unlock()
	if w == nil {
		return false
	}
	w.until = until
	w.runJobs()
	return true
}

// leave leaves what is not done to the next goroutine that helps, or to a goroutine of its
// own if none comes.
func (w *worker) leave() {
	work.mu.Lock()
	defer work.mu.Unlock()
	d := w.dispatcher
	w.measure()
	if d.help.late {
		w.goAlone()
		return
	}
	d.help.rests = append(d.help.rests, w)
	d.expectHelp()
}

// goAlone starts a goroutine that ends the jobs of a worker.
func (w *worker) goAlone() {
	w.until = time.Time{}
	go w.run()
}

// expectHelp starts the timer. The caller holds work.mu.
func (d *Dispatcher) expectHelp() {
	h := &d.help
	if h.armed {
		return
	}
	h.armed, h.helped = true, false
	if h.timer == nil {
		h.timer = time.AfterFunc(helpWithin, d.unhelped)
	} else {
		h.timer.Reset(helpWithin)
	}
}

// unhelped is called by the timer. It leaves to workers what no goroutine has released.
func (d *Dispatcher) unhelped() {
	work.mu.Lock()
	defer work.mu.Unlock()
	d.help.armed = false
	switch {
	case d.dead.first() == nil && len(d.help.rests) == 0:
	case d.help.helped:
		d.expectHelp()
	default:
		for _, w := range d.help.rests {
			w.goAlone()
		}
		d.help.rests = nil
		d.help.late = d.dead.first() != nil
		d.serve()
		hire()
	}
}

// isLate ends the service of workers when nothing is queued. The caller holds work.mu.
func (d *Dispatcher) isLate() { d.help.late = d.help.late && d.dead.first() != nil }
