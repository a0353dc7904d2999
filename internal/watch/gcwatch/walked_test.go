package gcwatch

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestWalked has functions that take longer than a walk may on a goroutine of the
// runtime. Walked reports true when all of them have returned, and not before.
func TestWalked(t *testing.T) {
	if !peeking.Load() {
		t.Fatal("weak pointers are not read")
	}
	collectorOff(t)
	longWalks(t)
	const n, tries = 3 * slots, 5
	var calls atomic.Int64
	lost := 0
	for i := range int64(tries) {
		goOn := make(chan struct{})
		for range n {
			drop(func(c *atomic.Int64) { <-goOn; c.Add(1) }, &calls)
		}
		runtime.GC()
		number := Cycles()
		if Walked(number) {
			t.Errorf("collection %d: over, although no function has returned", i)
		}
		close(goOn)
		testwait.Until(t, "the walk is over", func() bool {
			idle := testwait.Queued() == 0 && !Walking()
			over := Walked(number)
			if got := calls.Load(); over && got != (i+1)*n {
				t.Errorf("collection %d: over after %d calls of %d", i, got-i*n, n)
			}
			if !over && idle { // the report is lost, as it may be
				lost++
				Walk(number)
				return race.Build // where Walk does nothing
			}
			return over
		})
		collect(t)
	}
	if lost == tries {
		t.Error("no end of a sweep is reported")
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
		collect(t)
		number := Cycles()
		if Walked(number) {
			t.Fatal("a walk is over that was never asked for")
		}
		Walk(number)
		if race.Build { // it does nothing: the detector does not know what happened before
			continue
		}
		testwait.Until(t, "the walk is over", func() bool { return Walked(number) })
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
