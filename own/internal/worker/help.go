package worker

import (
	"time"

	"github.com/cheapgo/cheap/internal/account"
)

// A pool with Options.Inline is served by the goroutines that make its owners: each
// releases something before or after it has begun a batch. So C gets memory back on a
// thread that asks for more, and in time. If no such goroutine comes for helpWithin,
// workers serve the pool until nothing is queued.
const (
	helpWithin = 2 * time.Millisecond

	// aMoment is how long a call of Help takes, if enough is queued. It ends with the call of
	// the release function, OnReleaseError or OnCollect that passes this time.
	aMoment = time.Millisecond
)

// A help is the state of a Call whose pool has Options.Inline. It is under work.mu.
type help struct {
	timer *time.Timer // calls unhelped; nil before the first job
	armed bool
	came  bool // a goroutine has called Help since the timer was started
	late  bool // none has; workers serve the pool

	rests []*worker // what goroutines have begun and left, because their time was over
}

// Help releases what takes a moment of what is queued, if there is anything, on the
// calling goroutine, which holds no lock that a release function takes and is in no bubble
// of testing/synctest.
func (c *Call) Help() {
	if queued.Load() == 0 || account.Releasing() {
		return
	}
	// Parents, and batches of one, are released apart, and there may be many of them for
	// each batch that is begun. So one release is not enough if it is short.
	for begin := Now(); c.helpOnce(begin.Add(aMoment)) && Now().Sub(begin) < aMoment/2; {
	}
}

// helpOnce goes on with what another goroutine has left, or releases what a worker would in
// half the time, until a time. It reports false if there is nothing.
func (c *Call) helpOnce(until time.Time) bool {
	work.mu.Lock()
	c.help.came = true
	var w *worker
	if last := len(c.help.rests) - 1; last >= 0 {
		w = c.help.rests[last]
		c.help.rests[last] = nil
		c.help.rests = c.help.rests[:last]
	} else if c.dead.first() != nil {
		w = newWorker()
		w.helps = true
		c.next(w, c.bundle/int(aBit/aMoment))
		c.serve()
		start(w, true)
	}
	work.mu.Unlock()
	if w == nil {
		return false
	}
	w.until = until
	w.turn()
	return true
}

// leave leaves what is not done to the next goroutine that helps, or to a goroutine of its
// own if none comes.
func (w *worker) leave() {
	work.mu.Lock()
	defer work.mu.Unlock()
	c := w.call
	w.measure()
	if c.help.late {
		w.goAlone()
		return
	}
	c.help.rests = append(c.help.rests, w)
	c.expectHelp()
}

// goAlone has a goroutine of its own end the jobs of a worker.
func (w *worker) goAlone() {
	w.until = time.Time{}
	go w.run()
}

// expectHelp starts the timer. The caller holds work.mu.
func (c *Call) expectHelp() {
	h := &c.help
	if h.armed {
		return
	}
	h.armed, h.came = true, false
	if h.timer == nil {
		h.timer = time.AfterFunc(helpWithin, c.unhelped)
	} else {
		h.timer.Reset(helpWithin)
	}
}

// unhelped is called by the timer. It leaves to workers what no goroutine has released.
func (c *Call) unhelped() {
	work.mu.Lock()
	defer work.mu.Unlock()
	c.help.armed = false
	switch {
	case c.dead.first() == nil && len(c.help.rests) == 0:
	case c.help.came:
		c.expectHelp()
	default:
		for _, w := range c.help.rests {
			w.goAlone()
		}
		c.help.rests = nil
		c.help.late = c.dead.first() != nil
		c.serve()
		hire()
	}
}

// isLate ends the service of workers when nothing is queued. The caller holds work.mu.
func (c *Call) isLate() { c.help.late = c.help.late && c.dead.first() != nil }
