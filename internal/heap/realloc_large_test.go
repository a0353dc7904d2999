package heap

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/watch/guard"
)

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
		h := NewHeap(t, Options{Limit: row.limit})
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
		MustHoldNothing(t, h)
	}
}

// TestReallocShrunkMapping shrinks a block with a mapping to a size for which others have units, and
// has the system refuse the memory behind it. Its pages are copied then: those of units do not move.
func TestReallocShrunkMapping(t *testing.T) {
	const from, to = 2*span.UnitSize + 1, 4 * span.UnitSize
	h := NewHeap(t, Options{})
	p := h.Malloc(span.OwnMapping)
	shadow.Fill(p, from, 5)
	if q := h.Realloc(p, from); q != p {
		t.Fatalf("%p was moved to %p to make it smaller", p, q)
	}
	first := h.Malloc(to)
	h.Free(h.Malloc(to)) // there are units, not at the start of a region
	defer MustHoldNothing(t, h)
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
	testcall.Want(t, shadow.Check(q, from, 5))
	h.Free(q)
}

// TestLargeSizes allocates up to several GiB, of which it touches the ends.
func TestLargeSizes(t *testing.T) {
	h := NewHeap(t, Options{})
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
	MustHoldNothing(t, h)
}

// BenchmarkCalloc allocates zeroed blocks and frees them.
func BenchmarkCalloc(b *testing.B) {
	for _, size := range []int{16, 64, 1024} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			h := NewHeap(b, Options{})
			for b.Loop() {
				h.Free(h.Calloc(1, size))
			}
		})
	}
}

// TestReallocInTurn lets blocks grow in turn by a unit. Each is copied where its units reach a power of two.
func TestReallocInTurn(t *testing.T) {
	testheap.WithRate(t, 0) // a sampled block is copied
	h := NewHeap(t, Options{})
	var blocks [4]unsafe.Pointer
	moves, most := 0, 0
	for units := 1; units < span.OwnMapping/4/span.UnitSize; units++ {
		if units&(units-1) == 0 {
			most += len(blocks)
		}
		for i, p := range blocks {
			if blocks[i] = h.Realloc(p, units*span.UnitSize); blocks[i] != p {
				moves++
			}
		}
	}
	if moves > most+len(blocks) {
		t.Errorf("%d blocks moved %d times, want %d", len(blocks), moves, most)
	}
	testheap.FreeAll(h, blocks[:])
	MustHoldNothing(t, h)
}

// TestReallocLastGap lets a block grow where the only units left are a gap, and the system has no more.
func TestReallocLastGap(t *testing.T) {
	output, passed := testchild.Test(t, func(t *testing.T) {
		testheap.WithRate(t, 0) // a sampled block lies elsewhere
		h := NewHeap(t, Options{})
		p := h.Malloc(sizeclass.MaxSize)
		blocks := []unsafe.Pointer{p}
		for uintptr(blocks[len(blocks)-1])%span.RegionSize != span.RegionSize-span.UnitSize {
			blocks = append(blocks, h.AlignedMalloc(1, span.UnitSize))
		}
		n := len(blocks) - 3 // an odd unit
		testheap.FreeAll(h, blocks[n:n+2])
		r := testheap.Refuse(1, testheap.Forever)
		q, err := h.TryRealloc(p, sizeclass.MaxSize+1)
		r.End()
		if err != nil && h.checked == nil {
			t.Error(err)
		}
		if blocks[0] = q; q == nil {
			blocks[0] = p
		}
		testheap.FreeAll(h, append(blocks[:n], blocks[n+2:]...))
	})
	if !passed {
		t.Error(output)
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
		h := NewHeap(t, Options{Limit: row.limit})
		MakeRoom(t, h, 4)
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
		MustAccuse(t, "Heap.Free", uintptr(p), func() { h.Free(p) })
		MustHoldNothing(t, h)
	}
	h := NewHeap(t, Options{})
	MakeRoom(t, h, 2)
	p, behind := h.Malloc(size), h.Malloc(size)
	if uintptr(behind) < uintptr(p) {
		p, behind = behind, p
	}
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
	MustHoldNothing(t, h)

	// A unit that a heap with a CheckLevel has filled is not taken for filled when the block has grown.
	checked := NewHeap(t, Options{Check: CheckBlocks, Quarantine: 1})
	MakeRoom(t, h, 4)
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
		h := NewHeap(t, Options{})
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
				h := NewHeap(t, c.o)
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
