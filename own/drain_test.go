package own

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// TestDrainReleasesOnItsGoroutine closes, forgets and destroys: releases are
// queued only, and run in Drain, on the goroutine that calls it.
func TestDrainReleasesOnItsGoroutine(t *testing.T) {
	w := newWorld(t, 100)
	p := w.pool(Options{Run: new(Queue).Run()})
	me := gcwatch.GoroutineID()
	w.before = func([]*cell) {
		if id := gcwatch.GoroutineID(); id != me {
			t.Errorf("released on goroutine %d, and Drain is called on %d", id, me)
		}
	}
	mustQueue := func(n int64, when string) {
		t.Helper()
		if s := p.Stats(); s.Queued != n || w.died.Load() != 0 {
			t.Fatalf("%s: %d queued, %d released, want %d and none", when, s.Queued, w.died.Load(), n)
		}
	}
	if n := drainPool(p, 0); n != 0 {
		t.Errorf("Drain of nothing: %d", n)
	}
	held := w.ownSome(t, p, 10, 16)
	for _, m := range held[:5] {
		m.Close()
		if !m.Closed() {
			t.Error("not closed")
		}
	}
	mustQueue(5, "Close")
	testcall.Aside(func() { held[5].Use(func(unsafe.Pointer) { held[5].Close() }) })
	mustQueue(6, "Close in Use")
	testcall.Aside(func() {
		for range 20 {
			w.own(t, p, 16)
		}
		w.own(t, p, 1<<20)
	})
	for range 3 {
		cleanups(t)
	}
	// The first few share a batch with the owners that are held.
	s := p.Stats()
	if s.Queued < 7 || s.Queued > 27 || w.died.Load() != 0 {
		t.Fatalf("%+v after the collection, and %d released", s, w.died.Load())
	}
	if s.OldestQueued <= 0 {
		t.Errorf("the oldest has been queued for %v", s.OldestQueued)
	}
	runtime.KeepAlive(held)
	e := destroyError(t, p, waiting(0))
	if e.Queued != 31 || e.InUse+e.Waiting+e.Releasing != 0 {
		t.Errorf("%+v", e)
	}
	mustQueue(31, "CloseWait")
	if n := drainPool(p, 7); n != 7 || w.died.Load() != 7 {
		t.Errorf("Drain(7): %d, and %d released", n, w.died.Load())
	}
	if s := p.Stats(); s.Queued != 24 || s.Live != 24 {
		t.Errorf("%+v", s)
	}
	if n := drainPool(p, -1); n != 24 || w.alive() != 0 {
		t.Errorf("Drain(-1): %d, and %d alive", n, w.alive())
	}
	mustStats(t, p, Stats{})
	if p.Stats().OldestQueued != 0 {
		t.Error("something is queued")
	}
}

// TestDrainTakesNoMoreThanAsked drains batches that the collector found, bit by
// bit.
func TestDrainTakesNoMoreThanAsked(t *testing.T) {
	w := newWorld(t, 1000)
	p := w.pool(Options{Run: new(Queue).Run()})
	var held []*thing
	testcall.Aside(func() {
		for i := range 1000 {
			if m := w.own(t, p, 100); i%7 == 0 {
				held = append(held, m)
			}
		}
	})
	for i, m := range held {
		if i%2 == 0 {
			m.Close()
		}
	}
	held = nil
	wait(t, "all are queued", func() bool {
		cleanups(t)
		return p.Stats().Queued == 1000
	})
	sum := 0
	for _, max := range []int{1, 2, 3, 100, 5, 500, 1} {
		n := drainPool(p, max)
		if sum += n; n != max || w.died.Load() != int64(sum) || p.Stats().Queued != int64(1000-sum) {
			t.Fatalf("Drain(%d): %d; %d of %d released; %+v", max, n, w.died.Load(), sum, p.Stats())
		}
	}
	if n := drainPool(p, 10_000); n != 1000-sum || w.alive() != 0 {
		t.Errorf("Drain of the rest: %d, and %d alive", n, w.alive())
	}
	mustDestroy(t, p)
}

// TestCloseWhileDraining closes in a release function that Drain calls, which
// releases at once, and meanwhile on another goroutine, which queues.
func TestCloseWhileDraining(t *testing.T) {
	w := newWorld(t, 10)
	p, other := w.pool(Options{Run: new(Queue).Run()}), w.pool(Options{Run: new(Queue).Run()})
	first, inner, elsewhere, foreign := w.own(t, p, 10), w.own(t, p, 10), w.own(t, p, 10), w.own(t, other, 10)
	parent := w.own(t, p, 10)
	child := w.ownUnder(t, p, parent, 10)
	parent.Close()
	w.before = func(cells []*cell) {
		if cells[0] != first.cell {
			return
		}
		inner.Close()
		mustBeReleased(t, inner.cell, "by Close in Drain")
		testcall.Aside(func() { elsewhere.Close() })
		mustBeAlive(t, elsewhere.cell, "by Close on another goroutine")
		foreign.Close()
		mustBeAlive(t, foreign.cell, "by the Drain of another pool")
		child.Close()
		mustBeReleased(t, child.cell, "by Close in Drain")
		mustBeReleased(t, parent.cell, "with its last child, in Drain")
		if n := drainPool(p, 0); n != 0 {
			t.Errorf("Drain in Drain: %d", n)
		}
		if n := drainPool(other, 0); n != 1 {
			t.Errorf("another pool's Drain in Drain: %d", n)
		}
	}
	first.Close()
	mustBeAlive(t, first.cell, "by Close")
	if n := drainPool(p, 0); n != 1 {
		t.Errorf("Drain: %d", n)
	}
	if s := p.Stats(); s.Queued != 1 {
		t.Errorf("%+v", s)
	}
	if n := drainPool(p, 0); n != 1 || w.alive() != 0 {
		t.Errorf("Drain: %d, and %d alive", n, w.alive())
	}
	mustDestroy(t, p)
	mustDestroy(t, other)
}

// TestOwnWhileDraining owns in a release function that Drain calls.
func TestOwnWhileDraining(t *testing.T) {
	w := newWorld(t, 100)
	p := w.pool(Options{Run: new(Queue).Run()})
	n := 0
	w.before = func([]*cell) {
		if n++; n < 50 {
			w.own(t, p, 10).Close() // at once, and so on
		}
	}
	w.own(t, p, 10).Close()
	drainPool(p, 1)
	if n != 50 || w.alive() != 0 {
		t.Errorf("%d calls, %d alive", n, w.alive())
	}
	mustDestroy(t, p)
}

// TestMaxQueued makes Own return an error while the queue is full.
func TestMaxQueued(t *testing.T) {
	w := newWorld(t, 100)
	p := w.pool(Options{Run: NewQueue(3, nil).Run()})
	held := w.ownSome(t, p, 10, 10)
	for range 3 {
		w.own(t, p, 10).Close()
	}
	c := w.create(10)
	var o object
	for range 3 {
		if err := o.Own(p, c.pointer(), 10); err != ErrQueueFull || !o.Closed() {
			t.Errorf("Own with a full queue: %v", err)
		}
		if err := p.own(&o.owner, uintptr(c.pointer()), 1<<20); err != ErrQueueFull || !o.Closed() {
			t.Errorf("Own with a full queue: %v", err)
		}
	}
	for _, m := range held {
		m.Close() // works all the same
	}
	if s := p.Stats(); s.Queued != 13 {
		t.Errorf("%+v", s)
	}
	drainPool(p, 10)
	if err := o.Own(p, c.pointer(), 10); err != ErrQueueFull {
		t.Errorf("Own with a full queue: %v", err)
	}
	drainPool(p, 1)
	if err := o.Own(p, c.pointer(), 10); err != nil {
		t.Errorf("Own with room in the queue: %v", err)
	}
	o.Close()
	drainPool(p, 0)
	mustDestroy(t, p)
	if w.alive() != 0 {
		t.Errorf("%d are alive", w.alive())
	}
}

// TestOldestQueued grows while the first waits, and is that of the next one when
// it is gone. The time is that of a bubble.
func TestOldestQueued(t *testing.T) {
	w := newWorld(t, 10)
	p := w.pool(Options{Run: new(Queue).Run()})
	synctest.Test(t, func(t *testing.T) {
		must := func(want time.Duration) {
			t.Helper()
			if d := p.Stats().OldestQueued; d != want {
				t.Errorf("%v, want %v", d, want)
			}
		}
		must(0)
		w.own(t, p, 10).Close()
		time.Sleep(20 * time.Millisecond)
		w.own(t, p, 10).Close()
		must(20 * time.Millisecond)
		time.Sleep(time.Minute)
		must(time.Minute + 20*time.Millisecond)
		drainPool(p, 1)
		must(time.Minute)
		drainPool(p, 1)
		must(0)
	})
	mustDestroy(t, p)
}

// TestFlushWaitsForDrain has Flush return after another goroutine called Drain.
func TestFlushWaitsForDrain(t *testing.T) {
	w := newWorld(t, 10)
	p := w.pool(Options{Run: new(Queue).Run()})
	w.own(t, p, 10).Close()
	if err := Flush(doneAfter(1)); err != context.Canceled {
		t.Errorf("Flush: %v", err)
	}
	if err := Flush(whenWaiting(func() { drainPool(p, 0) })); err != nil {
		t.Errorf("Flush: %v", err)
	}
	if w.alive() != 0 {
		t.Error("Flush returned before Drain was called")
	}
	mustDestroy(t, p)
}

// TestDrainAtOnce drains from several goroutines, while others close and own and
// one collects: each is released once, one at a time.
func TestDrainAtOnce(t *testing.T) {
	n := times(20_000)
	w := newWorld(t, n)
	p := w.pool(Options{Run: new(Queue).Run()})
	var running sync.Mutex
	w.before = func([]*cell) {
		if !running.TryLock() {
			t.Error("two releases at the same time")
			return
		}
		running.Unlock()
	}
	var owners sync.WaitGroup
	stop := testwait.Loop(2, func() {
		if drainPool(p, 50) == 0 {
			runtime.Gosched()
		}
	})
	for g := range 2 {
		owners.Go(func() {
			for i := range n / 2 {
				m := w.own(t, p, 16)
				if i%3 != 0 {
					m.Close()
				}
				if i%(n/10) == 0 && g == 0 {
					cleanups(t)
				}
			}
		})
	}
	owners.Wait()
	stop()
	wait(t, "the rest is queued", func() bool {
		cleanups(t)
		drainPool(p, 0)
		return w.alive() == 0
	})
	mustStats(t, p, Stats{})
	mustDestroy(t, p)
}

// TestEmptyQueueKeepsNothing closes many, drains, and looks at the Go heap.
func TestEmptyQueueKeepsNothing(t *testing.T) {
	testenv.Skip(t, "asan", "a conversion to unsafe.Pointer makes its variable escape, and each Go object has a red zone")
	const n = 200_000
	p := NewPool(Options{Run: new(Queue).Run(), Release: func(_ any, _ []uintptr) error { return nil }})
	owners := make([]object, n)
	heap := func() uint64 {
		var m runtime.MemStats
		settle(t)
		settle(t)
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range owners {
		p.own(&owners[i].owner, 1, 16)
		owners[i].Close()
	}
	if got := drainPool(p, 0); got != n {
		t.Fatalf("Drain: %d", got)
	}
	clear(owners)
	after := heap()
	for tries := 0; after > before+256<<10 && tries < few; tries++ {
		after = heap() // what closed batches have registered ends with a collection
	}
	if after > before+256<<10 {
		t.Errorf("%d KiB more than before %d closed owners, all drained", (after-before)>>10, n)
	}
	runtime.KeepAlive(owners)
	mustDestroy(t, p)
}

// TestNotifyQueued waits for the channel before each Drain, and drains all: nothing is
// left without a notification.
func TestNotifyQueued(t *testing.T) {
	w := newWorld(t, 600)
	wake := make(chan struct{}, 1)
	p := w.pool(Options{Run: NewQueue(0, wake).Run()})
	first, second := w.own(t, p, 10), w.own(t, p, 10)
	first.Close()
	second.Close()
	<-wake
	select {
	case <-wake:
		t.Error("a second notification")
	default:
	}
	if n := drainPool(p, 0); n != 2 {
		t.Errorf("%d released", n)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 500 {
			w.own(t, p, 10).Close()
		}
	}()
	for n := 0; n < 500; {
		<-wake
		n += drainPool(p, 0)
	}
	<-done
	w.forget(t, p, 1, 1<<20)
	cleanups(t)
	<-wake
	drainPool(p, 0)
	mustDestroy(t, p)
}

// TestQueueOfPools drains two pools by one queue, in the order of their Closes. Each pool is told of its
// own errors, and has a bound and counts of its own.
func TestQueueOfPools(t *testing.T) {
	queue := NewQueue(2, nil)
	var order []uintptr
	var told []string
	options := func(name string) Options {
		return Options{Name: name, Numbers: true, Run: queue.Run(),
			Release:        func(_ any, r []uintptr) error { order = append(order, r...); return errors.ErrUnsupported },
			OnReleaseError: func(e ReleaseError) { told = append(told, e.Pool) }}
	}
	a, b := NewPool(options("a")), NewPool(options("b"))
	var n [4]Number[int]
	for i, p := range []*Pool{a, b, a, b} {
		testcall.Must(t, n[i].Own(p, i, 1))
	}
	for i := range 3 {
		testcall.Must(t, n[i].Close())
	}
	mustStats(t, a, Stats{Live: 2, Bytes: 2, Queued: 2})
	mustStats(t, b, Stats{Live: 2, Bytes: 2, Queued: 1})
	if err := new(Number[int]).Own(a, 7, 1); err != ErrQueueFull {
		t.Errorf("Own with a full queue: %v", err)
	}
	testcall.Must(t, n[3].Close())
	if got := queue.Drain(3); got != 3 || b.Stats().OldestQueued == 0 || a.Stats().OldestQueued != 0 {
		t.Errorf("Drain(3): %d; %+v, %+v", got, a.Stats(), b.Stats())
	}
	if got := queue.Drain(0); got != 1 || !slices.Equal(order, []uintptr{0, 1, 2, 3}) || !slices.Equal(told, []string{"a", "b", "a", "b"}) {
		t.Errorf("Drain: %d; %v released, %v told", got, order, told)
	}
	mustDestroy(t, a)
	mustDestroy(t, b)
}
