package gcwatch

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
	"weak"

	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestNext counts how often the function is called: not before a collection, once
// after it, and not after others.
func TestNext(t *testing.T) {
	collectorOff(t)
	var calls atomic.Int64
	for i := range int64(30) {
		Next(func() { calls.Add(1) })
		if n := calls.Load(); n != i {
			t.Fatalf("called %d times after %d collections", n, i)
		}
		runtime.GC()
		testwait.Until(t, "it is called", func() bool { return calls.Load() > i })
	}
	for range 3 {
		testwait.Collect(t)
	}
	if n := calls.Load(); n != 30 {
		t.Errorf("30 functions were called %d times", n)
	}
}

// TestNextOneWay takes away all ways to learn of a collection but one. The function
// is still called, once, and outside of the caller's locks.
func TestNextOneWay(t *testing.T) {
	collectorOff(t)
	for name, ways := range map[string]int{"cleanup": byCleanup, "finalizer": byFinalizer, "filler": byFiller, "Poll": 0} {
		t.Run(name, func(t *testing.T) {
			by = ways
			defer func() { by = byCleanup | byFinalizer | byFiller }()
			var calls atomic.Int64
			const n = 8
			for i := range int64(n) {
				var mu sync.Mutex
				Next(func() {
					mu.Lock()
					defer mu.Unlock()
					calls.Add(1)
				})
				runtime.GC()
				if ways == 0 {
					if early := overdue(); len(early) != 0 || calls.Load() != i {
						t.Fatalf("called %d times after %d collections, one of them too early to count; %d are due", calls.Load(), i, len(early))
					}
					runtime.GC()
				}
				mu.Lock() // Poll may be called with a lock that the function needs
				testwait.Until(t, "it is on its way", func() bool {
					if ways == 0 {
						waiting.next.Store(0) // it need not wait before it looks again
						Poll()
					}
					return !waiting.some.Load()
				})
				mu.Unlock()
				testwait.Until(t, "it is called", func() bool { return calls.Load() == i+1 })
			}
			testwait.Collect(t)
			if got := calls.Load(); got != n || len(waiting.calls) != 0 {
				t.Errorf("called %d times, %d wait", got, len(waiting.calls))
			}
		})
	}
}

// TestFillerMadeBefore calls Next while a filler waits, which does not count for
// that call. The next filler does.
func TestFillerMadeBefore(t *testing.T) {
	collectorOff(t)
	by = byFiller
	defer func() { by = byCleanup | byFinalizer | byFiller }()
	var first, second atomic.Int64
	Next(func() { first.Add(1) })
	Next(func() { second.Add(1) })
	for n := range int64(2) {
		testwait.Collect(t)
		if first.Load() != 1 || second.Load() != n {
			t.Errorf("after %d collections the first is called %d times, and the second %d times", n+1, first.Load(), second.Load())
		}
	}
}

// TestAfterSweep counts the reports of ends of sweeps, and looks whether objects that
// died are swept then.
func TestAfterSweep(t *testing.T) {
	collectorOff(t)
	var reports, unswept atomic.Int64
	var object atomic.Pointer[uintptr] // the handle of a weak pointer
	report := func(since uint64) {
		if since+1 != Cycles() {
			t.Errorf("since %d, now %d", since, Cycles())
		}
		if atomic.LoadUintptr(object.Load()) != 0 {
			unswept.Add(1)
		}
		reports.Add(1)
	}
	const n = 30
	for i := range int64(n) {
		w := weak.Make(new([100]byte))
		object.Store(*(**uintptr)(unsafe.Pointer(&w)))
		afterSweep(report, Cycles())
		runtime.GC()
		testwait.Until(t, "it is reported", func() bool { return reports.Load() == i+1 })
		runtime.KeepAlive(w)
	}
	if got := unswept.Load(); got > n/3 {
		t.Errorf("%d of %d objects were not swept", got, n)
	}
}

// TestHammerNext calls Next and Poll from many goroutines. Each function is called
// once.
func TestHammerNext(t *testing.T) {
	var calls atomic.Int64
	var wg sync.WaitGroup
	const each = 500
	for range 4 {
		wg.Go(func() {
			for i := range each {
				Next(func() { calls.Add(1) })
				Poll()
				if i%50 == 0 {
					runtime.GC()
				}
			}
		})
	}
	wg.Wait()
	testwait.Until(t, "all are called", func() bool {
		runtime.GC()
		return calls.Load() == 4*each
	})
	testwait.Collect(t)
	if n := calls.Load(); n != 4*each {
		t.Errorf("%d calls", n)
	}
}

func BenchmarkPoll(b *testing.B) {
	Next(func() {})
	for b.Loop() {
		Poll()
	}
}

// TestNextBesideTinyObjects keeps small objects without pointers that were made
// just before and after.
func TestNextBesideTinyObjects(t *testing.T) {
	collectorOff(t)
	var calls atomic.Int64
	var keep []*[4]byte
	const n = 100
	for range n {
		keep = append(keep, new([4]byte))
		Next(func() { calls.Add(1) })
		keep = append(keep, new([4]byte))
	}
	runtime.GC()
	testwait.Until(t, "all are called", func() bool { return calls.Load() == n })
	runtime.KeepAlive(keep)
}

// TestNextAgain calls Next in the function.
func TestNextAgain(t *testing.T) {
	collectorOff(t)
	var calls atomic.Int64
	var stop atomic.Bool
	var f func()
	f = func() {
		if !stop.Load() {
			Next(f)
		}
		calls.Add(1)
	}
	Next(f)
	for i := range int64(10) {
		runtime.GC()
		testwait.Until(t, "it is called again", func() bool { return calls.Load() == i+1 })
	}
	stop.Store(true)
	runtime.GC()
	testwait.Until(t, "it is called for the last time", func() bool { return calls.Load() == 11 })
	testwait.Collect(t)
	if n := calls.Load(); n != 11 {
		t.Errorf("called %d times", n)
	}
}

// TestNextKeeps looks whether the function reaches what it refers to, and nothing
// does afterwards.
func TestNextKeeps(t *testing.T) {
	collectorOff(t)
	type object struct{ n *int }
	var got atomic.Int64
	w := func() weak.Pointer[object] {
		n := 7
		o := &object{&n}
		Next(func() { got.Store(int64(*o.n)) })
		return weak.Make(o)
	}()
	runtime.GC()
	testwait.Until(t, "it is called", func() bool { return got.Load() != 0 })
	if got.Load() != 7 {
		t.Errorf("it saw %d", got.Load())
	}
	testwait.Until(t, "it is forgotten", func() bool {
		runtime.GC()
		return w.Value() == nil
	})
}

// outside reports whether the goroutine is outside of all bubbles, by a call that
// panics there.
func outside() (out bool) {
	defer func() { out = recover() != nil }()
	synctest.Wait()
	return false
}

// TestInBubble asks inside of a bubble, now and after ten years, and outside. The
// function given to Next in the bubble is called outside, while the bubble waits
// and when it is gone.
func TestInBubble(t *testing.T) {
	if InBubble() || !outside() {
		t.Error("a bubble around the test")
	}
	var calls, wrong atomic.Int64
	f := func() {
		if InBubble() || !outside() {
			wrong.Add(1)
		}
		calls.Add(1)
	}
	synctest.Test(t, func(t *testing.T) {
		for range 2 {
			if !InBubble() || outside() {
				t.Error("not in the bubble")
			}
			time.Sleep(10 * 365 * 24 * time.Hour)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		Next(f)
		runtime.GC()
		for calls.Load() == 0 { // no clock goes on in the bubble
			runtime.Gosched()
		}
		Next(f)
	})
	runtime.GC()
	testwait.Until(t, "it is called after the bubble", func() bool { return calls.Load() == 2 })
	if wrong.Load() != 0 {
		t.Errorf("%d of 2 were called in a bubble", wrong.Load())
	}
}

// TestClock has the clock of the system set back by an hour.
func TestClock(t *testing.T) {
	now := time.Now()
	set := now
	*(*uint64)(unsafe.Pointer(&set)) -= 3600 << 30 // the seconds of a Time that has a monotonic clock as well
	if now.Unix()-set.Unix() != 3600 || Clock(set) != Clock(now) || Clock(now) <= 0 || Clock(now.Add(time.Second)) != Clock(now)+int64(time.Second) {
		t.Errorf("%v: %d; %v: %d", now, Clock(now), set, Clock(set))
	}
	synctest.Test(t, func(t *testing.T) {
		if Clock(time.Now()) >= 0 {
			t.Errorf("in a bubble: %d", Clock(time.Now()))
		}
	})
}
