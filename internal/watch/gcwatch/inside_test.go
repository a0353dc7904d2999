package gcwatch

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestAddInFunction calls AddCleanup and Stop in a function.
func TestAddInFunction(t *testing.T) {
	collectorOff(t)
	var calls atomic.Int32
	var f func(c *atomic.Int32)
	f = func(c *atomic.Int32) {
		if c.Add(1) < 5 {
			AddCleanup(new(object), func(*int) { t.Error("a stopped function is called") }, new(int)).Stop()
			AddCleanup(new(object), f, c)
		}
	}
	drop(f, &calls)
	collections(t, "all are called", 11, func() bool { return calls.Load() == 5 })
}

// TestGoexit ends the goroutine in a function. Others are called after that.
func TestGoexit(t *testing.T) {
	collectorOff(t)
	var calls atomic.Int32
	collect(t) // or a walk that is under way says that none is
	walks.mu.Lock()
	walks.running = true // a walk on a goroutine of the runtime must not end that
	walks.mu.Unlock()
	drop(func(*atomic.Int32) { runtime.Goexit() }, &calls)
	testwait.Collect(t)
	walks.mu.Lock()
	walks.since = 1 << 62 // nor stop without the function, see ordered
	walks.mu.Unlock()
	go walkOver(registry[:], forever)
	collections(t, "the function has ended the walk", 3, func() bool { return count() == 0 })
	drop(func(c *atomic.Int32) { c.Add(1) }, &calls)
	collections(t, "the next one is called", 3, func() bool { return calls.Load() == 1 })
}

// TestPanic ends the program with a panic of a function.
func TestPanic(t *testing.T) {
	t.Parallel()
	output, status := testchild.Run(t, func() {
		drop(func(*int) { panic("of the function") }, new(int))
		for {
			runtime.GC()
		}
	})
	if status != 2 || !strings.Contains(output, "panic: of the function") {
		t.Errorf("status %d, output\n%s", status, output)
	}
}

// TestBubble calls AddCleanup in a bubble. The function is called outside, while the
// bubble is there and afterwards, also by a walk with a goroutine of its own.
func TestBubble(t *testing.T) {
	collectorOff(t)
	var calls, wrong atomic.Int64
	f := func(c *atomic.Int64) {
		if InBubble() {
			wrong.Add(1)
		}
		c.Add(1)
	}
	const n = 1000
	defer inline.Store(inline.Load())
	inline.Store(n / 2)
	synctest.Test(t, func(t *testing.T) {
		drop(f, &calls)
		for calls.Load() == 0 {
			runtime.GC()
			waitABit()
		}
		for range n {
			AddCleanup(new(object), f, &calls)
		}
	})
	collections(t, "all are called", 3, func() bool { return calls.Load() == n+1 })
	if wrong.Load() != 0 {
		t.Errorf("%d of %d were called in a bubble", wrong.Load(), n+1)
	}
}
