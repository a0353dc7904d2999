package gcwatch

import (
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// How the end of a collection is noticed: by a cleanup, by a finalizer, by a filler, or by Poll. See
// by for the first three. How the end of a sweep is noticed is in sweep.go.

// A nextCall is a function that waits for a collection.
type nextCall struct {
	f      func()
	taken  atomic.Bool // f was called, or is about to be called
	cycles uint64      // number of collections that had ended when the wait began
	number uint64      // of the calls of Next, in order
}

// waiting are the calls that are not taken.
var waiting struct {
	mu    sync.Mutex
	calls []*nextCall
	some  atomic.Bool
	next  atomic.Int64 // the Clock from which Poll checks again

	number uint64 // number of calls of Next
	filled bool   // the runtime calls a filler after the next collection

	sample [1]metrics.Sample
}

// Next calls f once, after a garbage collection that began after the call of Next.
// A collection begins by stopping the world, so sections that were pinned to their
// P (see package percpu) when Next was called have ended when f runs.
//
// f runs on a goroutine of the runtime or of this package, never in a bubble of
// testing/synctest. It must return soon, because cleanups and finalizers of the
// program wait for it. It may call Next. Next keeps f, and the objects that f refers
// to, reachable until f has run. While the collector is off f does not run, and at the
// end of the program it is forgotten.
//
//go:norace
func Next(f func()) {
	c := &nextCall{f: f}
	waiting.mu.Lock()
	c.cycles = cycles()
	waiting.number++
	c.number = waiting.number
	waiting.calls = append(waiting.calls, c)
	waiting.some.Store(true)
	fill := !waiting.filled && by&byFiller != 0
	waiting.filled = waiting.filled || fill
	waiting.mu.Unlock()
	if fill {
		addFiller(c.number, c.cycles)
	}
	if by&byCleanup != 0 {
		runtime.AddCleanup(&sentinel{}, (*nextCall).run, c)
	}
	if by&byFinalizer != 0 {
		runtime.SetFinalizer(&sentinel{}, func(*sentinel) { c.run() })
	}
}

// by are the ways by which Next learns of a collection. Tests take some away.
var by = byCleanup | byFinalizer | byFiller

const (
	byCleanup = 1 << iota
	byFinalizer
	byFiller
)

// A filler calls the functions that waited when it was made, and have not been
// called after a collection. One is made when there is none and a function waits.
type filler struct {
	upTo  uint64      // the number of the last of these functions
	taken atomic.Bool // run was called
}

// perBlock is at least the number of cleanups that a P collects before it passes them
// on to all Ps: a block of 512 bytes has three words for each (cleanupBlockSize in
// runtime/mcleanup.go).
const perBlock = 512 / (3 * unsafe.Sizeof(uintptr(0)))

// addFiller makes a filler. Its object has perBlock cleanups. One P queues all of them, one
// after the other, when it sweeps the object. So the block of the P gets full, and is
// passed on with at least one of them, whatever happens to the P later. 21 cleanups
// take 20 µs, once for each collection.
func addFiller(upTo, since uint64) {
	w := &filler{upTo: upTo}
	s := &sentinel{}
	for range perBlock {
		runtime.AddCleanup(s, (*filler).run, w)
	}
	afterSweep(swept, since)
}

// run calls the functions, and makes another filler if more of them wait. Only the
// first of the cleanups has an effect.
//
//go:norace
func (w *filler) run() {
	if w.taken.Swap(true) {
		return
	}
	waiting.mu.Lock()
	var due []*nextCall
	for _, c := range waiting.calls {
		if c.number <= w.upTo {
			due = append(due, c)
		}
	}
	upTo, since := waiting.number, cycles()
	more := len(waiting.calls) > len(due) && by&byFiller != 0
	waiting.filled = more
	waiting.mu.Unlock()
	if more {
		addFiller(upTo, since)
	}
	for _, c := range due {
		c.run()
	}
}

// A sentinel is never reachable. The collection that is under way while it is
// allocated does not free it, the next one does.
//
// Its size is 16 bytes. The runtime puts smaller objects without pointers into one
// slot, and all of a slot stays as long as one object in it is reachable.
type sentinel struct{ _ [16]byte }

// run calls f, unless it was called.
//
//go:norace
func (c *nextCall) run() {
	if c.taken.Swap(true) {
		return
	}
	waiting.mu.Lock()
	if i := slices.Index(waiting.calls, c); i >= 0 {
		waiting.calls = slices.Delete(waiting.calls, i, i+1)
	}
	waiting.some.Store(len(waiting.calls) > 0)
	waiting.mu.Unlock()
	f := c.f
	c.f = nil // the other object of the runtime's may refer to c for some more time
	f()
}

// Poll calls the functions whose collection has ended, but was not reported by the
// runtime, each on a goroutine of its own. It does so if two collections have ended
// since Next: the first of them may have begun before. It is cheap, and checks once
// in pollInterval at most. The caller may hold any lock that the functions do not
// need before they return from Next; it must not be pinned to its P.
func Poll() {
	if !waiting.some.Load() {
		return
	}
	now := time.Now()
	next := waiting.next.Load()
	if Clock(now) < next || inBubble(now) || !waiting.next.CompareAndSwap(next, Clock(now.Add(pollInterval))) {
		return
	}
	for _, c := range overdue() {
		go c.run()
	}
}

// overdue returns the calls c of Next with cycles() >= c.cycles + 2.
func overdue() (due []*nextCall) {
	waiting.mu.Lock()
	defer waiting.mu.Unlock()
	ended := cycles()
	for _, c := range waiting.calls {
		if ended >= c.cycles+2 {
			due = append(due, c)
		}
	}
	return due
}

const pollInterval = 20 * time.Millisecond

// Cycles returns the number of collections that have ended.
//
//go:norace
func Cycles() uint64 {
	waiting.mu.Lock()
	defer waiting.mu.Unlock()
	return cycles()
}

// cycles returns the number of collections that have ended. The caller holds
// waiting.mu. The heap may call Next where the race detector sees no lock.
//
//go:norace
func cycles() uint64 {
	waiting.sample[0].Name = "/gc/cycles/total:gc-cycles"
	metrics.Read(waiting.sample[:])
	return waiting.sample[0].Value.Uint64()
}
