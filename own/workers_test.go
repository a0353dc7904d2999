package own

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// forget has a pool's workers release n batches.
func (b *blocker) forget(t testing.TB, p *Pool, n int) {
	t.Helper()
	before := b.began.Load()
	aside(func() {
		for range n {
			b.w.own(t, p, 1<<20)
		}
	})
	cleanups(t)
	wait(t, "a release to begin", func() bool { return b.began.Load() > before })
}

// TestBlockedReleaseStopsNobodyElse has one pool's releases block: another
// pool's, and what os.File leaves to the collector, go on.
func TestBlockedReleaseStopsNobodyElse(t *testing.T) {
	b := newBlocker(t, 30)
	stuck := b.w.pool(Options{Name: "stuck"})
	b.forget(t, stuck, 20)

	w := newWorld(t, 1000)
	p := w.pool(Options{})
	for range 20 {
		aside(func() {
			for range 10 {
				w.own(t, p, 16)
			}
			w.own(t, p, 1<<20)
		})
		wait(t, "the releases of another pool", func() bool {
			cleanups(t)
			return w.alive() == 0
		})
	}
	m := w.own(t, p, 16)
	m.Close()
	mustBeReleased(t, m.cell, "by Close")

	r, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.SetReadDeadline(time.Now().Add(longest)); err != nil {
		t.Fatal(err)
	}
	aside(func() { end.WriteString("here") })
	end = nil
	done := make(chan struct{})
	go func() {
		defer close(done)
		if s, err := io.ReadAll(r); string(s) != "here" || err != nil {
			t.Errorf("%q, %v: the file was not closed", s, err)
		}
	}()
	for collecting := true; collecting; {
		runtime.GC()
		select {
		case <-done:
			collecting = false
		case <-time.After(time.Millisecond):
		}
	}
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
	wait(t, "the workers to end", func() bool { return Releases() == ReleaseStats{} })
	b := newBlocker(t, 10)
	begin := time.Now()
	p := b.w.pool(Options{Name: "stuck"})
	b.forget(t, p, 1)
	time.Sleep(10 * time.Millisecond)
	s := Releases()
	if most := time.Since(begin); s.Workers != 1 || s.Batches != 0 || s.OldestPool != "stuck" || s.Oldest < 10*time.Millisecond || s.Oldest > most {
		t.Errorf("%+v, after %v", s, most)
	}
	// A second that is younger.
	younger := newBlocker(t, 10)
	q := younger.w.pool(Options{Name: "younger"})
	younger.forget(t, q, 1)
	if s := Releases(); s.Workers != 2 || s.OldestPool != "stuck" {
		t.Errorf("%+v", s)
	}
	b.open()
	wait(t, "the oldest to return", func() bool { return Releases().OldestPool == "younger" })
	younger.open()
	flush(t)
	wait(t, "the workers to end", func() bool { return Releases() == ReleaseStats{} })
	mustDestroy(t, p)
	mustDestroy(t, q)
}

// TestTwoReleasesRunAtATime has each of two wait for the other.
func TestTwoReleasesRunAtATime(t *testing.T) {
	w := newWorld(t, 2)
	p := w.pool(Options{})
	var meeting sync.WaitGroup
	meeting.Add(2)
	w.before = func([]*cell) {
		meeting.Done()
		meeting.Wait()
	}
	aside(func() {
		w.own(t, p, 1<<20)
		w.own(t, p, 1<<20)
	})
	collectAtMost(t, few, "both", func() bool { return w.alive() == 0 })
	mustDestroy(t, p)
}

// TestStuckWorkersGiveWay has more and more releases block: others are started,
// up to a bound, and a single pool gets half of them.
func TestStuckWorkersGiveWay(t *testing.T) {
	b := newBlocker(t, 100)
	p := b.w.pool(Options{Name: "first"})
	b.forget(t, p, 20)
	wait(t, "half of the workers to be stuck", func() bool { return b.began.Load() == mostWorkers/2 })
	q := b.w.pool(Options{Name: "second"})
	b.forget(t, q, 20)
	wait(t, "all workers to be stuck", func() bool { return b.began.Load() == mostWorkers })
	time.Sleep(2 * stuckAfter)
	if s := Releases(); s.Workers != mostWorkers || s.Batches != 40-mostWorkers || b.began.Load() != mostWorkers {
		t.Errorf("%+v, and %d releases have begun", s, b.began.Load())
	}
	b.open()
	collectAtMost(t, few, "all of them", func() bool { return b.w.alive() == 0 })
	mustDestroy(t, p)
	mustDestroy(t, q)
}

// TestStuckPoolsDoNotStarveOthers queues, all at once, pools that block and one
// that does not: as long as there are workers, its turn comes.
func TestStuckPoolsDoNotStarveOthers(t *testing.T) {
	b := newBlocker(t, 20)
	var pools []*Pool
	for i := range mostWorkers - 1 {
		pools = append(pools, b.w.pool(Options{Name: fmt.Sprint("stuck ", i)}))
	}
	w := newWorld(t, 1)
	p := w.pool(Options{})
	aside(func() {
		for _, stuck := range pools {
			b.w.own(t, stuck, 1<<20)
		}
	})
	for range few {
		cleanups(t)
	}
	aside(func() { w.own(t, p, 1<<20) })
	cleanups(t)
	// Nothing is queued from here on that could wake anybody.
	wait(t, "the release that does not block", func() bool { return w.alive() == 0 })
	wait(t, "all that block", func() bool { return b.began.Load() == mostWorkers-1 })
	b.open()
	flush(t)
	for _, p := range append(pools, p) {
		mustDestroy(t, p)
	}
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
		Releases()
	}
	aside(func() { w.own(t, p, 16) })
	collect(t, "all but what is held", func() bool { return runs.Load() > 30 && w.alive() == 1 })
	held.Close()
	mustDestroy(t, p)
	mustDestroy(t, q)
}

// TestReleaseEndsItsGoroutine has a release function call runtime.Goexit, as
// FailNow of package testing does.
func TestReleaseEndsItsGoroutine(t *testing.T) {
	w := newWorld(t, 100)
	p := w.pool(Options{})
	var runs atomic.Int64
	w.before = func(cells []*cell) {
		if runs.Add(1)%2 == 1 {
			for _, c := range cells {
				w.destroy(c)
			}
			runtime.Goexit()
		}
	}
	aside(func() {
		for range 20 {
			w.own(t, p, 1<<20)
		}
	})
	collectAtMost(t, few, "all of them", func() bool { return w.alive() == 0 })
	wait(t, "the workers to end", func() bool { return Releases() == ReleaseStats{} })
	mustStats(t, p, Stats{})
	mustDestroy(t, p)
}

// TestNothingRunsWhileNothingIsToBeReleased looks for goroutines, and for the
// timer, which deadlock detection would mind.
func TestNothingRunsWhileNothingIsToBeReleased(t *testing.T) {
	flush(t)
	before := runtime.NumGoroutine()
	b := newBlocker(t, 20)
	p := b.w.pool(Options{})
	b.forget(t, p, 10)
	wait(t, "a worker beyond the first two", func() bool { return b.began.Load() > fewWorkers })
	b.open()
	flush(t)
	held := b.w.own(t, p, 16)
	wait(t, "the workers to end", func() bool { return Releases() == ReleaseStats{} && runtime.NumGoroutine() <= before })
	work.mu.Lock()
	armed := work.armed
	work.mu.Unlock()
	if armed {
		t.Error("the timer is armed")
	}
	held.Close()
	mustDestroy(t, p)
}

// TestFlushEndsWithItsContext has a release that does not return.
func TestFlushEndsWithItsContext(t *testing.T) {
	b := newBlocker(t, 1)
	p := b.w.pool(Options{})
	b.forget(t, p, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := Flush(ctx); err != context.DeadlineExceeded {
		t.Errorf("Flush: %v", err)
	}
	if err := Flush(ctx); err != context.DeadlineExceeded {
		t.Errorf("Flush with a context that is done: %v", err)
	}
	time.AfterFunc(10*time.Millisecond, b.open)
	flush(t)
	if b.w.alive() != 0 {
		t.Error("Flush returned before the release")
	}
	mustDestroy(t, p)
}
