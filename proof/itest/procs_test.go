package itest

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// manyPs is how many Ps the caches are filled on.
const manyPs = 8

// setProcs is runtime.GOMAXPROCS for the time of a test.
func setProcs(t *testing.T, n int) {
	old := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(old) })
}

// fillCaches fills a cache on each P, and leaves no block in use.
func fillCaches(t *testing.T, h *cheap.Heap) {
	t.Helper()
	setProcs(t, manyPs)
	for try := 0; ; try++ {
		testheap.OnAllPs(manyPs, func() {
			for i := range 200 {
				var blocks [50]unsafe.Pointer
				for j := range blocks {
					blocks[j] = h.Malloc((i + j) * 20)
				}
				for _, p := range blocks {
					h.Free(p)
				}
			}
		})
		s := h.Stats()
		if s.Blocks != 0 || s.Cached == 0 {
			t.Fatalf("%+v; all is free, and some of it in caches", s)
		}
		if s.Caches > 1 {
			return
		}
		if try == 100 {
			t.Fatalf("%+v: %d goroutines never ran on two Ps", s, manyPs)
		}
	}
}

// mustBeOneCache looks whether the caches of Ps that do not run are gone, with
// all that was in them. Of those that belong to no P it can only say that Trim
// empties them.
func mustBeOneCache(t *testing.T, h *cheap.Heap) {
	t.Helper()
	if !percpu.Portable {
		if s := h.Stats(); s.Caches != 1 || s.Cached > s.CacheMax || s.Blocks != 0 {
			t.Errorf("one P runs: %+v", s)
		}
	}
	h.Trim()
	if s := h.Stats(); s.Cached != 0 || s.Frees != s.Mallocs {
		t.Errorf("after Trim: %+v", s)
	}
}

// TestFewerPsAfterDecay takes Ps away and leaves the heap alone: the decay of
// what is idle looks after their caches.
func TestFewerPsAfterDecay(t *testing.T) {
	testheap.SetDecay(t, time.Hour)
	h := newHeap(t)
	fillCaches(t, h)
	h.Free(h.Malloc(500_000)) // is idle from now on
	p := h.Malloc(16)
	runtime.GOMAXPROCS(1)
	h.Free(p) // so the P that is left has a cache, and the heap has not grown
	cheap.SetDecay(10 * time.Millisecond)
	testwait.Until(t, "nothing is idle", func() bool { return span.Idle() == 0 })
	mustBeOneCache(t, h)
}

// TestFewerPsAfterGrowth takes Ps away and has the heap grow beyond what the process has, with no decay.
func TestFewerPsAfterGrowth(t *testing.T) {
	testheap.SetDecay(t, -1)
	h := newHeap(t)
	fillCaches(t, h)
	before := h.Stats()
	runtime.GOMAXPROCS(1)
	h.Free(h.Malloc(16))
	span.TrimAll()
	h.Free(h.Malloc(8 << 20))
	mustBeOneCache(t, h)
	if s := h.Stats(); s.Mallocs != before.Mallocs+2 {
		t.Errorf("%+v, before %+v: two mallocs", s, before)
	}
}

// TestFewerPsHoldNothing takes Ps away from a heap that is full of free blocks
// and destroys it: neither blocks nor counts are lost with the caches.
func TestFewerPsHoldNothing(t *testing.T) {
	h := newHeap(t)
	for range 3 {
		fillCaches(t, h)
		runtime.GOMAXPROCS(1)
		h.Trim()
		if s := h.Stats(); s.Cached != 0 || s.Blocks != 0 || s.Frees != s.Mallocs {
			t.Errorf("%+v", s)
		}
	}
	if err := h.Destroy(); err != nil {
		t.Error(err)
	}
}
