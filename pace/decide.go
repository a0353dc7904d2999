package pace

import (
	"runtime"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/giveback"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// The pacer has four parts, which do not know each other:
//
//	limit       how many bytes may come, and how many of them the Go heap may take (gauge.go)
//	collector   when the next collection begins, and who gives way to it (rule.go)
//	returner    when malloc is read, and gives memory back (malloc.go)
//	shortage    how much caches are to free (caches.go)
//
// A look reads all numbers at once. decide turns them into a plan: the limit finds a space, and the other three
// decide by that. It reads no clock and changes nothing, so tests and a simulator call it
// without a process. apply does what the plan says.

// A view is what a look has read.
type view struct {
	reading // of the runtime

	at    time.Time
	state state
	limit int64 // the smallest limit, 0 if there is none
	uses  []use // what counts against it as the kernel says; empty if the limit is about what is counted

	held, declared    int64 // bytes in all accounts, and in those whose holders declare sizes
	reserved          int64 // the part of held that is for resources about to be made
	reclaimable, ever int64 // bytes that collections could release, and how many there ever were
	idle              int64 // bytes that no heap uses, and that are not given back
	mean, largest     int64 // roughly, of the sizes of resources lately
	contended         bool  // requests wait in line
	wanted            int64 // bytes that requests at the limit wait for
	malloc            bool  // malloc can give memory back

	goroutines       int64
	anonymous, files int64 // resident bytes of the process that are not of files, and those that are
}

// A use is what one usage has read.
type use struct {
	by          usage
	used, limit int64
}

// look reads all that decide needs. The caller holds p.mu; the uses are those of the last look.
func (p *pacer) look() view {
	account.Process.Refresh()
	v := viewOf(p.reader.read())
	v.state, v.wanted = p.state(), p.wanted.Load()
	p.uses = p.uses[:0]
	for _, u := range p.usages {
		used, limit := u.read()
		p.uses = append(p.uses, use{u, used, limit})
	}
	v.uses = p.uses
	v.limit = p.most() // after that: a cgroup may have got another one
	return v
}

// viewOf returns the view of a process without a limit.
func viewOf(r reading) view {
	l := &account.Process
	reclaimable, ever := l.Reclaimable()
	all, files := procfs.Self()
	return view{
		reading: r, at: time.Now(),
		held: l.Held(), declared: l.HeldDeclared(), reserved: l.Reserved(), reclaimable: reclaimable, ever: ever,
		idle: int64(span.Idle()), mean: l.MeanCharge(), largest: l.LargestCharge(), contended: l.Contended(), malloc: l.Malloc() != nil,
		goroutines: int64(runtime.NumGoroutine()), anonymous: all - files, files: files,
	}
}

// control is what the parts remember from one look to the next.
type control struct {
	gauge     gauge
	collector collector
	returner  returner
	shortage  shortage

	leastRoom float64 // Options.LeastRoom, or the default
}

// A plan is what a look leads to.
type plan struct {
	gauge gauge // as it is after the look
	space space
	aim   aim
	task  mallocTask
	short shortage
}

// decide returns the plan for what a look has read.
func (c *control) decide(v view) plan {
	g := c.gauge
	s := g.find(v)
	return plan{gauge: g, space: s, aim: c.collector.aim(v, s), task: c.returner.task(v, s), short: c.shortage.find(v, s, c.leastRoom)}
}

// adjust looks, decides and applies the plan. The caller holds p.mu, and calls tend after it has unlocked p.mu.
func (p *pacer) adjust() {
	if p.state() == stopped {
		return
	}
	v := p.look()
	p.apply(v, p.decide(v))
}

// apply sets the bounds at which Pressure or Check is called again, and the runtime's memory limit, and notes
// whether a collection is due and what is to be done with malloc. The caller holds p.mu.
func (p *pacer) apply(v view, n plan) {
	s, a := n.space, n.aim
	p.gauge, p.collector.baseline, p.aimed, p.inUse = n.gauge, a.baseline, a, s.inUse
	account.Process.SetScale(n.gauge.batchScale())
	p.scarce.Store(s.scarce)
	p.setGoLimit(s.goLimit, v.limit/256)
	p.todo.Store(int32(n.task))
	if a.event != none {
		p.to(a.event)
	}
	p.bound.Store(a.bound)
	p.yieldAt.Store(a.yieldAt)
	account.Process.SetRoomy(a.roomy)
	p.heldAt.Store(s.heldAt)
	p.takenAt.Store(s.takenAt)
	p.takenMost.Store(s.takenMost)
	if p.busy() {
		a.reclaimableAt = 0 // each allocation gives way
	}
	account.Process.SetBounds(account.Bounds{HeldAt: s.heldAt, ReclaimableAt: a.reclaimableAt, ReclaimableBelow: a.below, Ceiling: s.ceiling})
	if v.limit != p.given {
		p.given = v.limit
		p.giving.SetLimit(v.limit)
	}
	p.giving.SetRoom(s.roomy)
	if v.held >= giveback.Least {
		p.giving.Wake()
	}
	p.askCaches(n.short)
}
