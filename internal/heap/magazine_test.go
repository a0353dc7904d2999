package heap

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// spread allocates blocks of some classes, of each with so many bytes together, and then
// frees them, with a Local, whose cache is empty in the end.
func spread(h *Heap, bytes int, classes ...int) {
	l := h.NewLocal()
	var blocks []uintptr
	for _, c := range classes {
		size := int(sizeclass.Classes[c].Size)
		for range bytes / size {
			blocks = append(blocks, uintptr(l.Malloc(size)))
		}
	}
	for _, p := range blocks {
		l.Free(osmem.Pointer(p))
	}
	_ = l.Destroy()
}

// spare returns how many bytes h keeps in batches beyond those that may stay.
func (h *Heap) spare() (n int64) {
	for c := range h.classes {
		cl := &h.classes[c]
		for i := int32(leastFull); i < cl.numFull; i++ {
			n += cl.full[i].bytes(uint8(c))
		}
	}
	return n
}

// TestSpareBounds frees many blocks of one class, and then of all classes. The batches that
// are kept whole are bounded, and package span knows how many bytes they have.
func TestSpareBounds(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	defer span.SetDecay(span.SetDecay(-1))
	Trim()
	before := span.Magazines.Bytes()
	h := NewHeap(t, Options{})
	const c = 10
	cl, class := &h.classes[c], &sizeclass.Classes[c]
	batch := int64(class.Magazine) * int64(class.Size)
	spread(h, 2*mostFullBytes, c)
	if got := int64(cl.numFull) * batch; got < mostFullBytes-batch || got > mostFullBytes+batch {
		t.Errorf("%d bytes are in whole batches, for %d", got, mostFullBytes)
	}
	if got, want := span.Magazines.Bytes()-before, h.spare(); got != want || want == 0 {
		t.Errorf("%d bytes are counted, and %d are spare", got, want)
	}
	var all []int
	for c := range h.classes {
		all = append(all, c)
	}
	spread(h, mostFullBytes, all...)
	const most = 4 << 20
	if got := span.Magazines.Bytes(); got > most || got < most-most/4 {
		t.Errorf("%d bytes are spare, of %d that may be", got, most)
	}
	if got, want := span.Magazines.Bytes()-before, h.spare(); got != want {
		t.Errorf("%d bytes are counted, and %d are spare", got, want)
	}
	h.Trim()
	if got := span.Magazines.Bytes(); got != before || h.spare() != 0 {
		t.Errorf("%d bytes are spare after Trim, and were %d", got, before)
	}
	spread(h, 2*mostFullBytes, c)
	if err := h.DestroyAll(); err != nil || span.Magazines.Bytes() != before {
		t.Errorf("%v: %d bytes are spare after DestroyAll, and were %d", err, span.Magazines.Bytes(), before)
	}
}

// TestSpareUnasked looks which batches a tick sorts: those that were there at the tick
// before, and that no cache has asked for since.
func TestSpareUnasked(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	defer span.SetDecay(span.SetDecay(-1))
	Trim()
	h := NewHeap(t, Options{})
	const c = 3
	cl := &h.classes[c]
	spread(h, 20*64*64, c)
	n := cl.numFull
	if n < 10 {
		t.Fatalf("%d batches are whole", n)
	}
	h.sortUnasked()
	if cl.numFull != n {
		t.Errorf("the first tick left %d of %d batches", cl.numFull, n)
	}
	l := h.NewLocal()
	var blocks []uintptr
	for cl.numFull > n-3 {
		blocks = append(blocks, uintptr(l.Malloc(int(sizeclass.Classes[c].Size))))
	}
	for _, p := range blocks {
		l.Free(osmem.Pointer(p))
	}
	_ = l.Destroy()
	now := cl.numFull
	h.sortUnasked()
	if want := now - (n - 3) + leastFull; cl.numFull != want {
		t.Errorf("the second tick left %d of %d batches, not %d", cl.numFull, now, want)
	}
	h.sortUnasked()
	if cl.numFull != leastFull || h.spare() != 0 {
		t.Errorf("the third tick left %d batches", cl.numFull)
	}
	if s := h.Stats(); s.Blocks != 0 {
		t.Errorf("%+v", s)
	}
}

// TestStatsBesideTicks compares the counts of a heap that nobody uses, while ticks and a Trim of
// another goroutine sort its magazines.
func TestStatsBesideTicks(t *testing.T) {
	testheap.WithRate(t, 0) // magazines have no sampled blocks
	defer span.SetDecay(span.SetDecay(-1))
	h := NewHeap(t, Options{})
	for round := range testheap.HammerRounds(400) {
		spread(h, 20*64*64, 3)
		var sorted atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			if round%2 == 0 {
				h.sortMagazines()
			} else {
				for range 3 {
					h.sortUnasked()
				}
			}
			sorted.Store(true)
		})
		for done := false; !done; {
			done = sorted.Load()
			if s := h.Stats(); s.Blocks != 0 || s.Mallocs != s.Frees {
				t.Errorf("round %d: no block is in use, and the counts are %+v", round, s)
				break
			}
		}
		wg.Wait()
	}
}

// TestSpareDecays waits until a timer has sorted the batches that no cache asks for. One block
// of each span is in use, so no unit is idle, and nothing else arms the timer.
func TestSpareDecays(t *testing.T) {
	defer span.SetDecay(span.SetDecay(2 * time.Millisecond))
	h := NewHeap(t, Options{})
	l := h.NewLocal()
	units := map[uintptr]uintptr{}
	for range 3 {
		var blocks []uintptr
		for range 20 * 64 {
			p := uintptr(l.Malloc(64))
			if unit := p >> span.UnitShift; units[unit] == 0 {
				units[unit] = p
			} else {
				blocks = append(blocks, p)
			}
		}
		testwait.Until(t, "nothing is idle", func() bool { return span.Idle() == 0 && span.Spare() == 0 })
		for _, p := range blocks {
			l.Free(osmem.Pointer(p))
		}
		testwait.Until(t, "nothing is spare", func() bool { return span.Spare() == 0 })
		if n := h.classes[sizeclass.Of(64)].numFull; n > leastFull {
			t.Errorf("%d batches are whole", n)
		}
	}
	_ = l.Destroy()
	for _, p := range units {
		h.Free(osmem.Pointer(p))
	}
}

// TestSpareNoDecay sets a decay of 0, with which nothing is kept but what always is.
func TestSpareNoDecay(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	defer span.SetDecay(span.SetDecay(-1))
	Trim()
	h := NewHeap(t, Options{})
	spread(h, 20*64*64, 3)
	if h.spare() == 0 {
		t.Fatal("nothing is spare")
	}
	span.SetDecay(0)
	if h.spare() != 0 {
		t.Errorf("%d bytes are spare", h.spare())
	}
	testwait.Until(t, "nothing is idle", func() bool { return span.Idle() == 0 })
	spread(h, 20*64*64, 3)
	if h.spare() != 0 || h.classes[3].numFull != leastFull {
		t.Errorf("%d bytes are spare, %d batches are whole", h.spare(), h.classes[3].numFull)
	}
}

// TestDestroyLooksAtBatches writes to a free block that is in a batch of its class.
func TestDestroyLooksAtBatches(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	h := NewHeap(t, Options{})
	spread(h, 8*64*64, 3)
	if h.classes[3].numFull == 0 {
		t.Fatal("no batch is whole")
	}
	p := block.NextOf(block.At(h.classes[3].full[0].list).Link)
	block.At(p).Canary ^= 1 << 20
	MustAccuse(t, "Heap", p, func() { _ = h.Destroy() }, "was written to")
}
