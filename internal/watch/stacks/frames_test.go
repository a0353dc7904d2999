package stacks

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestFrames compares with runtime.Callers: each return address is there, in the same
// order, and stacks that differ have addresses that differ.
func TestFrames(t *testing.T) {
	has := runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"
	seen := map[[MostFrames]uintptr]int{}
	for n := 1 << 4; n < 1<<6; n++ {
		for range 2 { // in the second round all are known
			testcall.Site(n, func() {
				var pcs [MostFrames]uintptr
				got := Frames(&pcs)
				if !has {
					if got != 0 {
						t.Errorf("%d frames without frame pointers", got)
					}
					return
				}
				if got < 6 {
					t.Errorf("%d: %d frames", n, got)
				}
				if was, ok := seen[pcs]; ok && was != n {
					t.Errorf("%d and %d have the same frames", was, n)
				}
				seen[pcs] = n
				mustBeAmongCallers(t, pcs[:got])
			})
		}
	}
	if has && len(seen) != 1<<6-1<<4 {
		t.Errorf("%d stacks, want %d", len(seen), 1<<6-1<<4)
	}
}

// mustBeAmongCallers looks for the functions of return addresses in the stack of the caller.
func mustBeAmongCallers(t *testing.T, got []uintptr) {
	var pcs [100]uintptr
	want := pcs[:runtime.Callers(1, pcs[:])]
	for _, pc := range got {
		i := slices.IndexFunc(want, func(w uintptr) bool {
			return runtime.FuncForPC(pc-1).Entry() == runtime.FuncForPC(w-1).Entry()
		})
		if i < 0 {
			if name := runtime.FuncForPC(pc - 1).Name(); !strings.Contains(name, ".gowrap") { // Callers leaves these out
				t.Fatalf("%s is not a caller, or in another place", name)
			}
			continue
		}
		want = want[i:]
	}
}

// TestFramesOfDeepStacks has more frames than fit, while the stack grows.
func TestFramesOfDeepStacks(t *testing.T) {
	for _, depth := range []int{0, 1, 20, 40, 1000} {
		testcall.Deep(depth, func() {
			var pcs [MostFrames]uintptr
			n := Frames(&pcs)
			if n > MostFrames || n > 0 && n < min(depth, MostFrames) {
				t.Errorf("%d frames of a stack of %d", n, depth)
			}
			mustBeAmongCallers(t, pcs[:n])
		})
	}
}

// TestFramesWhileStacksMove has goroutines look while collections shrink stacks.
func TestFramesWhileStacksMove(t *testing.T) {
	done := make(chan error)
	for range 4 {
		go func() {
			var err error
			for i := range 300 {
				testcall.Deep(i%50, func() {
					var pcs [MostFrames]uintptr
					for _, pc := range pcs[:Frames(&pcs)] {
						if runtime.FuncForPC(pc-1) == nil {
							err = fmt.Errorf("%#x is in no function", pc)
						}
					}
				})
			}
			done <- err
		}()
	}
	for range 4 {
		runtime.GC()
		testcall.Want(t, <-done)
	}
}

func BenchmarkFrames(b *testing.B) {
	var pcs [MostFrames]uintptr
	for b.Loop() {
		Frames(&pcs)
	}
}

func BenchmarkCallers(b *testing.B) {
	var pcs [MostFrames]uintptr
	for b.Loop() {
		runtime.Callers(0, pcs[:])
	}
}
