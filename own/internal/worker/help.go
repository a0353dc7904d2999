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

	// aMoment is how long a call of Help takes, if enough is queued.
	aMoment = time.Millisecond
)

// A help is the state of a Call whose pool has Options.Inline. It is under work.mu.
type help struct {
	timer *time.Timer // calls unhelped; nil before the first job
	armed bool
	came  bool // a goroutine has called Help since the timer was started
	late  bool // none has; workers serve the pool
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
	for begin := time.Now(); c.helpOnce() && time.Since(begin) < aMoment/2; {
	}
}

// helpOnce releases what a worker would in half the time. It reports false if nothing is
// queued.
func (c *Call) helpOnce() bool {
	work.mu.Lock()
	c.help.came = true
	if c.dead.first() == nil {
		work.mu.Unlock()
		return false
	}
	w := newWorker()
	w.helps = true
	c.next(w, c.bundle/int(aBit/aMoment))
	c.serve()
	start(w, true)
	work.mu.Unlock()
	w.turn()
	return true
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
	case c.dead.first() == nil:
	case c.help.came:
		c.expectHelp()
	default:
		c.help.late = true
		c.serve()
		hire()
	}
}

// isLate ends the service of workers when nothing is queued. The caller holds work.mu.
func (c *Call) isLate() { c.help.late = c.help.late && c.dead.first() != nil }
