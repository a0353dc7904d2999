package heap

import (
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// TestLargeSpare has a large block taken again, whole and unused, and given back where others need its memory.
func TestLargeSpare(t *testing.T) {
	testheap.SetDecay(t, -1)
	const size = 100_000
	h := NewHeap(t, Options{Limit: 1 << 20})
	p := h.Malloc(size)
	testheap.RawBytes(p, size)[size-1] = 1
	h.Free(p)
	if n := h.large.spares.n; n != 1 {
		t.Fatalf("%d blocks are spare", n)
	}
	wantMisuse(t, "Heap.Free", func() { h.Free(p) })
	wantMisuse(t, "Heap.Realloc", func() { h.Realloc(unsafe.Add(p, span.UnitSize), size) })
	if s := h.Stats(); s.Blocks != 0 || s.Bytes != 0 || s.Mallocs != 1 {
		t.Errorf("%+v", s)
	}
	if q := h.AlignedMalloc(size, 1<<20); q == p && uintptr(p)%(1<<20) != 0 {
		t.Error("a spare block has not the alignment")
	} else {
		h.Free(q)
	}
	q := h.Calloc(1, size)
	if testheap.RawBytes(q, size)[size-1] != 0 {
		t.Error("Calloc returns a spare block as it was")
	}
	if s := h.Stats(); s.Blocks != 1 || s.Mallocs != 3 {
		t.Errorf("%+v", s)
	}
	h.Free(q)

	for n := 2; n <= 8; n++ { // sizes that fit only without spare blocks of other sizes
		p := h.Malloc(1<<20 - 1<<14 - n<<16)
		if p == nil {
			t.Fatalf("%d spare blocks are in the way", h.large.spares.n)
		}
		h.Free(p)
	}
	if _, err := h.TryMalloc(2 << 20); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
	a, b := h.Malloc(size), h.Malloc(size) // of two neighbours one has not the alignment
	h.Free(a)
	h.Free(b)
	a, b = h.AlignedMalloc(size, 1<<20), h.AlignedMalloc(size, 1<<20)
	if uintptr(a)%(1<<20) != 0 || uintptr(b)%(1<<20) != 0 {
		t.Error("a spare block has not the alignment")
	}
	h.Free(a)
	h.Free(b)
	if h.reclaimLarge(false); h.large.spares.n != 0 {
		t.Error("a spare block stays")
	}
	MustHoldNothing(t, h)
}

// TestLargeSpareBounds frees blocks of many sizes in many heaps, and lets two ticks pass.
func TestLargeSpareBounds(t *testing.T) {
	testheap.SetDecay(t, time.Hour)
	var all []*Heap
	kept := int64(0)
	for range 40 {
		h := NewHeap(t, Options{})
		for size := 1 << 20; size > 70_000; size -= 30_000 {
			h.Free(h.Malloc(size))
		}
		if l := h.large.spares; l.bytes > mostSpare || l.bytes > l.counted {
			t.Fatalf("%+v", l)
		}
		kept += int64(h.large.spares.bytes)
		all = append(all, h)
	}
	if kept == 0 || kept > span.Spare() || span.Spare() > 5<<20 {
		t.Errorf("%d bytes are spare in large blocks, %d in all", kept, span.Spare())
	}
	p := all[0].Malloc(mostSpare)
	for range 2 {
		Tick()
	}
	for _, h := range all {
		if h.large.spares.n != 0 {
			t.Fatalf("%d blocks are spare after two ticks", h.large.spares.n)
		}
	}
	all[0].Free(p)
	Tick()
	if all[0].Malloc(mostSpare) != p {
		t.Error("the first tick has taken a spare block")
	}
	all[0].Free(p)
	testheap.SetDecay(t, 0)
	h := all[0]
	h.Free(h.Malloc(mostSpare))
	if h.large.spares.n != 0 || span.Spare() != 0 {
		t.Error("a block is spare without a decay")
	}
}

// TestKeptSpan frees blocks that are alone in their spans, where no cache takes them: one span stays, for the next
// block, until the second tick.
func TestKeptSpan(t *testing.T) {
	testheap.SetDecay(t, time.Hour)
	testheap.WithRate(t, 0)
	h := NewHeap(t, Options{})
	c := sizeclass.Of(33_000)
	cl := &h.classes[c]
	take := func() uintptr {
		p, _, _, err := cl.get(h, c, 1)
		testcall.Must(t, err)
		return p
	}
	free := func(p uintptr) {
		if !cl.putOne(h, span.Find(p), p) {
			t.Fatal("not freed")
		}
	}
	p, q := take(), take()
	held := h.Stats().Held
	free(p)
	free(q)
	if s := h.Stats(); s.Held != held-spanCost(c) || s.Blocks != 0 {
		t.Errorf("%+v, with two blocks it held %d", s, held)
	}
	if take() != p {
		t.Error("another span was taken")
	}
	free(p)
	Tick()
	if take() != p {
		t.Error("the first tick has taken the span")
	}
	free(p)
	Tick()
	Tick()
	if n := h.Stats().Held; n != 0 || span.Spare() != 0 {
		t.Errorf("%d bytes are held after two ticks", n)
	}
	p = take()
	free(p)
	testheap.RawBytes(osmem.Pointer(p), 16)[3]++
	wantMisuse(t, "Heap", func() { h.Malloc(33_000) }, "written to after it was freed")
}
