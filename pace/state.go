package pace

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/gcwatch"
)

// A state says what the pacer is doing. It is changed by events, and only as
// transitions says. docs/internals.md has a drawing.
type state int32

const (
	idle       state = iota
	due              // a collection is to begin, as soon as MaxGCShare allows it
	collecting       // a collection that this package has started is under way
	draining         // a collection has ended, and the releases that it caused run
	refused          // as idle; but collections at a limit were futile, and requests there fail at once
	stopped          // after Stop
	states
)

// An event is what changes a state.
type event int32

const (
	reached    event = iota // the bytes have come for which a collection is due
	limitHit                // a request has met a limit, and demands a collection
	begun                   // the collection begins
	completed               // the collection that begun has ended
	externalGC              // a collection has ended that the program or the runtime has started
	drained                 // the releases have run, or make no progress
	futile                  // as drained; and this was one of several collections at a limit that freed nothing
	resumed                 // owners have come since, or time has passed
	stop                    // Stop is called
	events
)

// An edge says that an event leads from one state to another.
type edge struct {
	from state
	on   event
	to   state
}

// transitions are all edges but those of stop, which leads from every other state to
// stopped. An event for which a state has no edge is ignored: it has come too late, or
// another goroutine has caused the same one before. So only one of several goroutines
// gets to begin a collection.
var transitions = []edge{
	{idle, reached, due},
	{idle, limitHit, due},
	{idle, externalGC, draining},
	{due, begun, collecting},
	{due, externalGC, draining},
	{collecting, completed, draining},
	{draining, drained, idle},
	{draining, futile, refused},
	{refused, resumed, idle},
	{refused, reached, due},
	{refused, externalGC, draining},
}

const none = -1 // in table, where there is no edge

// table has transitions by state and event.
var table = func() (t [states][events]state) {
	for s := range t {
		for e := range t[s] {
			t[s][e] = none
		}
		t[s][stop] = stopped
	}
	t[stopped][stop] = none
	for _, e := range transitions {
		t[e.from][e.on] = e.to
	}
	return t
}()

// A machine is in a state, and counts the collections that it has gone through.
type machine struct {
	is atomic.Int32 // a state; written under mu

	mu    sync.Mutex // no other lock is taken while it is held
	begun int64      // collections that this package has started; under mu, as the rest
	ended int64      // of these, those after which the releases have run
	ours  bool       // it has started the one that is under way, or that ended last
}

func (m *machine) state() state { return state(m.is.Load()) }

// to makes the transition, and reports whether there is one.
func (m *machine) to(e event) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := table[m.state()][e]
	if next == none {
		return false
	}
	switch e {
	case begun:
		m.begun++
		m.ours = true
	case externalGC:
		m.ours = false
	case drained, futile:
		if m.ours {
			m.ended++
		}
	}
	m.is.Store(int32(next))
	return true
}

// counts returns how many collections this package has started, and after how many
// of them the releases have run.
func (m *machine) counts() (begun, ended int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun, m.ended
}

// A pacer exists from Start to Stop. There is one at a time.
//
// A goroutine that takes memory and reaches a bound calls pressure, in pressure.go.
// pressure decides whether a collection is due, and starts a goroutine for it; it
// never collects itself. That goroutine runs collect, in collect.go. Two more
// goroutines run by themselves: guard, in resident.go, while there is a limit, and give, in
// giveback.go, while much is counted outside the Go heap. After a collection
// that the program or the runtime has started, the function that awaitCollection has
// registered calls collected.
type pacer struct {
	machine

	maxShare float64 // Options.MaxGCShare, or the default

	limit   atomic.Int64 // that the program has set, 0 if there is none
	cgroups atomic.Int64 // that of the cgroups, likewise
	goLimit atomic.Int64 // the runtime's memory limit as set here, 0 if it was not set

	bound           atomic.Int64 // number of reclaimable bytes at which those who take wait
	heldAt          atomic.Int64 // number of held bytes at which the limit needs a check
	notBefore       atomic.Int64 // no collection begins before this time, because of maxShare; in Unix nanoseconds
	notBeforeScarce atomic.Int64 // the same, when there is no room, because of hardShare
	stuck           atomic.Int64 // releases that were queued when a drain saw no progress, or 0
	yielded         atomic.Int64 // when a goroutine has yielded last; in Unix nanoseconds
	loose           atomic.Int64 // until this time waits at the bound are short; in Unix nanoseconds

	barren   atomic.Bool  // the last collection and all its releases have freed nothing
	atBound  waitQueue    // goroutines that have taken beyond the bound
	atLimit  waitQueue    // goroutines whose request has met a limit
	admitted atomic.Int64 // number of goroutines that were let pass at the bound and have taken nothing since

	metered atomic.Bool   // the limit is about what the kernel counts; see gauge
	scarce  atomic.Bool   // then: there is no room
	over    chan struct{} // closed in Stop; guard and give end
	arenas  atomic.Int64  // of malloc, when it first gave memory back at a limit, if they are not bounded

	awaiting atomic.Bool    // a sentinel is registered
	tasks    sync.WaitGroup // goroutines that collect or drain; Add under mu

	mallocMu     sync.Mutex  // held by the one goroutine in unlock that reads malloc; mu is taken while it is held
	mallocReader reader      // under mallocMu
	atMalloc     atomic.Bool // mallocMu is held

	mu sync.Mutex
	// The rest is under mu.
	todo     mallocTask
	baseline baseline
	backoff  int64
	demanded bool             // a request at a limit demands the collection that is due or under way
	costs    [4]time.Duration // of the last collections
	leads    [4]int64         // reclaimable bytes that came during each, until its releases had run
	reader   reader
	gauge    gauge
	before   int64 // the runtime's memory limit before Start
	changed  bool  // the program has changed that limit since

	guarding, giving bool  // guard runs; give runs
	giver            giver // of give

	futileCount int       // collections at a limit, in a row, that freed nothing
	futileEver  int64     // in refused: reclaimable bytes that had ever been taken then
	futileUntil time.Time // in refused: its end, whether or not owners come

	stats stats
}

// stats are counters since Start.
type stats struct {
	cycles, released, time, yields, waits, waited, refusals, trims, trimmed atomic.Int64
}

// begin sets the first bounds.
func (p *pacer) begin() {
	p.before = debug.SetMemoryLimit(-1)
	if p.most() != 0 {
		runtime.GC() // to know what the Go heap needs
	}
	var s sample
	if p.metered.Load() {
		s = p.sampleFirst()
	}
	p.mu.Lock()
	account.Process.SetPacer(p)
	r := p.reader.read()
	account.Process.Refresh()
	reclaimable, _ := account.Process.Reclaimable()
	p.baseline = baseline{heap: r.live, reclaimable: reclaimable}
	p.firstSample(s, r)
	p.setBounds(r)
	p.unlock()
	p.startLimit()
}

// startLimit has collected called after each collection, if there is a limit: the
// runtime's memory limit must also follow releases. It starts guard, too.
func (p *pacer) startLimit() {
	if p.most() == 0 {
		return
	}
	p.awaitCollection()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startGuard()
}

// startGuard starts guard if there is none. In a bubble of testing/synctest it would belong to the
// bubble: then collected starts it, after the next collection. The caller holds p.mu.
func (p *pacer) startGuard() {
	if p.metered.Load() && !p.guarding && p.state() != stopped && !gcwatch.InBubble() {
		p.guarding = true
		p.goUntilOver(p.guard)
	}
}

// goUntilOver starts a goroutine that ends when over is closed. It is not called in a bubble of
// testing/synctest: over would belong to the bubble. The caller holds p.mu.
func (p *pacer) goUntilOver(f func(over <-chan struct{})) {
	if p.over == nil {
		p.over = make(chan struct{})
	}
	p.tasks.Add(1)
	go f(p.over)
}

// end stops the pacer, and restores the runtime's memory limit. All who wait see
// that it is stopped.
func (p *pacer) end() {
	p.mu.Lock()
	account.Process.SetPacer(nil)
	p.to(stop) // from now on setBounds does nothing, and nothing begins
	if p.over != nil {
		close(p.over)
	}
	p.restore()
	p.mu.Unlock()
	p.tasks.Wait()
}
