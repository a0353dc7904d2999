package gcwatch

import (
	"sync"
	"sync/atomic"
	"weak"

	"github.com/cheapgo/cheap/internal/mem/race"
)

// rounds say when to walk. A round is the time from one collection to the next, as
// Next reports them. While functions wait, one round follows the other:
//
//	collections          N                         N+1                       N+2
//	               mark, sweep               mark, sweep               mark, sweep
//	Next                   round 7 begins            8                         9
//	end of a sweep                   walk                      walk
//
// A sweep may take a large part of the time between two collections. So add begins walks of one
// shard while the runtime sweeps: see askEarly.
//
// A walk at the end of a sweep finds all objects that died in the collection. But the report of
// that end may be lost, or be early. So a walk also begins with a round if the last round had no
// report. What died in the last collection is found then, because its sweep was over before this
// collection began.
//
// If no function waits, no round begins until one is added. So an idle program has neither a
// goroutine nor a timer of this package.
var rounds struct {
	armed    atomic.Bool   // a round goes on
	current  atomic.Uint32 // number, modulo 1<<32
	sweeping atomic.Bool   // the round has begun, and no end of a sweep was reported

	mu sync.Mutex
	// The rest is under mu.
	number uint64 // of the round
	first  uint64 // the number when the rounds were armed
	swept  bool   // the end of a sweep was reported in this round

	// Objects that were dropped at the beginning of the last rounds, this one first.
	probes [4]weak.Pointer[byte]
}

// A probe has no pointers. It has 16 bytes, because smaller ones share their slots.
type probe [16]byte

// reported is true. Tests take away the reports of ends of sweeps.
var reported atomic.Bool

func init() {
	reported.Store(true)
	if race.Told {
		// The runtime fills its table of metrics when they are first read. A heap may do that
		// where the race detector sees no lock, and it would report the next one that reads.
		Cycles()
	}
}

// Round returns the number of the round that goes on, modulo 1<<32. A round is the time
// between two collections.
func Round() uint32 { return rounds.current.Load() }

// arm begins a round if there is none.
func arm() {
	if rounds.armed.CompareAndSwap(false, true) {
		rounds.mu.Lock()
		rounds.first = rounds.number + 1
		rounds.mu.Unlock()
		begin()
	}
}

// begin begins a round.
func begin() {
	since := orderedCycles()
	p := new(probe)
	rounds.mu.Lock()
	rounds.number++
	rounds.current.Store(uint32(rounds.number))
	rounds.swept = false
	// A probe was dropped before the round. So it died in the collection after that
	// at the latest, and was swept one collection later.
	if old := rounds.probes[3]; peeking.Load() && old != (weak.Pointer[byte]{}) && !isZero(old) {
		peeking.Store(false)
	}
	copy(rounds.probes[1:], rounds.probes[:])
	rounds.probes[0] = weak.Make(&p[0])
	rounds.mu.Unlock()
	Next(func() { next(since) })
}

// next begins a round, or ends the last one if no function waits. It runs after a
// collection, mostly while that is swept.
func next(since uint64) {
	if count() == 0 {
		rounds.armed.Store(false)
		// A function that was added meanwhile has armed the rounds, or is seen here.
		if count() > 0 {
			arm()
		}
		return
	}
	rounds.mu.Lock()
	n := rounds.number
	lost := n > rounds.first && !rounds.swept
	rounds.mu.Unlock()
	begin()
	rounds.sweeping.Store(true)
	if peeking.Load() && lost || !peeking.Load() && n%2 == 0 {
		ask(since, 0)
	}
}

// A Follower is told when sweeps and walks are over. Its methods run where the functions of
// AddCleanup run, and must return soon.
type Follower interface {
	// Swept is called at the end of each sweep that is reported, before the walk, while
	// functions wait, and by [Walk].
	Swept()

	// Walked is called after each walk that no other follows at once: when Walking is false,
	// or another walk has begun.
	Walked()
}

// follower is nil in a program without package own.
var follower atomic.Pointer[Follower]

// Follow makes f the only Follower. Package own calls it while it is initialized: sweeps
// and walks that ended earlier have found nothing of package own.
func Follow(f Follower) { follower.Store(&f) }

// swept is called by afterSweep: mostly at the end of a sweep.
func swept(since uint64) {
	if !reported.Load() {
		return
	}
	if f := follower.Load(); f != nil {
		(*f).Swept()
	}
	rounds.mu.Lock()
	rounds.swept = true
	rounds.sweeping.Store(false)
	rounds.mu.Unlock()
	if peeking.Load() {
		ask(since, since+1) // at least: it may be of the next one, if that began before the report was made
	}
}
