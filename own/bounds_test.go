package own

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// A tally is what a batch holds that is not closed.
type tally struct {
	owners int
	bytes  int64
	kept   *thing
}

// tallies sorts owners by their batch.
func tallies(things []*thing) map[*batch.Batch]*tally {
	all := map[*batch.Batch]*tally{}
	for _, m := range things {
		if m.Closed() {
			continue
		}
		b := all[m.owner.ref.Sentinel().Batch]
		if b == nil {
			b = &tally{kept: m}
			all[m.owner.ref.Sentinel().Batch] = b
		}
		b.owners++
		b.bytes += m.cell.size
	}
	return all
}

// TestBounds keeps one owner of each batch alive, and drops the rest. The
// resources that are not released because of it stay within Batch and Pinned.
func TestBounds(t *testing.T) {
	for _, o := range []Options{{}, {Batch: 10}, {Pinned: 1000}, {Pinned: 1 << 20}, {Batch: 10_000, Pinned: 4 << 20}, {Batch: 1}} {
		for _, size := range []int{16, 100, 1000, 4 << 10, 33_000, 64<<10 - 1, 64 << 10, 100_000, 1 << 20, 0, -1} {
			for _, closes := range []bool{false, true} {
				t.Run(fmt.Sprintf("batch=%d/pinned=%d/size=%d/closes=%v", o.Batch, o.Pinned, size, closes), func(t *testing.T) {
					mustBeBounded(t, o, size, closes)
				})
			}
		}
	}
}

// mustBeBounded is a row of TestBounds. Size 0 is any, -1 not known.
func mustBeBounded(t *testing.T, o Options, size int, closes bool) {
	batch, pinned := o.Batch, int64(o.Pinned)
	if batch == 0 {
		batch = 256
	}
	if pinned == 0 {
		pinned = 64 << 10
	}
	const n = 600
	w := newWorld(t, n)
	p := w.pool(o)
	var kept []*thing
	var want int64
	testcall.Aside(func() {
		var things []*thing
		for range n {
			s := size
			switch size {
			case 0:
				s = 1 << rand.N(21)
			case -1:
				s = 4 << 10
			}
			m := &thing{cell: w.create(s)}
			told := s
			if size == -1 {
				told = 0
			}
			testcall.Must(t, m.Own(p, m.cell.pointer(), told))
			if things = append(things, m); closes && rand.N(10) != 0 {
				things[rand.N(len(things))].Close()
			}
		}
		for _, b := range tallies(things) {
			if b.owners > batch {
				t.Errorf("a batch of %d owners", b.owners)
			}
			if b.owners > 1 && b.bytes > pinned {
				t.Errorf("a batch of %d bytes, in %d owners", b.bytes, b.owners)
			}
			if b.owners > 1 && b.kept.cell.size >= pinned {
				t.Errorf("%d bytes share a batch", b.kept.cell.size)
			}
			kept = append(kept, b.kept)
			want += b.kept.cell.size
		}
	})
	for range 2 {
		gc(t)
	}
	var own int64
	for _, m := range kept {
		mustBeAlive(t, m.cell, "although it is held")
		own += m.cell.size
	}
	if live, most := w.bytes.Load(), own+int64(len(kept))*pinned; live > most {
		t.Errorf("%d bytes live, held by %d owners of %d", live, len(kept), own)
	}
	if live := w.alive(); live > int64(len(kept)*batch) {
		t.Errorf("%d are alive, held by %d owners", live, len(kept))
	}
	clear(kept)
	collectAtMost(t, few, "the rest", func() bool { return w.alive() == 0 })
	mustDestroy(t, p)
}

// TestHeldOwnersPinLittle holds a few owners of many. The number of resources
// that they keep alive is bounded by the number of these owners.
func TestHeldOwnersPinLittle(t *testing.T) {
	const n, held = 20_000, 10
	w := newWorld(t, n)
	p := w.pool(Options{})
	var kept []*thing
	testcall.Aside(func() {
		for i := range n {
			if m := w.own(t, p, 1000); i%(n/held) == 0 {
				kept = append(kept, m)
			}
		}
	})
	collectAtMost(t, few, "the batches without a live owner", func() bool {
		return w.bytes.Load() <= held*(64<<10)
	})
	for _, m := range kept {
		mustBeAlive(t, m.cell, "although it is held")
		m.Close()
	}
	collectAtMost(t, few, "the forgotten", func() bool { return p.Stats().Live == 0 })
	mustDestroy(t, p)
}

// TestClosedPinNothing closes nearly all, so that a batch may have more entries
// than Options.Batch, but never more owners that live.
func TestClosedPinNothing(t *testing.T) {
	const n = 5000
	w := newWorld(t, n+1000)
	p := w.pool(Options{Batch: 64})
	var things []*thing
	entries := map[*batch.Batch]int{}
	most := 0
	for i := range n {
		m := w.own(t, p, 100)
		entries[m.owner.ref.Sentinel().Batch]++
		most = max(most, entries[m.owner.ref.Sentinel().Batch])
		if things = append(things, m); i%50 != 0 {
			m.Close()
		}
	}
	for _, b := range tallies(things) {
		if b.owners > 64 || b.bytes > 64<<10 {
			t.Errorf("%d owners of %d bytes in a batch", b.owners, b.bytes)
		}
	}
	// The next batch is as large, and nothing in it is closed.
	for range 1000 {
		things = append(things, w.own(t, p, 100))
	}
	for _, b := range tallies(things) {
		if b.owners > 64 || b.bytes > 64<<10 {
			t.Errorf("%d owners of %d bytes in a batch", b.owners, b.bytes)
		}
	}
	if most <= 64 {
		t.Errorf("no batch has more than %d entries, although most owners are closed", most)
	}
	for _, m := range things {
		m.Close()
	}
	mustDestroy(t, p)
}
