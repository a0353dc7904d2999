//go:build cgo && unix

package tables

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/lab/internal/lifetime"
)

// TestReleaseKept runs the ways without a collector. Forgotten objects are kept until
// a collection, and released by it.
func TestReleaseKept(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, r := range releases {
		if r.purpose == more { // no row without a collector
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			l, err := r.way()
			testcall.Must(t, err)
			r.way = func() (*lifetime.Lifetime, error) { return l, nil }
			w, err := r.row(true).Open(1)
			testcall.Must(t, err)
			const n = 1600
			w.Run(n)
			testcall.Want(t, w.Check(n))
			if r.forgets {
				if err := w.Check(n + 1); err == nil && r.name != "finalizer-no-c" && !strings.HasPrefix(r.name, "own-m") && r.name != "own-group" {
					t.Errorf("%d objects passed for %d", n, n+1)
				}
			}
			testcall.Want(t, l.Settle())
			testcall.Want(t, l.Check(n))
			if r.forgets && w.Check(n) == nil {
				t.Error("objects that were released passed for kept")
			}
			testcall.Want(t, l.Close())
		})
	}
}

// TestNoSize checks the note on finalizer-no-c: the runtime ignores the finalizer of
// an object of no size.
func TestNoSize(t *testing.T) {
	ran := make(chan bool, 1)
	done := make(chan bool, 1)
	go func() {
		type object struct{ _ *int }
		runtime.SetFinalizer(new(struct{}), func(*struct{}) { ran <- true })
		runtime.SetFinalizer(new(object), func(*object) { done <- true })
	}()
	testcall.Must(t, lifetime.Collect(func() int { return 1 - len(done) }))
	runtime.GC()
	if len(ran) > 0 {
		t.Error("the finalizer of an object without a size ran")
	}
}

// TestLiveIsThere checks that the objects are in the Go heap during its collections. They take 24
// bytes each, with the pointer to each, which are no part of the figure.
func TestLiveIsThere(t *testing.T) {
	const n = 50_000
	for _, p := range populations {
		w := openLive(p.open(), n)
		w.Run(2)
		if err := w.Check(2); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		// What else the process has dropped is collected meanwhile, but that is some kilobytes.
		if got := w.Figures().HeapBytes; got < -4 || got > 40 || p.name == "own" && got < 4 {
			t.Errorf("%s: %v bytes of the Go heap for an object beside its own", p.name, got)
		}
		w.Close()
	}
}
