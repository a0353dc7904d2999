package itest

import (
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// spanSizes are sizes of blocks of which a few fill a span, or that have spans
// of their own.
var spanSizes = []int{1000, 9000, 20_000, 40_000, 100_000, 500_000}

// fillSpans allocates blocks of spanSizes, verifies and frees them, and returns
// the units of address space that they lay in.
func fillSpans(t *testing.T, h *cheap.Heap) map[uintptr]bool {
	t.Helper()
	type block struct {
		p    unsafe.Pointer
		size int
	}
	var blocks []block
	units := map[uintptr]bool{}
	for i := range 10 * len(spanSizes) {
		size := spanSizes[i%len(spanSizes)]
		p := h.Calloc(1, size)
		if err := shadow.Zero(p, size); err != nil {
			t.Fatal(err)
		}
		shadow.Fill(p, size, uint64(i))
		blocks = append(blocks, block{p, size})
		units[uintptr(p)/span.UnitSize] = true
	}
	for i, b := range blocks {
		if err := shadow.Check(b.p, b.size, uint64(i)); err != nil {
			t.Fatal(err)
		}
		h.Free(b.p)
	}
	return units
}

// TestDecayedSpaceIsUsedAgain fills a heap, lets all of it decay, and fills it
// again, in the same places: address space is not used up by decay. No other test has
// used the heap of its process: what they give back is taken first.
func TestDecayedSpaceIsUsedAgain(t *testing.T) { inChild(t, testDecayedSpace) }

func testDecayedSpace(t *testing.T) {
	testheap.SetDecay(t, -1)
	h := newHeap(t)
	cheap.Trim()
	seen := fillSpans(t, h)
	once := len(seen)
	for round := range 100 {
		if round%2 == 0 {
			h.Trim() // which leaves nothing idle
			h.Free(h.Malloc(500_000))
		}
		if span.Idle() == 0 {
			t.Fatal("nothing is idle")
		}
		cheap.SetDecay(2 * time.Millisecond)
		testwait.Until(t, "nothing is idle", func() bool { return span.Idle() == 0 })
		cheap.SetDecay(-1)
		for unit := range fillSpans(t, h) {
			seen[unit] = true
		}
		if len(seen) > 3*once { // the places differ at first, to twice as many; a unit that is lost each round is more
			t.Fatalf("round %d: blocks lay in %d units so far, at first in %d", round, len(seen), once)
		}
	}
	h.Trim()
	if s := h.Stats(); s.Blocks != 0 || s.Cached != 0 {
		t.Errorf("%+v", s)
	}
}
