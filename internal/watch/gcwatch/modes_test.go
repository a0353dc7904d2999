package gcwatch

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// An object has about the size of a sentinel of package own.
type object struct {
	next *object
	_    [56]byte
}

// collectorOff leaves all collections to the test.
func collectorOff(t *testing.T) {
	runtime.GC()
	percent := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
}

// collect runs a collection, and waits until the walks are over that follow it.
func collect(t *testing.T) {
	t.Helper()
	testwait.Collect(t)
	testwait.Until(t, "the walk is over", func() bool { return !Walking() })
}

// collections runs collections, up to most of them, until f returns true, and
// returns how many were needed.
func collections(t *testing.T, what string, most int, f func() bool) (n int) {
	t.Helper()
	for ; !f(); n++ {
		if n == most {
			t.Fatalf("after %d collections it is not so that %s; %d functions wait", n, what, count())
		}
		collect(t)
	}
	return n
}

func drop[A any](f func(*A), arg *A) { testcall.Aside(func() { AddCleanup(new(object), f, arg) }) }

// A mode takes some of the ways of the package away.
type mode struct {
	name     string
	peeking  bool
	reported bool // the sentinels have cleanups
	most     int  // number of collections until the function is called
}

// modes is a list of all modes. In the usual one a function is called after the
// first collection.
var modes = []mode{
	{"usual", true, true, 1},
	{"no cleanups", true, false, 2},
	{"no handles", false, true, 3},
	{"neither", false, false, 3},
}

func (m mode) run(t *testing.T, f func(t *testing.T)) {
	t.Run(m.name, func(t *testing.T) {
		defer func(b bool) { peeking.Store(b) }(peeking.Load())
		defer func(b bool) { reported.Store(b) }(reported.Load())
		m.set()
		f(t)
	})
}

// set sets the mode of the process.
func (m mode) set() {
	peeking.Store(m.peeking)
	reported.Store(m.reported)
}

// waitABit lets others run. In a bubble no clock goes on.
func waitABit() {
	for range 1000 {
		runtime.Gosched()
	}
}

// TestKnown fails if weak pointers of this version of Go are not as expected. The
// package works then, and is slower.
func TestKnown(t *testing.T) {
	if !known() || !peeking.Load() {
		t.Error("weak pointers do not look as expected")
	}
}
