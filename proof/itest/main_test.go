package itest

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"

	"github.com/cheapgo/cheap"
)

// TestMain fails if any test has left a goroutine behind. Models are checked 25 times, not
// 100 as is rapid's default, and take more steps than its 30, unless the race detector makes
// them slow.
func TestMain(m *testing.M) {
	steps := "80"
	if buildSetting("-race") == "true" {
		steps = "20"
	}
	for name, value := range map[string]string{"rapid.steps": steps, "rapid.checks": "25"} {
		if err := flag.Set(name, value); err != nil { // the command line is looked at later
			panic(err)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		os.RemoveAll(deadlockDir)
		os.Exit(status)
	}))
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
