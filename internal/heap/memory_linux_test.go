//go:build !cheap_gomem

package heap

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// residentAnon returns how many bytes of anonymous memory the process has in
// RAM.
func residentAnon(t *testing.T) int64 {
	t.Helper()
	n, err := testheap.OfProcess("RssAnon")
	testcall.Must(t, err)
	return n
}

// TestTrimResident looks whether the system has the memory back after Trim.
func TestTrimResident(t *testing.T) {
	testenv.Skip(t, "msan", "the sanitizer's own memory is locked and resident, too")
	h := NewHeap(t, Options{})
	testheap.SetDecay(t, -1)
	const n, size = 4000, 16_000
	h.Trim()
	// Go must not give back what is its own meanwhile.
	debug.FreeOSMemory()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := residentAnon(t)
	var blocks []testheap.Handed
	for i := range n {
		blocks = append(blocks, testheap.Wrap(h, size>>(i%5), uint64(i)))
	}
	used := residentAnon(t) - before
	for _, b := range blocks {
		b.Unwrap(t, h)
	}
	h.Trim()
	after := residentAnon(t) - before
	if live := int64(n) * size * 31 / 16 / 5; used < live/2 || after > used/4 {
		t.Errorf("resident: %d more with blocks of %d bytes, %d more after Trim", used, live, after)
	}
}

// TestCallocResident looks whether zeroing makes memory resident that is zero
// already.
func TestCallocResident(t *testing.T) {
	h := NewHeap(t, Options{})
	h.Trim() // so that nothing is used again
	for _, size := range []int{span.RegionSize / 8, span.OwnMapping, 3 * span.OwnMapping} {
		p := h.Calloc(1, size)
		if n := testheap.Resident(t, uintptr(p), uintptr(size)); n > testheap.HugePage || n > uintptr(size)/4 {
			t.Errorf("%d of %d zeroed bytes are resident", n, size)
		}
		*(*byte)(unsafe.Add(p, size/2)) = 1
		page := osmem.PageSize
		if n := testheap.Resident(t, uintptr(p)+uintptr(size/2)&^(page-1), page); n != page {
			t.Errorf("a page that was written to: %d bytes are resident", n)
		}
		h.Free(p)
		h.Trim()
		if size < span.OwnMapping {
			if n := testheap.Resident(t, uintptr(p), uintptr(size)); n != 0 {
				t.Errorf("%d of %d bytes are resident after Trim", n, size)
			}
		}
	}
}

// TestCarvingResident looks whether the first block of a class touches more
// than it needs.
func TestCarvingResident(t *testing.T) {
	for _, size := range []int{16, 64, 1000, 4000, 10_000} {
		h := NewHeap(t, Options{})
		h.Trim()
		p := h.Malloc(size)
		unit := uintptr(p) &^ (span.UnitSize - 1)
		if n, most := testheap.Resident(t, unit, span.UnitSize), osmem.RoundPage(uintptr(size))+osmem.PageSize; n > most {
			t.Errorf("one block of %d bytes makes %d bytes resident", size, n)
		}
		h.Free(p)
	}
}

// TestCarveFaults has carve fault at the first block that it writes to. No block counts as carved: one
// without a canary would be taken for a block in use.
func TestCarveFaults(t *testing.T) {
	if osmem.PageSize >= span.UnitSize {
		return // a span is one page
	}
	const size = 1024
	testheap.WithRate(t, 0) // a sampled block is in another span
	h := NewHeap(t, Options{})
	p := h.Malloc(size)
	defer h.Free(p)
	s, cl := span.Find(uintptr(p)), &h.classes[sizeclass.Of(size)]
	carved := s.Carved
	page := unsafe.Slice((*byte)(osmem.Pointer((s.Base+uintptr(carved)*s.Size)&^(osmem.PageSize-1))), osmem.PageSize)
	testcall.Must(t, syscall.Mprotect(page, syscall.PROT_READ))
	addr := testheap.FaultAt(t, func() { cl.carve(h, s, size) })
	testcall.Must(t, syscall.Mprotect(page, syscall.PROT_READ|syscall.PROT_WRITE))
	if addr == 0 || s.Carved != carved {
		t.Errorf("a fault at %#x, and %d blocks are carved, %d before", addr, s.Carved, carved)
	}
}

// TestAloneResident frees a block that has a span for itself, while the program uses more units than it
// ever did. Its memory serves the next such block. One that is carved touches the start of the unit only,
// and does not keep the rest.
func TestAloneResident(t *testing.T) {
	output, passed := testchild.Test(t, func(t *testing.T) {
		const size = 40_000
		testheap.WithRate(t, 0) // a sampled block is in another span
		testheap.SetDecay(t, -1)
		h := NewHeap(t, Options{})
		p, behind := h.Malloc(size), h.Malloc(size)
		shadow.Fill(p, size, 1)
		unit := uintptr(p)
		blocks := []unsafe.Pointer{behind}
		next := func(size int) uintptr {
			h.Free(p)
			h.reclaim()
			blocks = append(blocks, h.Malloc(3*span.UnitSize))
			if p = h.Malloc(size); uintptr(p)&^(span.UnitSize-1) != unit {
				t.Fatalf("%d bytes at %p, and the unit at %#x was free", size, p, unit)
			}
			return testheap.Resident(t, unit, span.UnitSize)
		}
		if n := next(size); n < size {
			t.Errorf("%d bytes are resident of a block where one of %d was", n, size)
		}
		if n := next(16); n > 2*osmem.PageSize {
			t.Errorf("one block of 16 bytes keeps %d bytes resident", n)
		}
		for _, p := range append(blocks, p) {
			h.Free(p)
		}
	})
	if !passed {
		t.Error(output)
	}
}

// TestDecayResident looks whether memory that decays leaves RAM.
func TestDecayResident(t *testing.T) {
	h := NewHeap(t, Options{})
	testheap.SetDecay(t, 10*time.Millisecond)
	const size = 100_000 // a cache would keep a smaller one
	b := testheap.Wrap(h, size, 1)
	b.Unwrap(t, h)
	testwait.Until(t, "the block is not resident", func() bool { return testheap.Resident(t, uintptr(b.P), size) == 0 })
}

// TestHeldResident uses heaps that take each other's units at random, and compares what they hold with what is
// resident of their spans. What they do not hold is idle, and goes by Trim and by the decay. It has a process of its
// own, in which no heap of another test has had huge pages.
func TestHeldResident(t *testing.T) {
	if out, passed := testchild.Test(t, heldResident); !passed {
		t.Error(out)
	}
}

func heldResident(t *testing.T) {
	if mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled"); err == nil && bytes.Contains(mode, []byte("[always]")) {
		return // the system has memory resident that nobody has touched
	}
	for _, row := range []struct {
		name  string
		decay time.Duration
		heaps []Options
	}{
		{"plain", -1, []Options{{}, {}, {}}},
		{"decay 0", 0, []Options{{}, {}, {}}},
		{"limit", -1, []Options{{}, {Limit: 8 << 20}, {Limit: 300_000}}},
		{"checked", -1, []Options{{}, {Check: CheckBlocks, Quarantine: 1 << 20}, {Check: CheckBlocks, Limit: 8 << 20}}},
		{"huge", -1, []Options{{}, {HugePages: true}, {HugePages: true}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			testheap.SetDecay(t, row.decay)
			Trim()
			var heaps []*Heap
			for _, o := range row.heaps {
				heaps = append(heaps, NewHeap(t, o))
			}
			useUnits(t, heaps, row.decay == 0, row.name == "huge")
		})
	}
}

// useUnits is heldResident for some heaps. With atOnce nothing may be idle behind spans. With huge it compares
// only when all is free.
func useUnits(t *testing.T, heaps []*Heap, atOnce, huge bool) {
	r := rand.New(rand.NewPCG(1, 3))
	live := make([][]testheap.Handed, len(heaps))
	chunks := map[uintptr]bool{} // of 2 MiB, in which a span was
	look := func(after string, most int64) {
		t.Helper()
		over := int64(0)
		for _, h := range heaps {
			cost := int64(0)
			span.Each(h.id, &h.regions, func(s *span.Span) {
				part, size := int64(s.Size), max(s.Space, uintptr(unitsOf(s.Size))*span.UnitSize)
				if kind := s.LoadTag() & span.KindMask; kind != span.KindLarge {
					part, size = spanCost(uint8(kind&^span.KindSampled))-recordBytes, span.UnitSize
				}
				for at := s.Base; at < s.Base+size && s.Space == 0; at += span.UnitSize {
					chunks[at&^(2<<20-1)] = true
				}
				cost += part + int64(unitsOf(uintptr(part)))*recordBytes
				in, err := testheap.Mincore(s.Base, size)
				if err != nil && s.Space == 0 {
					testenv.Skip(t, "emulator", "it refuses mincore for reserved addresses")
					t.Fatal("mincore:", err)
				}
				over += max(0, int64(in)-part)
			})
			if held := h.Stats().Held; held < cost {
				t.Errorf("%s: a heap holds %d bytes, its spans %d", after, held, cost)
			}
		}
		if over > most && !huge {
			t.Fatalf("%s: %d bytes are resident that no heap holds, and of these %d are idle", after, over, most)
		}
	}
	idleBehind := func() int64 { return int64(span.Walk(func(*span.Span, uintptr) {}).Tails) }
	for range 1500 {
		i := r.IntN(len(heaps))
		h := heaps[i]
		size := 1 + r.IntN(1<<(4+r.IntN(17)))
		if r.IntN(200) == 0 {
			size += span.OwnMapping
		}
		n, after := len(live[i]), ""
		switch op := r.IntN(100); {
		case op < 30 && n > 0:
			after = "Free"
			j := r.IntN(n)
			live[i][j].Unwrap(t, h)
			live[i] = slices.Delete(live[i], j, j+1)
		case op < 50 && n > 0:
			b := &live[i][r.IntN(n)]
			after = fmt.Sprintf("Realloc from %d to %d", b.Size, size)
			if p := h.Realloc(b.P, size); p != nil {
				testcall.Must(t, shadow.Check(p, min(size, b.Size, 4<<10), b.Seed))
				*b = touchAll(p, size, r.Uint64())
			}
		case op < 52:
			after = "all of a heap is free"
			for _, b := range live[i] {
				b.Unwrap(t, h)
			}
			live[i] = nil
		case op < 54:
			after = "Trim"
			h.Trim()
			if tails := idleBehind(); tails != 0 {
				t.Errorf("%d bytes are idle behind spans after Trim", tails)
			}
		case op < 56:
			after = "the decay"
			span.Age()
			span.Age()
			if idle := span.Idle(); idle != 0 {
				t.Errorf("%d bytes are idle after the decay", idle)
			}
		case op < 57:
			after = "small blocks that are aligned"
			for range 100 {
				if p := h.AlignedMalloc(16, span.UnitSize); p != nil {
					live[i] = append(live[i], touchAll(p, 16, r.Uint64()))
				}
			}
		default:
			align := 16 << r.IntN(14)
			after = fmt.Sprintf("Malloc of %d bytes at %d", size, align)
			if p := h.AlignedMalloc(size, align); p != nil {
				live[i] = append(live[i], touchAll(p, size, r.Uint64()))
			}
		}
		if tails := idleBehind(); tails != 0 && atOnce {
			t.Fatalf("%s: %d bytes are idle behind spans, although the decay is 0", after, tails)
		}
		look(after, idleBehind())
	}
	for i, h := range heaps {
		for _, b := range live[i] {
			b.Unwrap(t, h)
		}
		MustHoldNothing(t, h)
	}
	for chunk := range chunks {
		for unit := chunk; unit < chunk+2<<20; unit += span.UnitSize {
			if n := testheap.Resident(t, unit, span.UnitSize); n != 0 && span.Find(unit).LoadTag() == 0 {
				t.Errorf("%d bytes of a unit that is free are resident", n)
			}
		}
	}
}

// touchAll writes to each page of the block at p, and fills it.
func touchAll(p unsafe.Pointer, size int, seed uint64) testheap.Handed {
	for at := 0; at < size; at += int(osmem.PageSize) {
		*(*byte)(unsafe.Add(p, at)) = 1
	}
	shadow.Fill(p, size, seed)
	return testheap.Handed{P: p, Size: size, Seed: seed}
}

// TestLargeIsZero frees a block with a mapping that was written to, whose pages are kept. A
// block of Calloc is zero, and has only the pages that the program touches. A block that
// Realloc moves has its contents, and one of Malloc other pages than before.
func TestLargeIsZero(t *testing.T) {
	testheap.SetDecay(t, -1)
	Trim()
	h := NewHeap(t, Options{})
	const size = span.OwnMapping + 5<<20
	for range 2 {
		p := h.Malloc(size)
		for at := uintptr(0); at < size; at += osmem.PageSize { // pages that have no memory are not kept
			*(*byte)(unsafe.Add(p, at)) = 3
		}
		h.Free(p)
		if want := span.Moves(); (span.Idle() >= span.OwnMapping) != want {
			t.Errorf("%d bytes are idle; pages move: %v", span.Idle(), want)
		}
		q := h.Calloc(1, size)
		if n := testheap.Resident(t, uintptr(q), size); n > 1<<20 {
			t.Errorf("%d bytes of Calloc are resident", n)
		}
		for i, b := range unsafe.Slice((*byte)(q), size) {
			if b != 0 {
				t.Fatalf("byte %d is %d", i, b)
			}
		}
		h.Free(q)
		r := h.Malloc(size)
		shadow.Fill(r, size, 4)
		idle := span.Idle()
		r = h.Realloc(r, 5*size)
		if span.Idle() != idle {
			t.Errorf("%d bytes are idle after Realloc, and %d before", span.Idle(), idle)
		}
		testcall.Want(t, shadow.Check(r, size, 4))
		h.Free(r)
	}
	MustHoldNothing(t, h)
}
