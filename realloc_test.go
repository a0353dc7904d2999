package cheap

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/shadow"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// reallocs makes one block of the given sizes in turn and compares its contents
// each time. It returns how often the block stayed where it was.
func reallocs(t *testing.T, h *Heap, sizes ...int) (stayed int) {
	t.Helper()
	var live shadow.Set
	others := h.Stats().Bytes
	p := h.Malloc(sizes[0])
	if err := live.Add(p, sizes[0], h.UsableSize(p), sizeclass.Quantum); err != nil {
		t.Fatal(err)
	}
	for _, size := range sizes[1:] {
		before := h.Stats()
		q := h.Realloc(p, size)
		if q == nil {
			t.Fatalf("no memory for %d bytes", size)
		}
		if err := live.Move(uintptr(p), q, size, h.UsableSize(q), sizeclass.Quantum); err != nil {
			t.Fatal(err)
		}
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
	if err := live.Remove(p); err != nil {
		t.Fatal(err)
	}
	h.Free(p)
	return stayed
}

// TestRealloc changes sizes within classes, between classes, between classes
// and large blocks, and within large blocks.
func TestRealloc(t *testing.T) {
	const unit, own = span.UnitSize, span.OwnMapping
	h := newHeap(t, Options{})
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
		{"fewer pages", []int{8 * unit, 3 * unit, 33_000}, 2},
		{"large to class", []int{100_000, 1000}, 0},
		{"class to large", []int{32_768, 32_769}, 0},
		{"to a mapping", []int{unit, own, own + 1}, 1}, // the second
		{"within a mapping", []int{own, own + 4096, own + own/2, own}, 3},
		{"mapping that shrinks", []int{span.RegionSize, own, 3 * unit}, 2},
	} {
		makeRoom(t, h, 10)
		if stayed := reallocs(t, h, row.sizes...); stayed < row.stayed {
			t.Errorf("%s: stayed %d times where it was, want %d", row.name, stayed, row.stayed)
		}
		mustHoldNothing(t, h)
	}
}

// makeRoom takes all runs of less than n free units from the regions, so that
// the next block lies where there is room behind it. They come back when the
// test ends.
func makeRoom(t *testing.T, h *Heap, n int) {
	filler, err := NewHeap(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(filler.DestroyAll)
	var run []unsafe.Pointer
	for len(run) < n {
		p := filler.Malloc(span.UnitSize)
		if len(run) > 0 && uintptr(p) != uintptr(run[len(run)-1])+span.UnitSize {
			run = run[:0]
		}
		run = append(run, p)
	}
	for _, p := range run {
		filler.Free(p)
	}
}

// TestReallocGrowsMapping makes a block larger than the address space of its
// mapping, over and over.
func TestReallocGrowsMapping(t *testing.T) {
	h := newHeap(t, Options{})
	const own = span.OwnMapping
	sizes := []int{own}
	for n := own; n < 5*span.RegionSize; n = n*3/2 + 12_345 {
		sizes = append(sizes, n)
	}
	if osmem.GoBacked {
		sizes = sizes[:4]
	}
	reallocs(t, h, sizes...)
	mustHoldNothing(t, h)
}

// TestReallocTail makes a large block smaller. What was behind belongs to nobody
// then, and the next block lies there.
func TestReallocTail(t *testing.T) {
	h := newHeap(t, Options{})
	l := h.NewLocal()
	defer l.Close()
	const before, after = 8 * span.UnitSize, 3 * span.UnitSize
	makeRoom(t, h, 8)
	p := h.Malloc(before)
	if q := h.Realloc(p, after); q != p {
		t.Fatalf("a block of %d bytes at %p was moved to %p to have %d", before, p, q, after)
	}
	for off := uintptr(after); off < before; off += span.UnitSize {
		mustAccuseAll(t, h, l, uintptr(p)+off, "given back")
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
	h := newHeap(t, Options{})
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
			if err := shadow.Check(q, span.UnitSize, 7); err != nil {
				t.Error(err)
			}
			p = q
		} else if err := shadow.Check(p, span.UnitSize, 7); err != nil {
			t.Error(err)
		}
		h.Free(p)
	}
	mustHoldNothing(t, h)
}

// TestReallocRandom makes a few blocks random sizes, among each other.
func TestReallocRandom(t *testing.T) {
	h := newHeap(t, Options{})
	l := h.NewLocal()
	var live shadow.Set
	r := rand.New(rand.NewPCG(1, 2))
	var blocks [20]unsafe.Pointer
	for i := range hammerRounds(3000) {
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
		if err != nil {
			t.Fatal(err)
		}
		*p = q
	}
	if err := live.CheckAll(osmem.Pointer); err != nil {
		t.Error(err)
	}
	for _, p := range blocks {
		h.Free(p)
	}
	l.Close()
	mustHoldNothing(t, h)
}

// TestReallocFails asks for what cannot be had.
func TestReallocFails(t *testing.T) {
	const limit = 1 << 20
	h := newHeap(t, Options{Limit: limit})
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
	mustHoldNothing(t, h)
}

// TestLargeSizes allocates up to several GiB, of which it touches the ends.
func TestLargeSizes(t *testing.T) {
	h := newHeap(t, Options{})
	most := 33
	if ^uintptr(0)>>32 == 0 {
		most = 28
	}
	if osmem.GoBacked {
		most = 26
	}
	for shift := 15; shift <= most; shift++ {
		for _, size := range []int{1<<shift - 1, 1 << shift, 1<<shift + 1} {
			p, err := h.TryMalloc(size)
			if err != nil {
				t.Errorf("%d bytes: %v", size, err)
				continue
			}
			first, last := (*byte)(p), (*byte)(unsafe.Add(p, size-1))
			*first, *last = 1, 2
			if usable := h.UsableSize(p); usable != RoundUp(size) {
				t.Errorf("%d bytes: UsableSize = %d", size, usable)
			}
			if s := h.Stats(); s.Blocks != 1 || s.Bytes < int64(size) || s.Held < s.Bytes {
				t.Errorf("%d bytes: %+v", size, s)
			}
			h.Free(p)
		}
	}
	mustHoldNothing(t, h)
}
