package own

import (
	"context"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own/internal/worker"
)

// A blocker's releases block until it is opened, which happens when the test
// ends at the latest.
type blocker struct {
	w      *world
	began  atomic.Int64
	opened chan struct{}
	open   func()
}

func newBlocker(t testing.TB, n int) *blocker {
	b := &blocker{w: newWorld(t, n), opened: make(chan struct{})}
	b.open = sync.OnceFunc(func() { close(b.opened) })
	b.w.before = func([]*cell) {
		b.began.Add(1)
		<-b.opened
	}
	t.Cleanup(b.open)
	return b
}

// forget has n batches queued for the workers of a pool, of which some begin with their
// releases. Nothing else is queued, or ends, meanwhile.
func (b *blocker) forget(t testing.TB, p *Pool, n int) {
	t.Helper()
	found := func() int { s := ReadReleases(); return int(s.Workers + s.Batches) }
	before := found()
	b.w.forget(t, p, n, 1<<20)
	wait(t, "the batches are found", func() bool {
		cleanups(t)
		return found() >= before+n
	})
}

// turn has a worker come that looks for the next job when it has done its own, and so takes
// what any worker may.
func turn(t testing.TB) {
	t.Helper()
	w := newWorld(t, 1)
	p := w.pool(Options{Name: "turn"})
	w.forget(t, p, 1, 1<<20)
	before := ReadReleases().Workers
	wait(t, "what takes its turn is released", func() bool {
		cleanups(t)
		return w.alive() == 0
	})
	wait(t, "its worker has ended", func() bool { return ReadReleases().Workers <= before })
}

// TestBlockedReleaseStopsNobodyElse has one pool's releases block. The releases
// of another pool, and the cleanups of os.File, go on.
func TestBlockedReleaseStopsNobodyElse(t *testing.T) {
	b := newBlocker(t, 30)
	stuck := b.w.pool(Options{Name: "stuck"})
	b.forget(t, stuck, 20)

	w := newWorld(t, 1000)
	p := w.pool(Options{})
	for range 20 {
		testcall.Aside(func() {
			for range 10 {
				w.own(t, p, 16)
			}
			w.own(t, p, 1<<20)
		})
		wait(t, "what is in another pool is released", func() bool {
			cleanups(t)
			return w.alive() == 0
		})
	}
	m := w.own(t, p, 16)
	m.Close()
	mustBeReleased(t, m.cell, "by Close")

	r, end, err := os.Pipe()
	testcall.Must(t, err)
	defer r.Close()
	testcall.Aside(func() { end.WriteString("here") })
	end = nil
	done := make(chan struct{})
	go func() {
		defer close(done)
		if s, err := io.ReadAll(r); string(s) != "here" || err != nil {
			t.Errorf("%q, %v: the file was not closed", s, err)
		}
	}()
	wait(t, "the file is closed", func() bool {
		runtime.GC()
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	if n := b.w.died.Load(); n != 0 {
		t.Errorf("%d of the stuck pool are released", n)
	}
	b.open()
	collectAtMost(t, few, "what was stuck", func() bool { return b.w.alive() == 0 })
	mustDestroy(t, stuck)
	mustDestroy(t, p)
}

// TestReleasesTellsOfTheOldest looks at a release that does not return.
func TestReleasesTellsOfTheOldest(t *testing.T) {
	mustEnd(t)
	b := newBlocker(t, 10)
	p := b.w.pool(Options{Name: "stuck"})
	b.forget(t, p, 1)
	before := ReadReleases()
	pass(time.Minute)
	if s := ReadReleases(); s.Workers != 1 || s.Batches != 0 || s.OldestPool != "stuck" || s.Oldest < before.Oldest+time.Minute {
		t.Errorf("%+v, and a minute before %+v", s, before)
	}
	// A second that is younger.
	younger := newBlocker(t, 10)
	q := younger.w.pool(Options{Name: "younger"})
	younger.forget(t, q, 1)
	if s := ReadReleases(); s.Workers != 2 || s.OldestPool != "stuck" {
		t.Errorf("%+v", s)
	}
	b.open()
	wait(t, "the oldest has returned", func() bool { return ReadReleases().OldestPool == "younger" })
	younger.open()
	flush(t)
	mustEnd(t)
	mustDestroy(t, p)
	mustDestroy(t, q)
}

// TestStuckWorkersGiveWay has more and more releases of a pool block: others are
// started, up to the bound for a pool.
func TestStuckWorkersGiveWay(t *testing.T) {
	b := newBlocker(t, 100)
	p := b.w.pool(Options{Name: "first"})
	b.forget(t, p, 20)
	wait(t, "the workers of a pool are stuck", func() bool { return b.began.Load() == worker.MostOfPool })
	q := b.w.pool(Options{Name: "second"})
	b.forget(t, q, 20)
	wait(t, "those of another are stuck", func() bool { return b.began.Load() == 2*worker.MostOfPool })
	turn(t)
	if s := ReadReleases(); s.Workers != 2*worker.MostOfPool || s.Batches != 40-2*worker.MostOfPool || b.began.Load() != 2*worker.MostOfPool {
		t.Errorf("%+v, and %d releases have begun", s, b.began.Load())
	}
	b.open()
	collectAtMost(t, few, "all of them", func() bool { return b.w.alive() == 0 })
	mustDestroy(t, p)
	mustDestroy(t, q)
}

// TestWorkersOfAPool has as many releases of a pool run at a time as
// Run says, none of them on a shared worker.
func TestWorkersOfAPool(t *testing.T) {
	const workers = 11
	b := newBlocker(t, 100)
	p := b.w.pool(Options{Name: "slow", Run: Workers(workers)})
	b.forget(t, p, 20)
	must := func(batches int) {
		t.Helper()
		if s := ReadReleases(); s.Workers != workers || s.Batches != int64(batches) {
			t.Errorf("%+v, want %d workers and %d batches", s, workers, batches)
		}
	}
	must(20 - workers) // they begin when the batches are found, without a timer
	turn(t)
	must(20 - workers)
	b.forget(t, p, 1)
	must(21 - workers)
	wait(t, "the workers are busy", func() bool { return b.began.Load() == workers })
	b.open()
	collectAtMost(t, few, "all of them", func() bool { return b.w.alive() == 0 })
	mustEnd(t)
	mustDestroy(t, p)
}

// TestParentOfAnotherPoolIsReleasedByItsWorkers has the release of parents block.
// It occupies the workers of the parents' pool, and not those of the children's.
func TestParentOfAnotherPoolIsReleasedByItsWorkers(t *testing.T) {
	b := newBlocker(t, 20)
	parents := b.w.pool(Options{Name: "parents"})
	w := newWorld(t, 20)
	children := w.pool(Options{Name: "children", Run: Workers(1)})
	testcall.Aside(func() {
		for range 10 {
			parent := b.w.own(t, parents, 1<<20)
			m := &thing{cell: w.create(1 << 20)}
			testcall.Want(t, m.OwnWith(children, m.cell.pointer(), With{Size: 1 << 20, Parent: parent.Owner()}))
		}
	})
	wait(t, "the children are released", func() bool {
		cleanups(t)
		return w.alive() == 0
	})
	wait(t, "the parents' workers are stuck", func() bool { return b.began.Load() == worker.MostOfPool })
	turn(t)
	if n := b.began.Load(); n != worker.MostOfPool {
		t.Errorf("%d releases of parents have begun", n)
	}
	b.open()
	collectAtMost(t, few, "the parents", func() bool { return b.w.alive() == 0 })
	mustDestroy(t, children)
	mustDestroy(t, parents)
}

// TestReleaseDoesWhatItLikes owns in its own pool, closes, allocates, collects.
func TestReleaseDoesWhatItLikes(t *testing.T) {
	w := newWorld(t, 2000)
	p := w.pool(Options{})
	q := w.pool(Options{Batch: 1})
	held := w.own(t, p, 16)
	gc(t) // seals its batch
	var runs atomic.Int64
	var garbage atomic.Pointer[thing]
	w.before = func([]*cell) {
		switch n := runs.Add(1); {
		case n > 30:
			return
		case n%5 == 0:
			runtime.GC()
		}
		garbage.Store(&thing{})
		for _, pool := range []*Pool{p, q} {
			w.own(t, pool, 16)
			w.own(t, pool, 1<<20)
			w.own(t, pool, 16).Close()
		}
		w.ownUnder(t, q, w.own(t, p, 16), 16)
		p.Stats()
		ReadReleases()
	}
	w.forget(t, p, 1, 16)
	collect(t, "all but what is held", func() bool { return runs.Load() > 30 && w.alive() == 1 })
	held.Close()
	mustDestroy(t, p)
	mustDestroy(t, q)
}

// TestNothingRunsWhileNothingIsToBeReleased looks for goroutines, and for the
// timer, which deadlock detection would mind.
func TestNothingRunsWhileNothingIsToBeReleased(t *testing.T) {
	flush(t)
	before := runtime.NumGoroutine()
	b := newBlocker(t, 20)
	p := b.w.pool(Options{})
	b.forget(t, p, 10)
	wait(t, "there is a worker beyond the first two", func() bool { return b.began.Load() > worker.LeastBusy })
	b.open()
	flush(t)
	held := b.w.own(t, p, 16)
	wait(t, "the workers have ended", func() bool { return ReadReleases() == ReleaseStats{} && runtime.NumGoroutine() <= before })
	held.Close()
	mustDestroy(t, p)
}

// TestFlushEndsWithItsContext has a release that does not return.
func TestFlushEndsWithItsContext(t *testing.T) {
	b := newBlocker(t, 1)
	p := b.w.pool(Options{})
	b.forget(t, p, 1)
	ctx := doneAfter(1)
	if err := Flush(ctx); err != context.Canceled {
		t.Errorf("Flush: %v", err)
	}
	if err := Flush(ctx); err != context.Canceled {
		t.Errorf("Flush with a context that is done: %v", err)
	}
	if err := Flush(whenWaiting(b.open)); err != nil {
		t.Errorf("Flush: %v", err)
	}
	if b.w.alive() != 0 {
		t.Error("Flush returned before the release")
	}
	mustDestroy(t, p)
}

// TestFlushInReleaseIsRefused calls Flush where it would wait for itself: in a
// release function, whichever way it is called, and in OnCollect.
func TestFlushInReleaseIsRefused(t *testing.T) {
	for name, end := range map[string]func(w *world, p *Pool, own func() *thing){
		"Close": func(_ *world, _ *Pool, own func() *thing) { own().Close() },
		"CloseWait": func(_ *world, p *Pool, own func() *thing) {
			m := own()
			p.CloseWait(patient(t))
			runtime.KeepAlive(m)
		},
		"collector": func(w *world, _ *Pool, own func() *thing) { testcall.Aside(func() { own() }) },
		"Drain":     func(_ *world, p *Pool, own func() *thing) { own().Close(); drainPool(p, 0) },
		"Thread":    func(_ *world, _ *Pool, own func() *thing) { own().Close() },
		"Workers":   func(_ *world, _ *Pool, own func() *thing) { testcall.Aside(func() { own() }) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			var asked, told atomic.Int64
			ask := func(n *atomic.Int64) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				if err := Flush(ctx); err != ErrInRelease {
					t.Errorf("Flush: %v", err)
				}
				n.Add(1)
			}
			w.before = func([]*cell) { ask(&asked) }
			o := Options{Run: queuedIf(name == "Drain"), OnCollect: func(Collected) { ask(&told) }}
			switch name {
			case "Workers":
				o.Run = Workers(1)
			case "Thread":
				o.Run = Thread(0)
			}
			p := w.pool(o)
			end(w, p, func() *thing { return w.own(t, p, 1<<20) })
			collect(t, "the resource", func() bool { return w.alive() == 0 })
			flush(t)
			if asked.Load() != 1 || told.Load() != 1 && (name == "collector" || name == "Workers") {
				t.Errorf("asked %d times, and %d times in OnCollect", asked.Load(), told.Load())
			}
			if gcwatch.InSection() {
				t.Error("the test's own goroutine is in a release")
			}
			p.CloseWait(waiting(0))
		})
	}
}

// TestThread has all releases of a pool run on one goroutine, which ends after
// that. Close and CloseWait queue them, and CloseWait waits.
func TestThread(t *testing.T) {
	flush(t)
	before := runtime.NumGoroutine()
	w := newWorld(t, 1000)
	p := w.pool(Options{Run: Thread(0), Batch: 1})
	me := gcwatch.GoroutineID()
	var running atomic.Int64
	w.before = func(inner func([]*cell)) func([]*cell) {
		depth := 0
		return func(cells []*cell) {
			if depth++; depth == 1 {
				inner(cells)
			} else if w.number(cells[0]) == 0 {
				t.Error("the outer release is called within itself")
			}
			depth--
		}
	}(func(cells []*cell) {
		if running.Add(1) != 1 || gcwatch.GoroutineID() == me {
			t.Error("two releases at a time, or one on the caller's goroutine")
		}
		if died := w.died.Load(); w.number(cells[0]) == 0 {
			w.own(t, p, 16).Close()
			if w.died.Load() != died+1 {
				t.Error("Close in a release function did not release at once")
			}
		}
		runtime.Gosched()
		running.Add(-1)
	})
	held := w.ownSome(t, p, 100, 16)
	for _, m := range held[:50] {
		m.Close()
	}
	if n := drainPool(p, 0); n != 0 {
		t.Errorf("Drain: %d", n)
	}
	w.forget(t, p, 500, 16)
	collectAtMost(t, few, "what was forgotten", func() bool { return w.died.Load() >= 551 })
	e := destroyError(t, p, patient(t))
	if e.NeverClosed != 50 || e.Queued+e.Releasing+e.InUse != 0 || w.alive() != 0 {
		t.Errorf("%+v, and %d are alive", e, w.alive())
	}
	runtime.KeepAlive(held)
	wait(t, "the goroutine of the thread has ended", func() bool { return runtime.NumGoroutine() <= before })
	mustStats(t, p, Stats{})
}

// TestGoexitDoesNotStopClose has release functions end the goroutine that is in
// CloseWait: all resources are released before that.
func TestGoexitDoesNotStopClose(t *testing.T) {
	w := newWorld(t, 100)
	p := w.pool(Options{Batch: 1})
	held := w.ownSome(t, p, 100, 16)
	w.before = func(cells []*cell) {
		if w.number(cells[0])%3 == 0 {
			w.destroy(cells[0])
			runtime.Goexit()
		}
	}
	returned := false
	testcall.Aside(func() {
		p.CloseWait(patient(t))
		returned = true
	})
	if w.alive() != 0 || returned {
		t.Errorf("%d are alive; CloseWait returned: %v", w.alive(), returned)
	}
	runtime.KeepAlive(held)
	mustStats(t, p, Stats{})
}

// TestGoexitDoesNotStopCloseInDrain has a release function that Drain calls destroy
// the pool. The other release functions, which run at once there, end the goroutine.
func TestGoexitDoesNotStopCloseInDrain(t *testing.T) {
	w := newWorld(t, 100)
	p := w.pool(Options{Run: new(Queue).Run()})
	held := w.ownSome(t, p, 100, 16)
	first := held[0].cell
	w.before = func(cells []*cell) {
		if cells[0] == first {
			p.CloseWait(waiting(0))
			return
		}
		w.destroy(cells[0])
		runtime.Goexit()
	}
	held[0].Close()
	testcall.Aside(func() { drainPool(p, 0) })
	// Its release function has ended in CloseWait, before it destroyed the first one.
	if w.alive() != 1 || !first.alive() {
		t.Errorf("%d are alive", w.alive())
	}
	w.destroy(first)
	runtime.KeepAlive(held)
	mustStats(t, p, Stats{})
}

// TestGoexitInReleaseIsToldToOnCollect has release functions and OnCollect end
// the goroutine that calls them: every owner is counted all the same.
func TestGoexitInReleaseIsToldToOnCollect(t *testing.T) {
	for _, o := range []Options{{}, {Run: Workers(1)}, {Run: Thread(0)}, {Run: new(Queue).Run()}} {
		w := newWorld(t, 100)
		var told atomic.Int64
		o.Batch = 1
		o.OnCollect = func(c Collected) {
			if told.Add(int64(c.Count))%2 == 0 {
				runtime.Goexit()
			}
		}
		p := w.pool(o)
		w.before = func(cells []*cell) {
			for _, c := range cells {
				w.destroy(c)
			}
			runtime.Goexit()
		}
		w.forget(t, p, 100, 16)
		for range few {
			settle(t)
			for o.Run.queue != nil && p.Stats().Queued > 0 {
				testcall.Aside(func() { drainPool(p, 0) })
			}
		}
		flush(t)
		if n := told.Load(); w.alive() != 0 || n != 100 || p.Stats().Collected != 100 {
			t.Errorf("%d are alive, told of %d, collected %d", w.alive(), n, p.Stats().Collected)
		}
		mustEnd(t)
		mustStats(t, p, Stats{})
		mustDestroy(t, p)
	}
}

// TestThreadInBubble closes owners of a pool with Thread in a bubble of
// testing/synctest, which has to end.
func TestThreadInBubble(t *testing.T) {
	w := newWorld(t, 100)
	p := w.pool(Options{Run: Thread(0)})
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			w.own(t, p, 16).Close()
		}
		synctest.Wait()
		if w.alive() != 0 {
			t.Errorf("%d are alive", w.alive())
		}
	})
	w.own(t, p, 16).Close()
	flush(t)
	mustDestroy(t, p)
}
