package heap

import (
	"errors"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// reallocs makes one block of the given sizes in turn and compares its contents
// each time. It returns how often the block stayed where it was.
func reallocs(t *testing.T, h *Heap, sizes ...int) (stayed int) {
	t.Helper()
	var live shadow.Set
	others := h.Stats().Bytes
	p := h.Malloc(sizes[0])
	testcall.Must(t, live.Add(p, sizes[0], h.UsableSize(p), sizeclass.Quantum))
	for _, size := range sizes[1:] {
		before := h.Stats()
		q := h.Realloc(p, size)
		if q == nil {
			t.Fatalf("no memory for %d bytes", size)
		}
		testcall.Must(t, live.Move(uintptr(p), q, size, h.UsableSize(q), sizeclass.Quantum))
		mustHaveBodies(t, h, q, size)
		moves := int64(1)
		if q == p {
			stayed++
			moves = 0
		}
		if s := h.Stats(); s.Blocks != before.Blocks || s.Bytes != others+live.Bytes() ||
			s.Mallocs != before.Mallocs+moves || s.Held < s.Bytes {
			t.Errorf("realloc to %d: %+v, before %+v", size, s, before)
		}
		p = q
	}
	testcall.Must(t, live.Remove(p))
	h.Free(p)
	return stayed
}

// mustHaveBodies looks at the records of the units behind the first of a block of size bytes.
func mustHaveBodies(t *testing.T, h *Heap, p unsafe.Pointer, size int) {
	t.Helper()
	for unit := uintptr(p) + span.UnitSize; unit < uintptr(p)+uintptr(size); unit += span.UnitSize {
		if s := span.Find(unit); s.LoadTag() != h.id<<span.KindBits|span.KindBody || s.Base != uintptr(p) {
			t.Errorf("%d bytes: the record of a unit behind the first is %+v", size, s)
		}
	}
}

// TestRealloc changes sizes within classes, between classes, between classes
// and large blocks, and within large blocks.
func TestRealloc(t *testing.T) {
	const unit, own = span.UnitSize, span.OwnMapping
	testheap.WithRate(t, 0) // a sampled block is copied
	h := NewHeap(t, Options{})
	for _, row := range []struct {
		name   string
		sizes  []int
		stayed int
	}{
		{"same class", []int{100, 112, 97, 112}, 3},
		{"slightly smaller", []int{1000, 900, 600}, 2},
		{"much smaller", []int{1000, 100, 10}, 0},
		{"larger class", []int{0, 17, 100, 1000, 10_000}, 0},
		{"to nothing and back", []int{100, 0, 100}, 0},
		{"same pages", []int{100_000, 100_001, 102_000, 98_400}, 3},
		{"following pages", []int{unit, 2 * unit, 3*unit + 1, 8 * unit}, 3},
		{"fewer pages", []int{8 * unit, 3 * unit, 70_000}, 2},
		{"alone in its span to large", []int{unit - 1, unit + 1}, 1},
		{"and further", []int{33_000, 2 * unit, 8 * unit}, 2},
		{"alone in its span, larger and smaller", []int{33_000, 40_000, unit, 34_000, 50_000}, 4},
		{"large to class", []int{100_000, 1000}, 0},
		{"class to large", []int{32_768, 32_769}, 0},
		{"to a mapping", []int{unit, own, own + 1}, 1}, // the second
		{"within a mapping", []int{own, own + 4096, own + own/2, own}, 3},
		{"mapping that shrinks", []int{span.RegionSize, own, 3 * unit}, 2},
	} {
		MakeRoom(t, h, 10)
		if stayed := reallocs(t, h, row.sizes...); stayed < row.stayed {
			t.Errorf("%s: stayed %d times where it was, want %d", row.name, stayed, row.stayed)
		}
		MustHoldNothing(t, h)
	}
}

// MakeRoom takes all runs of less than n free units from the regions, so that
// the next block lies where there is room behind it. They come back when the
// test ends.
func MakeRoom(t *testing.T, h *Heap, n int) {
	filler, err := New(Options{})
	testcall.Must(t, err)
	t.Cleanup(func() { filler.DestroyAll() })
	var run []unsafe.Pointer
	for len(run) < n {
		p := filler.AlignedMalloc(1, span.UnitSize) // which no cache keeps
		if len(run) > 0 && uintptr(p) != uintptr(run[len(run)-1])+span.UnitSize {
			run = run[:0]
		}
		run = append(run, p)
	}
	testheap.FreeAll(filler, run)
	filler.reclaim()
}

// TestReallocGrowsMapping makes a block larger than the address space of its
// mapping, over and over.
func TestReallocGrowsMapping(t *testing.T) {
	h := NewHeap(t, Options{})
	const own = span.OwnMapping
	sizes := []int{own}
	for n := own; n < 5*span.RegionSize; n = n*3/2 + 12_345 {
		sizes = append(sizes, n)
	}
	if osmem.GoBacked {
		sizes = sizes[:4]
	}
	reallocs(t, h, sizes...)
	MustHoldNothing(t, h)
}

// TestReallocTail makes a large block smaller. The memory behind it belongs to no block
// then, and the next block lies there.
func TestReallocTail(t *testing.T) {
	h, l := NewHeapAndLocal(t, Options{})
	const before, after = 8 * span.UnitSize, 3 * span.UnitSize
	MakeRoom(t, h, 8)
	p := h.Malloc(before)
	if q := h.Realloc(p, after); q != p {
		t.Fatalf("a block of %d bytes at %p was moved to %p to have %d", before, p, q, after)
	}
	for off := uintptr(after); off < before; off += span.UnitSize {
		MustAccuseAll(t, h, l, uintptr(p)+off, "given back")
	}
	if q := h.Malloc(before - after); uintptr(q) != uintptr(p)+after {
		t.Errorf("%d bytes at %p are free, and the next block is at %p", before-after, unsafe.Add(p, after), q)
	} else {
		h.Free(q)
	}
	h.Free(p)
}

// TestReallocBlocked lets a block grow that another one follows.
func TestReallocBlocked(t *testing.T) {
	h := NewHeap(t, Options{})
	var blocks []unsafe.Pointer
	for range 5 {
		p := h.Malloc(span.UnitSize)
		shadow.Fill(p, span.UnitSize, 7)
		blocks = append(blocks, p)
	}
	reallocs(t, h, span.UnitSize, 2*span.UnitSize, 40*span.UnitSize, span.UnitSize)
	for i, p := range blocks {
		if i%2 == 0 {
			q := h.Realloc(p, 3*span.UnitSize)
			testcall.Want(t, shadow.Check(q, span.UnitSize, 7))
			p = q
		} else if err := shadow.Check(p, span.UnitSize, 7); err != nil {
			t.Error(err)
		}
		h.Free(p)
	}
	MustHoldNothing(t, h)
}

// TestReallocRandom makes a few blocks random sizes, among each other.
func TestReallocRandom(t *testing.T) {
	h, l := NewHeapAndLocal(t, Options{})
	var live shadow.Set
	r := rand.New(rand.NewPCG(1, 2))
	var blocks [20]unsafe.Pointer
	for i := range testheap.HammerRounds(3000) {
		size := r.IntN(1 << (4 + r.IntN(18)))
		if i%97 == 0 {
			size += span.OwnMapping
		}
		p := &blocks[r.IntN(len(blocks))]
		var q unsafe.Pointer
		if i%2 == 0 {
			q = h.Realloc(*p, size)
		} else {
			q = l.Realloc(*p, size)
		}
		var err error
		if *p == nil {
			err = live.Add(q, size, h.UsableSize(q), sizeclass.Quantum)
		} else {
			err = live.Move(uintptr(*p), q, size, h.UsableSize(q), sizeclass.Quantum)
		}
		testcall.Must(t, err)
		*p = q
	}
	testcall.Want(t, live.CheckAll(osmem.Pointer))
	testheap.FreeAll(h, blocks[:])
}

// TestReallocFails asks for what cannot be had.
func TestReallocFails(t *testing.T) {
	const limit = 1 << 20
	h := NewHeap(t, Options{Limit: limit})
	for _, size := range []int{100, 10_000, 100_000} {
		p := h.Malloc(size)
		shadow.Fill(p, size, 3)
		for _, to := range []int{limit, 1 << 30} {
			if q := h.Realloc(p, to); q != nil {
				t.Errorf("Realloc to %d = %p, with a limit of %d", to, q, limit)
			}
		}
		if err := shadow.Check(p, size, 3); err != nil || !h.Owns(p) {
			t.Errorf("after Realloc that failed: %v, Owns = %v", err, h.Owns(p))
		}
		h.Free(p)
	}
	MustHoldNothing(t, h)
}

// TestReallocUnderLimit lets a block grow to more than half of the limit. Where its pages
// move, that needs room for the difference only; a copy needs room for both blocks.
func TestReallocUnderLimit(t *testing.T) {
	const mib, own = 1 << 20, span.OwnMapping
	const region = span.RegionSize // address space of a mapping is whole regions
	limit := int64(region + region/2)
	h, l := NewHeapAndLocal(t, Options{Limit: limit})
	// With all caches empty.
	most := int(limit-int64(unitsOf(uintptr(limit)))*recordBytes-8*cacheBytes) &^ int(osmem.PageSize-1)
	for _, row := range []struct {
		from, to int
		moves    bool // or else it is copied
	}{
		{region / 8 * 5, most, true},
		{region / 8 * 5, region + region/8, true},
		{own, region + region/4, true},
		{own / 2, region + region/4 + own/2, span.Moves()},
		{own / 2, region, true}, // both fit
	} {
		for name, realloc := range map[string]func(unsafe.Pointer, int) (unsafe.Pointer, error){"Heap": h.TryRealloc, "Local": l.TryRealloc} {
			p := h.Malloc(row.from)
			shadow.Fill(p, row.from, 9)
			// Free blocks in caches must not be in the way.
			var blocks []unsafe.Pointer
			for range 1000 {
				blocks = append(blocks, h.Malloc(1000))
			}
			testheap.FreeAll(h, blocks)
			before := h.Stats()
			q, err := realloc(p, row.to)
			works := row.moves && (osmem.CanMove() || row.from < own)
			if (err == nil) != works || err != nil && !errors.Is(err, ErrLimit) {
				t.Errorf("%s: from %d to %d under a limit of %d: %v", name, row.from, row.to, limit, err)
			}
			size := row.to
			if q == nil {
				q, size = p, row.from
			}
			testcall.Want(t, shadow.Check(q, row.from, 9))
			if s := h.Stats(); s.Bytes != before.Bytes+int64(size-row.from) || s.Blocks != before.Blocks || s.Held > limit || s.Held < s.Bytes {
				t.Errorf("%s: from %d to %d: %+v, before %+v", name, row.from, row.to, s, before)
			}
			// No more than the limit, however the block came to its size.
			if r, err := h.TryRealloc(q, int(limit)); r != nil || !errors.Is(err, ErrLimit) {
				t.Errorf("%s: from %d to the limit: %p, %v", name, size, r, err)
			}
			h.Free(q)
		}
	}
}

// TestReallocWithoutRemap has the system refuse to move pages, as a Linux before 5.7
// does. Then the limit has to have room for both blocks.
func TestReallocWithoutRemap(t *testing.T) {
	const region = span.RegionSize
	h := NewHeap(t, Options{Limit: 3 * region})
	p := h.Malloc(region)
	shadow.Fill(p, region, 4)
	refused := func(op osmem.Op, size uintptr) error {
		if op == osmem.OpRemap {
			return testheap.ErrRefused
		}
		return nil
	}
	osmem.Fault.Store(&refused)
	defer osmem.Fault.Store(nil)
	held := h.Stats().Held
	if q, err := h.TryRealloc(p, 2*region+region/2); q != nil || !errors.Is(err, ErrLimit) {
		t.Errorf("beyond the limit: %p, %v", q, err)
	}
	if now := h.Stats().Held; now != held {
		t.Errorf("held %d, and %d before", now, held)
	}
	q, err := h.TryRealloc(p, region+region/2)
	testcall.Must(t, err)
	testcall.Want(t, shadow.Check(q, region, 4))
	h.Free(q)
	MustHoldNothing(t, h)
}
