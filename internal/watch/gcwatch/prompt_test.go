package gcwatch

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestCollectionsUntilCalled drops an object in an idle program, again and again.
// The mean of the number of collections is that of the mode.
func TestCollectionsUntilCalled(t *testing.T) {
	for _, m := range modes {
		m.run(t, func(t *testing.T) {
			collectorOff(t)
			const tries = 10
			sum := 0
			for range tries {
				var called atomic.Bool
				drop(func(b *atomic.Bool) { b.Store(true) }, &called)
				sum += collections(t, "it is called", m.most+1, called.Load)
			}
			if mean := float64(sum) / tries; mean > float64(m.most)+0.2 {
				t.Errorf("%.2f collections on average", mean)
			} else {
				t.Logf("%.2f collections on average", mean)
			}
		})
	}
}

// TestBesideCleanups drops objects in a program that has many cleanups of its own, most
// of which run before the end of the sweep. The first collection finds many objects all
// the same, the second one all.
func TestBesideCleanups(t *testing.T) {
	testenv.Skip(t, "asan", "with red zones, the objects that are swept last are larger than 32 KiB and are swept first: functions are called a collection later")
	collectorOff(t)
	const tries, n = 10, 2000
	var first int64
	for range tries {
		var ours, theirs atomic.Int64
		testcall.Aside(func() {
			for range n {
				AddCleanup(new(object), func(a *atomic.Int64) { a.Add(1) }, &ours)
				runtime.AddCleanup(new(object), func(int) { theirs.Add(1) }, 0)
			}
		})
		collect(t)
		if k := theirs.Load(); k != n {
			t.Errorf("%d of %d cleanups of the program have run", k, n)
		}
		first += ours.Load()
		collections(t, "all are called", 1, func() bool { return ours.Load() == n })
	}
	if first < tries*n/8 { // mostly it is all of them
		t.Errorf("the first collection has found %d of %d", first, tries*n)
	}
}

// TestEarly drops objects, and takes away the report of the end of the sweep. New
// functions find them, without another collection.
func TestEarly(t *testing.T) {
	if percpu.Portable || race.Build {
		return // a walk of one shard may not find them, or does not begin
	}
	t.Parallel()
	testchild.MustPass(t, func(t *testing.T) {
		collectorOff(t)
		reported.Store(false)
		var calls atomic.Int32
		const n = 100
		testcall.Aside(func() {
			for range n {
				AddCleanup(new(object), func(c *atomic.Int32) { c.Add(1) }, &calls)
			}
		})
		collect(t)
		if c := calls.Load(); c != 0 {
			t.Errorf("%d calls, although nothing is reported", c)
		}
		kept := new(object)
		testwait.Until(t, "all are called", func() bool {
			AddCleanup(kept, func(*int) {}, new(int)).Stop()
			return calls.Load() == n
		})
		runtime.KeepAlive(kept)
	}, "GOMAXPROCS=1") // so there is one shard
}

// TestPoll leaves no way to learn of a collection but Poll, which AddCleanup calls.
func TestPoll(t *testing.T) {
	t.Parallel()
	testchild.MustPass(t, func(t *testing.T) {
		var calls atomic.Int32
		block := make(chan int)
		var blocked atomic.Int32
		testcall.Aside(func() {
			runtime.AddCleanup(new(object), func(int) { blocked.Add(1); <-block }, 0)
			runtime.SetFinalizer(new(object), func(*object) { blocked.Add(1); <-block })
		})
		runtime.GC()
		testwait.Until(t, "the queues are blocked", func() bool { return blocked.Load() == 2 })
		testcall.Aside(func() {
			for range 100 {
				AddCleanup(new(object), func(c *atomic.Int32) { c.Add(1) }, &calls)
			}
		})
		for range 3 {
			runtime.GC()
		}
		if n := calls.Load(); n != 0 {
			t.Fatalf("%d functions were called, although all the runtime's queues are blocked", n)
		}
		var keep []*object
		testwait.Until(t, "all are called", func() bool {
			runtime.GC() // with the race detector several walks stop; see ordered
			for range slots {
				keep = append(keep, new(object))
				AddCleanup(keep[len(keep)-1], func(*int) {}, new(int))
			}
			return calls.Load() == 100
		})
		runtime.KeepAlive(keep)
	}, "GOMAXPROCS=2", "GOGC=off")
}

// TestBackToBack runs one collection after the other, as with GOGC=1. What was
// dropped is found nevertheless.
func TestBackToBack(t *testing.T) {
	for _, m := range modes {
		m.run(t, func(t *testing.T) {
			defer testwait.Loop(2, runtime.GC)()
			var calls atomic.Int64
			const n = 2000
			testcall.Aside(func() {
				for range n {
					AddCleanup(new(object), func(c *atomic.Int64) { c.Add(1) }, &calls)
				}
			})
			testwait.Until(t, "all are called", func() bool { return calls.Load() == n })
		})
	}
}
