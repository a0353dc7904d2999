package heap

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/guard"
	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/shadow"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
	"github.com/cheapgo/cheap/internal/testcall"
	"github.com/cheapgo/cheap/internal/testchild"
	"github.com/cheapgo/cheap/internal/testheap"
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
	if err := live.Remove(p); err != nil {
		t.Fatal(err)
	}
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
		{"fewer pages", []int{8 * unit, 3 * unit, 70_000}, 2},
		{"alone in its span to large", []int{unit - 1, unit + 1}, 1},
		{"and further", []int{33_000, 2 * unit, 8 * unit}, 2},
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
	filler, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { filler.DestroyAll() })
	var run []unsafe.Pointer
	for len(run) < n {
		p := filler.AlignedMalloc(1, span.UnitSize) // which no cache keeps
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

// TestReallocTail makes a large block smaller. The memory behind it belongs to no block
// then, and the next block lies there.
func TestReallocTail(t *testing.T) {
	h := newHeap(t, Options{})
	l := h.NewLocal()
	defer l.Destroy()
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
	l.Destroy()
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

// TestReallocUnderLimit lets a block grow to more than half of the limit. Where its pages
// move, that needs room for the difference only; a copy needs room for both blocks.
func TestReallocUnderLimit(t *testing.T) {
	const mib, own = 1 << 20, span.OwnMapping
	const region = span.RegionSize // address space of a mapping is whole regions
	limit := int64(region + region/2)
	h := newHeap(t, Options{Limit: limit})
	l := h.NewLocal()
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
			for _, p := range blocks {
				h.Free(p)
			}
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
			if err := shadow.Check(q, row.from, 9); err != nil {
				t.Error(err)
			}
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
	if err := l.Destroy(); err != nil {
		t.Error(err)
	}
	mustHoldNothing(t, h)
}

// TestReallocWithoutRemap has the system refuse to move pages, as a Linux before 5.7
// does. Then the limit has to have room for both blocks.
func TestReallocWithoutRemap(t *testing.T) {
	const region = span.RegionSize
	h := newHeap(t, Options{Limit: 3 * region})
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
	if err != nil {
		t.Fatal(err)
	}
	if err := shadow.Check(q, region, 4); err != nil {
		t.Error(err)
	}
	h.Free(q)
	mustHoldNothing(t, h)
}

// TestReallocToMapping lets a block that lies in units grow to a size for which blocks have mappings.
// It is copied if the limit has room for both, and most of its pages have memory. If not its pages move.
// Then the limit has to have room for the difference only, unless the system refuses.
func TestReallocToMapping(t *testing.T) {
	const from, to = span.OwnMapping - 3*span.UnitSize - 5, span.OwnMapping + span.UnitSize + 1
	room, both := largeCost(osmem.RoundPage(to)), largeCost(osmem.RoundPage(from))+8*cacheBytes
	for _, row := range []struct {
		name   string
		sparse bool
		limit  int64
		err    error // of the system
		ok     bool
		moves  bool // or the system is asked to
	}{
		{"dense, room for both", false, room + both, nil, true, false},
		{"dense, room for the difference", false, room, nil, span.Moves(), true},
		{"dense, room for less", false, room - 1, nil, false, false},
		{"dense, room for one, refused", false, room, testheap.ErrRefused, false, true},
		{"sparse, room for the difference", true, room, nil, span.Moves(), true},
		{"sparse, room for both", true, room + both, nil, true, true},
		{"sparse, room for both, refused", true, room + both, testheap.ErrRefused, true, true},
		{"sparse, room for both, lost", true, room + both, osmem.ErrLost, true, true},
	} {
		h := newHeap(t, Options{Limit: row.limit})
		Trim() // or the block may have pages of others
		p := h.Malloc(from)
		content := unsafe.Slice((*byte)(p), from)
		if row.sparse {
			content = content[:from/32]
		}
		for i := range content {
			content[i] = byte(i % 251)
		}
		asked := false
		f := func(op osmem.Op, size uintptr) error {
			if op == osmem.OpRemap && size == osmem.RoundPage(from) { // not chunks of warm units
				asked = true
				return row.err
			}
			return nil
		}
		idle := span.Idle()
		osmem.Fault.Store(&f)
		q, err := h.TryRealloc(p, to)
		osmem.Fault.Store(nil)
		if asked && row.ok && row.err == nil && span.Idle() > idle {
			t.Errorf("%s: %d bytes are idle whose pages have moved", row.name, span.Idle()-idle)
		}
		if (err == nil) != row.ok || (q != nil) != row.ok || q == p {
			t.Errorf("%s: %p became %p: %v", row.name, p, q, err)
		}
		if q == nil {
			q = p
		} else if s := span.Lookup(uintptr(p)); s.LoadTag() != 0 {
			t.Errorf("%s: the old units have the tag %#x", row.name, s.LoadTag())
		}
		if asked != (row.moves && span.Moves()) {
			t.Errorf("%s: the system is asked to move pages: %v", row.name, asked)
		}
		for i, b := range unsafe.Slice((*byte)(q), len(content)) {
			if b != byte(i%251) {
				t.Errorf("%s: byte %d is %d", row.name, i, b)
				break
			}
		}
		h.Free(q)
		mustHoldNothing(t, h)
	}
}

// TestReallocShrunkMapping shrinks a block with a mapping to a size for which others have units, and
// has the system refuse the memory behind it. Its pages are copied then: those of units do not move.
func TestReallocShrunkMapping(t *testing.T) {
	const from, to = 2*span.UnitSize + 1, 4 * span.UnitSize
	h := newHeap(t, Options{})
	p := h.Malloc(span.OwnMapping)
	shadow.Fill(p, from, 5)
	if q := h.Realloc(p, from); q != p {
		t.Fatalf("%p was moved to %p to make it smaller", p, q)
	}
	first := h.Malloc(to)
	h.Free(h.Malloc(to)) // there are units, not at the start of a region
	defer mustHoldNothing(t, h)
	defer h.Free(first)
	refused := func(op osmem.Op, size uintptr) error {
		if op == osmem.OpCommit && size < to {
			return testheap.ErrRefused
		}
		return nil
	}
	osmem.Fault.Store(&refused)
	defer osmem.Fault.Store(nil)
	q, err := h.TryRealloc(p, to)
	if err != nil || q == p {
		t.Fatalf("%p was not moved: %p, %v", p, q, err)
	}
	if err := shadow.Check(q, from, 5); err != nil {
		t.Error(err)
	}
	h.Free(q)
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
			if usable := h.UsableSize(p); usable != GoodSize(size) {
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

// BenchmarkCalloc allocates zeroed blocks and frees them.
func BenchmarkCalloc(b *testing.B) {
	for _, size := range []int{16, 64, 1024} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			h := newHeap(b, Options{})
			for b.Loop() {
				h.Free(h.Calloc(1, size))
			}
		})
	}
}

// TestReallocAlone lets a block that has a span for itself grow beyond its unit. It stays where it is
// and needs room under the limit for the difference only. If a block follows, it moves.
func TestReallocAlone(t *testing.T) {
	const size, larger = 40_000, 2*span.UnitSize + 1
	c := sizeclass.Of(size)
	whole := largeCost(osmem.RoundPage(larger))
	testheap.WithRate(t, 0) // a sampled block is copied
	for _, row := range []struct {
		name  string
		limit int64
		ok    bool
	}{
		{"room for both", 2*whole + 2*cacheBytes, true},
		{"room for one", whole + cacheBytes, true},
		{"room for less", whole + cacheBytes - 1, false},
	} {
		h := newHeap(t, Options{Limit: row.limit})
		makeRoom(t, h, 4)
		p := h.Malloc(size)
		*(*byte)(unsafe.Add(p, size-1)) = 7
		held := h.Stats().Held
		q, err := h.TryRealloc(p, larger)
		if (err == nil) != row.ok || row.ok && q != p {
			t.Errorf("%s: %p with %d bytes became %p: %v", row.name, p, larger, q, err)
		}
		if row.ok {
			if got := h.Stats().Held - held; got != whole-spanCost(c) {
				t.Errorf("%s: the heap holds %d bytes more, want %d", row.name, got, whole-spanCost(c))
			}
			if s := span.Find(uintptr(p)); s.LoadTag()&span.KindMask != span.KindLarge || h.classes[c].out != 0 {
				t.Errorf("%s: %+v, and %d blocks of the class", row.name, s, h.classes[c].out)
			}
			mustHaveBodies(t, h, q, larger)
		}
		if *(*byte)(unsafe.Add(p, size-1)) != 7 {
			t.Errorf("%s: the contents changed", row.name)
		}
		h.Free(p)
		mustAccuse(t, "Heap.Free", uintptr(p), func() { h.Free(p) })
		mustHoldNothing(t, h)
	}
	h := newHeap(t, Options{})
	makeRoom(t, h, 2)
	p, behind := h.Malloc(size), h.Malloc(size)
	if uintptr(behind) != uintptr(p)+span.UnitSize {
		t.Fatalf("blocks at %p and %p are not neighbours", p, behind)
	}
	q := h.Realloc(p, larger)
	if q == p {
		t.Errorf("the block at %p grew into the one at %p", p, behind)
	}
	h.Free(q)
	h.Free(behind)

	// A block that another goroutine has freed since Realloc looked at it does not grow.
	p = h.Malloc(size)
	h.Free(p)
	if to := h.resizeLarge(span.Find(uintptr(p)), uintptr(p), osmem.RoundPage(larger), true); to != 0 {
		t.Errorf("the block at %p, which is free, grew at %#x", p, to)
	}
	mustHoldNothing(t, h)

	// A unit that a heap with a CheckLevel has filled is not taken for filled when the block has grown.
	checked := newHeap(t, Options{Check: CheckBlocks, Quarantine: 1})
	makeRoom(t, h, 4)
	r := checked.Malloc(size)
	checked.Free(r)
	checked.checked.empty()
	p = h.Malloc(size)
	if uintptr(p)^uintptr(r) >= span.UnitSize {
		t.Fatalf("a block at %p, and the unit of %p is filled", p, r)
	}
	q = h.Realloc(p, larger)
	shadow.Fill(q, larger, 1)
	h.Free(q)
	checked.Free(checked.Malloc(span.UnitSize))
}

// TestReallocAloneFree frees a block, by mistake, while Realloc asks the system for the memory behind it.
// No cache takes the block, which would have two owners. In a new process there is no memory behind it.
func TestReallocAloneFree(t *testing.T) {
	if osmem.GoBacked {
		return // the system is not asked
	}
	output, passed := testchild.Test(t, func(t *testing.T) {
		const size = 40_000
		larger := span.OwnMapping - int(osmem.PageSize)
		testheap.WithRate(t, 0)  // a sampled block is copied
		testheap.SetDecay(t, -1) // the Local keeps its cache
		h := newHeap(t, Options{})
		l := h.NewLocal()
		defer l.Destroy()
		l.Free(l.Malloc(size))
		taken := l.Malloc(size) // its list has room
		defer l.Free(taken)
		p, asked := h.Malloc(size), false
		s := span.Find(uintptr(p))
		r := testheap.RefuseIf(func(int) bool {
			asked = isAlone(s.LoadTag() & span.KindMask)
			if l.k.free(s, uintptr(p)) {
				t.Errorf("a cache took the block at %p", p)
			}
			if cl := &h.classes[sizeclass.Of(size)]; cl.mu.TryLock() {
				cl.mu.Unlock()
				t.Error("another goroutine may change the class of the block")
			}
			return false
		})
		q := h.Realloc(p, larger)
		r.End()
		if !asked || q != p {
			t.Errorf("the block at %p is at %p; the system was asked for memory: %v", p, q, asked)
		}
		h.Free(q)
	})
	if !passed {
		t.Error(output)
	}
}

// TestReallocFreed has another goroutine free or resize a block, by mistake, while Realloc is about to
// copy it: its pages may be gone. The panic says so, and the block that was to have the copy is freed.
func TestReallocFreed(t *testing.T) {
	if osmem.GoBacked {
		return // nothing faults
	}
	for _, c := range []struct {
		name     string
		size, to int
		o        Options
		guard    int64
		other    func(h *Heap, p unsafe.Pointer) (rest unsafe.Pointer)
		says     string
	}{
		{"small", 9000, 40_000, Options{}, 0, freeIt, "free already"},
		{"units", 200_000, 9000, Options{}, 0, freeIt, "given back"},
		{"a mapping", span.OwnMapping, 60_000, Options{}, 0, freeIt, "lost its memory"},
		{"moved", span.OwnMapping, 60_000, Options{}, 0, func(h *Heap, p unsafe.Pointer) unsafe.Pointer { return h.Realloc(p, 200) }, "lost its memory"},
		{"guarded", 100, 40_000, Options{}, 1, freeIt, "lost its memory"},
		{"checked", span.OwnMapping, 60_000, Options{Check: CheckBlocks, Quarantine: 1}, 0, freeIt, "lost its memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			output, passed := testchild.Test(t, func(t *testing.T) {
				testheap.SetDecay(t, 0)
				testheap.WithRate(t, 0)
				guard.SetRate(c.guard)
				h := newHeap(t, c.o)
				p := h.Malloc(c.size)
				var rest unsafe.Pointer
				asked := 0
				account.Process.SetPacer(pressureFunc(func() {
					if asked++; asked == 1 {
						account.Process.SetBounds(account.Bounds{HeldAt: account.NoBound, ReclaimableAt: account.NoBound, Ceiling: account.NoBound})
						rest = c.other(h, p)
					}
				}))
				account.Process.SetBounds(account.Bounds{HeldAt: 0, ReclaimableAt: account.NoBound, Ceiling: account.NoBound})
				e, _ := testcall.Catch(func() { h.Realloc(p, c.to) }).(*MisuseError)
				if asked == 0 || e == nil || e.Op != "Heap.Realloc" || e.Addr != uintptr(p) || !strings.Contains(e.Reason, c.says) {
					t.Errorf("asked %d times; Realloc: %v", asked, e)
				}
				h.Free(rest)
				if s := h.Stats(); s.Blocks != 0 {
					t.Errorf("%d blocks are left", s.Blocks)
				}
			})
			if !passed {
				t.Error(output)
			}
		})
	}
}

func freeIt(h *Heap, p unsafe.Pointer) unsafe.Pointer {
	h.Free(p)
	return nil
}
