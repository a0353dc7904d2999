package itest

import (
	"flag"
	"runtime/debug"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cheapgo/cheap"
)

// TestMain fails if any test has left a goroutine behind. Models take more steps
// than rapid's default of 30, unless the race detector makes them slow.
func TestMain(m *testing.M) {
	steps := "80"
	if buildSetting("-race") == "true" {
		steps = "20"
	}
	if err := flag.Set("rapid.steps", steps); err != nil { // the command line is looked at later
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// buildSetting returns how this binary was built: the value of a flag of go
// build, or "".
func buildSetting(name string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == name {
				return s.Value
			}
		}
	}
	return ""
}

// newHeap returns a heap that is destroyed at the end, whatever is live.
func newHeap(t interface {
	Fatal(...any)
	Cleanup(func())
}) *cheap.Heap {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.DestroyAll() })
	return h
}

// setDecay is cheap.SetDecay for the time of a test.
func setDecay(t testing.TB, d time.Duration) {
	old := cheap.SetDecay(d)
	t.Cleanup(func() { cheap.SetDecay(old) })
}

// waitUntil calls f until it returns true, and fails if that takes long.
func waitUntil(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}
