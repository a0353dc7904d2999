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
	next  atomic.Int64 // the time, in Unix nanoseconds, from which Poll looks again

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

// lasts has objects that the sweeper comes to last. The sweeper goes from small objects
// to large ones. Objects without pointers are behind the others of their size. Still
// larger ones have spans of their own, and are swept first.
//
// There are two exceptions. A P that needs a span for objects of a size sweeps those of
// that size first. So the next watch, which begins while this one's object waits for
// the sweeper, takes the other size. And the span from which a P allocates is swept at
// once. Objects of these two sizes have a span each. So an object is used when the next
// one has been allocated.
var lasts struct {
	n atomic.Uint32 // calls of afterSweep
	a atomic.Pointer[[32<<10 - 8]byte]
	b atomic.Pointer[[24 << 10]byte]
}

// afterSweep calls f after the next collection, when all objects that died in it are swept,
// with few exceptions. Next calls its functions earlier, mostly. since is a number of
// collections that have ended, and f gets it.
//
// This is one cleanup of the runtime, for an object that is swept last; see lasts. It
// may be lost. It is early if the program itself allocates objects of that size, or the
// runtime sweeps in another order. So f is for what had better be done then, and can be
// done later. It runs where the functions of Next run, and must return soon.
func afterSweep(f func(since uint64), since uint64) {
	if lasts.n.Add(1)%2 == 0 {
		addLast(&lasts.a, f, since)
	} else {
		addLast(&lasts.b, f, since)
	}
}

// addLast drops the object in last, after whose death f is called, and puts another one
// there.
func addLast[T any](last *atomic.Pointer[T], f func(since uint64), since uint64) {
	if last.Load() == nil {
		last.Store(new(T))
	}
	runtime.AddCleanup(last.Swap(new(T)), f, since)
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

// Poll calls the functions whose collection has passed without a word from the
// runtime, each on a goroutine of its own. It does so if two collections have ended
// since Next: the first of them may have begun before. It is cheap, and looks once in
// pollInterval at most. The caller may hold any lock that the functions do not need
// before they return from Next; it must not be pinned to its P.
func Poll() {
	if !waiting.some.Load() {
		return
	}
	now := time.Now()
	next := waiting.next.Load()
	if now.UnixNano() < next || inBubble(now) || !waiting.next.CompareAndSwap(next, now.Add(pollInterval).UnixNano()) {
		return
	}
	for _, c := range overdue() {
		go c.run()
	}
}

// overdue returns the calls since whose beginning two collections have ended.
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

// InBubble reports whether the goroutine is in a bubble of testing/synctest. What is
// started there belongs to the bubble: a timer runs on the bubble's time, and never
// if the bubble ends before; a goroutine keeps the bubble from ending. What has to
// outlive the bubble is started by a function that Next calls.
//
// Go does not tell a goroutine that it is in a bubble. But time there begins in the year
// 2000, and has no monotonic clock.
func InBubble() bool { return inBubble(time.Now()) }

func inBubble(now time.Time) bool { return now.Unix() < realClock || now == now.Round(0) }

const realClock = 1_577_836_800 // the beginning of 2020, in Unix seconds
