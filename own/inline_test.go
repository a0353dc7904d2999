package own

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own/internal/worker"
)

// TestInlineReleasesWhereOwnersAreMade forgets owners on one goroutine, which releases
// them itself, unless it loses its processor for long. When it has stopped, workers
// release the rest.
func TestInlineReleasesWhereOwnersAreMade(t *testing.T) {
	for _, making := range []bool{false, true} {
		n := times(200_000)
		w := newWorld(t, 2*n)
		o := Options{Run: Inline(), Size: 16}
		if making {
			o.Construct = func(resources []uintptr) (int, error) {
				for i := range resources {
					resources[i] = uintptr(w.create(16).pointer())
				}
				return len(resources), nil
			}
		}
		var here, elsewhere atomic.Int64
		var maker atomic.Uintptr
		w.before = func(cells []*cell) {
			if gcwatch.GoroutineID() == maker.Load() {
				here.Add(int64(len(cells)))
			} else {
				elsewhere.Add(int64(len(cells)))
			}
		}
		p := w.pool(o)
		testcall.Aside(func() {
			maker.Store(gcwatch.GoroutineID())
			for i := range n {
				if i%(n/20) == 0 {
					runtime.GC()
				}
				if !making {
					w.own(t, p, 16)
				} else if err := new(thing).Make(p); err != nil {
					t.Error(err)
				}
			}
			maker.Store(0)
		})
		if h, e := here.Load(), elsewhere.Load(); h < int64(n)/10 {
			t.Errorf("making=%v: %d of %d were released here, %d elsewhere", making, h, n, e)
		}
		collectAtMost(t, few, "all owners", func() bool { return p.Stats().Live == 0 })
		mustEnd(t)
		mustDestroy(t, p)
		if w.alive() != 0 {
			t.Errorf("%d resources are left", w.alive())
		}
	}
}

// TestInlineReleaseThatOwns has a release function own in its own pool, as many as begin
// a batch. No release runs within a release.
func TestInlineReleaseThatOwns(t *testing.T) {
	w := newWorld(t, 10_000)
	p := w.pool(Options{Run: Inline()})
	var depth, deepest atomic.Int64
	var inside atomic.Uintptr
	var over atomic.Bool // so that the number of collections has a bound
	w.before = func(cells []*cell) {
		if inside.Load() == gcwatch.GoroutineID() {
			deepest.Store(1)
		}
		if depth.Add(1) == 1 {
			inside.Store(gcwatch.GoroutineID())
			if !over.Load() && w.next.Load() < 5000 {
				for range 3 {
					w.own(t, p, 1<<20)
				}
			}
			inside.Store(0)
		}
		depth.Add(-1)
	}
	testcall.Aside(func() {
		for i := range 2000 {
			w.own(t, p, 1<<20)
			if i%100 == 0 {
				cleanups(t)
			}
		}
	})
	over.Store(true)
	collectAtMost(t, few, "all of them", func() bool { return w.alive() == 0 })
	if deepest.Load() != 0 {
		t.Error("a release ran within a release of the same pool")
	}
	mustDestroy(t, p)
}

// TestInlinePanic has the release function panic on the goroutine that makes owners. The
// panic reaches the caller of Own, whose owner has its resource; all others are released.
func TestInlinePanic(t *testing.T) {
	for _, goexit := range []bool{false, true} {
		w := newWorld(t, 1000)
		var maker atomic.Uintptr
		var told atomic.Int64
		p := w.pool(Options{Run: Inline(), Name: "git.Commit", OnCollect: func(c Collected) { told.Add(int64(c.Count)) }})
		w.before = func(cells []*cell) {
			if gcwatch.GoroutineID() != maker.Load() {
				return
			}
			maker.Store(0)
			for _, c := range cells {
				w.destroy(c)
			}
			if goexit {
				runtime.Goexit()
			}
			panic("the oven is hot")
		}
		w.forget(t, p, 20, 1<<20)
		var last *thing
		var caught any
		testcall.Aside(func() {
			cleanups(t)
			maker.Store(gcwatch.GoroutineID())
			for range 500 {
				if maker.Load() == 0 {
					break
				}
				m := &thing{cell: w.create(1 << 20)}
				last = m
				if caught = testcall.Catch(func() { m.Own(p, m.cell.pointer(), 1<<20) }); caught != nil {
					break
				}
				last = nil
				if w.next.Load()%20 == 0 {
					cleanups(t)
				}
			}
		})
		maker.Store(0)
		if err, ok := caught.(error); !goexit && (!ok || err.Error() != "cheap: git.Commit: the release function panicked: the oven is hot") {
			t.Errorf("the panic is %v", caught)
		}
		if last == nil || last.Closed() {
			t.Fatalf("goexit=%v: the owner of the call is closed", goexit)
		}
		collectAtMost(t, few, "all others", func() bool { return w.alive() == 1 })
		mustEnd(t)
		if n := told.Load(); n != w.next.Load()-1 {
			t.Errorf("OnCollect was told of %d of %d", n, w.next.Load()-1)
		}
		last.Close()
		mustDestroy(t, p)
	}
}

// TestInlineInABubble owns in a bubble of testing/synctest, where no release runs: a
// release function may use channels from outside.
func TestInlineInABubble(t *testing.T) {
	w := newWorld(t, 1000)
	p := w.pool(Options{Run: Inline()})
	var bubble atomic.Uintptr
	w.before = func([]*cell) {
		if gcwatch.GoroutineID() == bubble.Load() {
			w.complain("a release ran in the bubble")
		}
	}
	w.forget(t, p, 100, 1<<20)
	synctest.Test(t, func(t *testing.T) {
		bubble.Store(gcwatch.GoroutineID())
		defer bubble.Store(0)
		runtime.GC()
		for range 500 {
			w.own(t, p, 1<<20)
		}
	})
	collectAtMost(t, few, "all of them", func() bool { return w.alive() == 0 })
	mustDestroy(t, p)
}

// TestInlineSlowRelease has a release function become slow. Calls of Own then release few
// resources, but for the first calls, which have what was a moment's work before.
func TestInlineSlowRelease(t *testing.T) {
	w := newWorld(t, 100_000)
	p := w.pool(Options{Run: Inline(), Batch: 16, Size: 16})
	var slow atomic.Bool
	var large atomic.Int64
	w.before = func(cells []*cell) {
		if slow.Load() {
			if len(cells) > 512 {
				large.Add(1)
			}
			pass(time.Duration(len(cells)) * 10 * time.Microsecond)
		}
	}
	forget := func(n int) {
		testcall.Aside(func() {
			for i := range n {
				w.own(t, p, 16)
				if i%2000 == 0 {
					cleanups(t)
				}
			}
		})
	}
	forget(20_000)
	slow.Store(true)
	forget(40_000)
	if n := large.Load(); n > 4 {
		t.Errorf("%d calls released more than 512 resources each", n)
	}
	slow.Store(false)
	collectAtMost(t, few, "all of them", func() bool { return w.alive() == 0 })
	mustDestroy(t, p)
}

// TestInlineFlushInABubble waits with deadlines, in bubbles of testing/synctest, where time
// takes no time. The releases end before.
func TestInlineFlushInABubble(t *testing.T) {
	w := newWorld(t, 20*50)
	p := w.pool(Options{Run: Inline()})
	for i := range 20 {
		w.forget(t, p, 50, 1<<20)
		synctest.Test(t, func(t *testing.T) {
			runtime.GC()
			for wait := 0; !worker.Waiting() && w.alive() > 0 && wait < 1e6; wait++ {
				runtime.Gosched() // until they are found
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := Flush(ctx); err != nil {
				t.Errorf("round %d: %v; %+v", i, err, ReadReleases())
			}
		})
	}
	collectAtMost(t, few, "all of them", func() bool { return w.alive() == 0 })
	mustDestroy(t, p)
}

// TestInlineTrace has each call of Make take the slow path. One that calls Construct
// releases, and no other does.
func TestInlineTrace(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // else calls of Make release before the test wants it
	const n = 10_000
	w := newWorld(t, 2*n)
	var maker atomic.Uintptr
	var constructs, releases atomic.Int64
	over := make(chan struct{})
	w.before = func([]*cell) {
		if gcwatch.GoroutineID() != maker.Load() {
			<-over // a few workers take a batch each, and leave the others
			return
		}
		releases.Add(1)
		pass(time.Millisecond) // so that a call of Own has time for one batch
	}
	p := w.pool(Options{Run: Inline(), Trace: true, Size: 16, Construct: func(resources []uintptr) (int, error) {
		constructs.Add(1)
		for i := range resources {
			resources[i] = uintptr(w.create(16).pointer())
		}
		return len(resources), nil
	}})
	makeOne := func() *thing {
		m := new(thing)
		testcall.Want(t, m.Make(p))
		return m
	}
	testcall.Aside(func() {
		for range n {
			makeOne()
		}
	})
	for range few {
		cleanups(t)
	}
	kept := make([]*thing, 0, 300)
	testcall.Aside(func() {
		constructs.Store(0)
		maker.Store(gcwatch.GoroutineID())
		for range cap(kept) {
			kept = append(kept, makeOne())
		}
		maker.Store(0)
	})
	if c, r := constructs.Load(), releases.Load(); r == 0 || r > c {
		t.Errorf("%d calls of Release in %d calls of Construct", r, c)
	}
	close(over)
	runtime.KeepAlive(kept)
	kept = nil
	collectAtMost(t, few, "all of them", func() bool { return p.Stats().Live == 0 })
	mustDestroy(t, p)
}
