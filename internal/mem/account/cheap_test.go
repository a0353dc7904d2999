package account

import (
	"sync"
	"sync/atomic"
	"testing"
)

// A testHeap is a C heap whose size a test sets.
type testHeap struct {
	bytes   int64
	watched []bool
}

func (h *testHeap) InUse() (blocks, bytes int64) { return 7, h.bytes }

func (h *testHeap) Watch(on bool) { h.watched = append(h.watched, on) }

// TestCHeap has a C heap whose size a test sets, and of which another account counts a part.
func TestCHeap(t *testing.T) {
	l, c := New(), new(testHeap)
	l.Refresh() // without a C heap: nothing
	l.OpenCHeap(c)
	live := func() (int64, int64) { return 0, 0 }
	part, other := l.Open(Options{Name: "part", Live: live, InCHeap: true}), l.Open(Options{Name: "other", Live: live})
	check := func(step string, wantHeld, wantReclaimable, wantEver int64) {
		t.Helper()
		l.Refresh()
		mustBalance(t, l)
		n, ever := l.Reclaimable()
		if h := l.Held(); h != wantHeld || n != wantReclaimable || ever != wantEver {
			t.Errorf("%s: held %d, reclaimable %d, ever %d, want %d, %d, %d", step, h, n, ever, wantHeld, wantReclaimable, wantEver)
		}
	}
	c.bytes = 100
	check("grown", 100, 100, 100)
	other.Charge(5)
	check("another account", 105, 100, 100)
	part.Charge(30)
	check("a part is counted", 105, 70, 100)
	part.Charge(200)
	check("more than the C heap has", 235, 0, 100)
	part.Uncharge(200)
	part.TryUncharge(10)
	check("less of it", 105, 80, 180)
	if !part.TryCharge(20) {
		t.Fatal("refused")
	}
	check("taken", 105, 60, 180)
	c.bytes = 60
	check("shrunk", 65, 20, 180)
	part.Close()
	check("a part is forgotten", 65, 60, 220)
	if n := l.MeanCharge(); n != 0 && n > 1000 {
		t.Errorf("the bytes of the C heap count as those of one owner: %d", n)
	}

	checks := 0
	l.SetPacer(pacer{check: func() { checks++ }, pressure: func() { t.Error("the goroutine may wait") }})
	l.SetBounds(heldAt(l.Held() + 10))
	c.bytes = 80
	l.Refresh()
	l.Check()
	l.Check()
	if checks != 1 {
		t.Errorf("%d checks, want one", checks)
	}
	l.SetPacer(nil)
	if len(c.watched) != 3 || c.watched[0] || !c.watched[1] || c.watched[2] {
		t.Errorf("watched: %v", c.watched)
	}
	if list := l.List(); len(list) != 2 || list[0].Name != "C heap" || list[0].Blocks != 7 {
		t.Errorf("%+v", list)
	}
}

// TestCHeapLate has package cmem come after package pace, as with a plugin, and at the same time. The
// last call of Watch is right.
func TestCHeapLate(t *testing.T) {
	l, c := New(), new(testHeap)
	l.SetPacer(pacer{})
	l.OpenCHeap(c)
	if len(c.watched) != 1 || !c.watched[0] {
		t.Errorf("watched: %v", c.watched)
	}
	for i := range 2000 {
		l, c := New(), new(testHeap)
		var wg sync.WaitGroup
		var begin atomic.Int32
		both := func(f func()) {
			wg.Go(func() {
				for begin.Add(1); begin.Load() < 2; {
				}
				f()
			})
		}
		both(func() { l.OpenCHeap(c) })
		both(func() {
			l.SetPacer(pacer{})
			if i%2 == 0 {
				l.SetPacer(nil)
			}
		})
		wg.Wait()
		if last := c.watched[len(c.watched)-1]; last != (i%2 != 0) {
			t.Fatalf("the last call is Watch(%v): %v", last, c.watched)
		}
	}
}
