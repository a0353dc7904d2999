package cleanup

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/aftergc"
	"github.com/cheapgo/cheap/internal/race"
)

// TestWalked has functions that take longer than a walk may on a goroutine of the
// runtime. Walked reports true when all of them have returned, and not before.
func TestWalked(t *testing.T) {
	if !peeking.Load() {
		t.Fatal("weak pointers are not read")
	}
	collectorOff(t)
	const n = 3 * slots
	var calls atomic.Int64
	early := 0
	for i := range int64(5) {
		for range n {
			drop(func(c *atomic.Int64) { time.Sleep(mostInline / slots); c.Add(1) }, &calls)
		}
		runtime.GC()
		number := aftergc.Cycles()
		asked := time.Now()
		waitUntil(t, "the walk is over", func() bool {
			if !Walked(number) {
				early++
				if time.Since(asked) > time.Second {
					// The report is lost. It may be that no other comes in this process: TestGoexit
					// ends a goroutine of the runtime that calls cleanups.
					if race.Build {
						return true
					}
					Walk(number)
					asked = time.Now()
				}
				time.Sleep(100 * time.Microsecond)
				return false
			}
			if got := calls.Load(); got != (i+1)*n {
				t.Errorf("collection %d: over after %d calls of %d", i, got-i*n, n)
			}
			return true
		})
	}
	if early == 0 {
		t.Error("each walk was over at the first look")
	}
}

// TestWalk has the report of the end of the sweep be lost. Then Walked is false until
// Walk is called.
func TestWalk(t *testing.T) {
	collectorOff(t)
	defer func(b bool) { reported.Store(b) }(reported.Load())
	reported.Store(false)
	var calls atomic.Int64
	for i := range int64(5) {
		drop(func(c *atomic.Int64) { c.Add(1) }, &calls)
		runtime.GC()
		number := aftergc.Cycles()
		time.Sleep(2 * time.Millisecond)
		if Walked(number) {
			t.Fatal("a walk is over that was never asked for")
		}
		Walk(number)
		if race.Build { // it does nothing: the detector does not know what happened before
			continue
		}
		waitUntil(t, "the walk is over", func() bool { return Walked(number) })
		if got := calls.Load(); got != i+1 {
			t.Errorf("%d calls after %d walks", got, i+1)
		}
		// A second one for the same collection finds nothing to do.
		walks.mu.Lock()
		walks.over = 0
		walks.mu.Unlock()
		Walk(number)
		if Walked(number) {
			t.Error("it has walked twice")
		}
	}
}
