package pace

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/giveback"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// A state says what the pacer is doing. It is changed by events, and only as
// transitions says. docs/internals.md has a drawing.
type state int32

const (
	idle       state = iota
	due              // a collection is to begin, as soon as MaxGCShare allows it
	collecting       // a collection that this package has started is under way
	draining         // a collection has ended, and the releases that it caused run
	refused          // no collection runs; the last ones at a limit were futile, and requests there fail at once
	stopped          // after Stop
	states
)

// An event is what changes a state.
type event int32

const (
	reached    event = iota // there are as many reclaimable bytes as a collection is due at
	limitHit                // a request has met a limit, and demands a collection
	begun                   // the collection begins
	completed               // the collection that begun has ended
	externalGC              // a collection has ended that the program or the runtime has started
	drained                 // the releases have run, or make no progress
	futile                  // as drained, after mostFutile collections in a row at a limit that freed nothing
	resumed                 // bytes were added to the reclaimable ones since futile, or futileUntil has passed
	stop                    // Stop is called
	events
)

// An edge says that an event leads from one state to another.
type edge struct {
	from state
	on   event
	to   state
}

// transitions are all edges but those of the event stop, which leads from each state to
// stopped. An event for which a state has no edge is ignored: it is late, or another
// goroutine has caused the same event before. So one goroutine begins a collection.
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
	ended int64      // how many of begun have ended, their releases included
	ours  bool       // this package has started the collection that is under way, or that ended last
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

// counts returns how many collections this package has started, and how many of those
// have ended, their releases included.
func (m *machine) counts() (begun, ended int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun, m.ended
}

// A pacer exists from Start to Stop. There is one at a time.
//
// Its goroutines, and what they run:
//
//	one that takes memory and reaches a bound    Pressure (pressure.go)
//	one for each collection that is due          collect (collect.go); launch starts it
//	one after each other collection              follow (collect.go); collected starts it
//	one while there is a limit                   guard (limit.go)
//	one while caches are asked                   press (caches.go), and one for each call of their functions
//
// Package giveback has another one. Pressure never collects. awaitCollection has collected called after each collection,
// whatever starts it.
type pacer struct {
	machine

	maxShare float64 // Options.MaxGCShare, or the default

	limit   atomic.Int64 // the limit that the program has set, 0 if there is none
	cgroups atomic.Int64 // the limit of the cgroups, 0 if there is none
	goLimit atomic.Int64 // the runtime's memory limit that this package has set, 0 if it has set none

	bound           atomic.Int64 // number of reclaimable bytes at which those who take wait
	yieldAt         atomic.Int64 // number of reclaimable bytes from which on those who take yield, while busy
	heldAt          atomic.Int64 // number of held bytes at which the limit needs a check
	takenAt         atomic.Int64 // number of reclaimable bytes ever taken at which the limit needs a check, if metered; else noBound
	takenMost       atomic.Int64 // that number when all that was left is taken: goroutines wait for the check that is under way; noBound if not metered
	notBefore       atomic.Int64 // no collection begins before this time, because of maxShare; a Clock of package gcwatch, as those that follow
	notBeforeScarce atomic.Int64 // takes the place of notBefore while there is no room; because of hardShare
	stuck           atomic.Int64 // releases that were queued when a drain saw no progress, or 0
	yielded         atomic.Int64 // when a goroutine yielded last
	loose           atomic.Int64 // until this time waits at the bound are short

	barren   atomic.Bool  // the last collection and all its releases have freed nothing
	atBound  waitQueue    // goroutines that have taken beyond the bound
	atLimit  waitQueue    // goroutines whose request has met a limit
	admitted atomic.Int64 // number of goroutines that were let pass at the bound and have taken nothing since
	wanted   atomic.Int64 // bytes that requests at the program's limit wait for

	metered atomic.Bool            // the limit is about what the kernel counts; see gauge
	scarce  atomic.Bool            // metered, and there is no room
	over    chan struct{}          // closed in Stop; guard ends
	arenas  atomic.Int64           // number of malloc's arenas when malloc first gave memory back at a limit; 0 before, and if they are bounded
	judged  atomic.Pointer[judged] // the verdict of the last refusals

	awaiting atomic.Bool    // a sentinel is registered
	tasks    sync.WaitGroup // goroutines that collect or drain; Add under mu

	todo         atomic.Int32 // a mallocTask; written under mu
	mallocMu     sync.Mutex   // held by the one goroutine in tend that does it; mu is taken while it is held
	mallocReader reader       // under mallocMu
	atMalloc     atomic.Bool  // mallocMu is held

	readHeld time.Time // from when on press reads again what caches hold; press alone uses it

	mu sync.Mutex
	// The rest is under mu.
	control
	reader   reader
	usages   []usage // empty: a limit is about what is counted
	uses     []use   // of the last look
	aimed    aim     // likewise
	demanded bool    // a request at a limit demands the collection that is due or under way
	doubtful bool    // the last collection has freed nothing, and its sweep was not over for certain
	before   int64   // the runtime's memory limit before Start
	changed  bool    // the program has changed that limit since

	unread error // Stats.Unread; does not change

	inUse    int64         // of the last look; see space
	pressing bool          // press runs
	pressed  int64         // how much was needed when press has looked last
	hurry    chan struct{} // gets a value when it is urgent since then, or a quarter more is needed

	guarding bool          // guard runs
	giving   *giveback.Use // since begin
	given    int64         // the limit that it knows

	futileCount int // how many collections in a row at a limit freed nothing

	stats stats
}

// stats are counters since Start.
type stats struct {
	cycles, released, time, yields, yielded, waits, waited, refusals atomic.Int64

	trims, trimmed int64 // what package giveback had counted before
}

// begin sets the first bounds.
func (p *pacer) begin() {
	p.before = debug.SetMemoryLimit(-1)
	p.stats.trims, p.stats.trimmed = giveback.Trims.Load(), giveback.Trimmed.Load()
	p.giving = giveback.Begin(p.most(), false)
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
	p.collector.baseline = baseline{heap: r.live, reclaimable: reclaimable}
	p.firstSample(s)
	p.adjust()
	p.mu.Unlock()
	p.tend()
	p.startLimit()
}

// startLimit, if there is a limit, has collected called after each collection, because the
// runtime's memory limit must also follow releases, and starts guard.
func (p *pacer) startLimit() {
	if p.most() == 0 {
		return
	}
	p.awaitCollection()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startGuard()
}

// startGuard starts guard if it does not run. In a bubble of testing/synctest it starts nothing, because
// guard would belong to the bubble: collected calls startGuard after the next collection. The caller holds p.mu.
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

// end stops the pacer, and restores the runtime's memory limit. Goroutines that wait for
// room go on: the state is stopped.
func (p *pacer) end() {
	p.mu.Lock()
	account.Process.SetPacer(nil)
	p.to(stop) // from now on adjust does nothing, and nothing begins
	if p.over != nil {
		close(p.over)
	}
	p.restore()
	p.mu.Unlock()
	p.tasks.Wait()
	p.giving.End()
}
