//go:build !cheap_gomem

package heap_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	. "github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// hasFlag reports whether the mapping of addr has a flag in /proc/self/smaps, and the bounds of the
// mapping. known is false if the system has no flags.
func hasFlag(t *testing.T, addr uintptr, flag string) (has, known bool, start, end uintptr) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return false, false, 0, 0
	}
	defer f.Close()
	in := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uintptr
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &from, &to); n == 2 {
			if in = from <= addr && addr < to; in {
				start, end = from, to
			}
		} else if flags, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok && in {
			return slices.Contains(strings.Fields(flags), flag), true, start, end
		}
	}
	return false, false, 0, 0
}

// mayHaveHugePages reports whether huge pages can be asked for.
func mayHaveHugePages(t *testing.T) bool {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		return false
	}
	own, err := osmem.Reserve(testheap.HugePage, testheap.HugePage)
	testcall.Must(t, err)
	defer osmem.Release(own, testheap.HugePage)
	osmem.HugePages(own, testheap.HugePage)
	has, known, _, _ := hasFlag(t, own, "hg")
	return has || !known // an emulator drops the call
}

// TestHugePages looks at what the system was asked for the blocks of a heap with HugePages, and uses,
// resizes and frees them.
func TestHugePages(t *testing.T) {
	if !mayHaveHugePages(t) {
		return
	}
	h := NewHeap(t, Options{HugePages: true})
	var blocks []unsafe.Pointer
	for _, size := range []int{16, 600, 30_000, 100_000, 3 << 20, int(span.OwnMapping)} {
		p := h.Malloc(size)
		shadow.Fill(p, size, 1)
		has, known, start, end := hasFlag(t, uintptr(p), "hg")
		if known && !has {
			t.Errorf("%d bytes: no huge pages were asked for", size)
		}
		// A huge page needs all of it in one mapping.
		if from := uintptr(p) &^ (testheap.HugePage - 1); known && size < span.OwnMapping && span.OwnMapping >= testheap.HugePage && (start > from || end < from+testheap.HugePage) {
			t.Errorf("%d bytes at %p: the mapping is %#x to %#x", size, p, start, end)
		}
		q := h.Realloc(p, 2*size)
		if err := shadow.Check(q, min(size, shadow.Whole), 1); err != nil && size <= shadow.Whole {
			t.Errorf("%d bytes: %v", size, err)
		}
		blocks = append(blocks, q)
	}
	h.Trim()
	testheap.FreeAll(h, blocks)
	MustHoldNothing(t, h)
}

// TestHugePagesGrown lets blocks of a heap with HugePages grow in turn. They share the huge pages as they did.
func TestHugePagesGrown(t *testing.T) {
	output, passed := testchild.Test(t, func(t *testing.T) {
		testheap.WithRate(t, 0) // a sampled block lies elsewhere
		h := NewHeap(t, Options{HugePages: true})
		var blocks [2 * testheap.HugePage / span.UnitSize]unsafe.Pointer
		for i := range blocks {
			blocks[i] = h.Malloc(sizeclass.MaxSize)
		}
		pages := map[uintptr]bool{}
		for i, p := range blocks {
			blocks[i] = h.Realloc(p, sizeclass.MaxSize+1)
			pages[uintptr(blocks[i])/testheap.HugePage] = true
		}
		if most := 2*len(blocks)*span.UnitSize/testheap.HugePage + 3; len(pages) > most && !Checks() {
			t.Errorf("%d blocks of two units lie in %d huge pages, want at most %d", len(blocks), len(pages), most)
		}
		testheap.FreeAll(h, blocks[:])
	})
	if !passed {
		t.Error(output)
	}
}

// TestHugePagesTakenBack has the memory of a block of a heap with HugePages go in each way. The system is
// not asked for huge pages any more where it was, unless a unit is warm.
func TestHugePagesTakenBack(t *testing.T) {
	if !span.Moves() || !mayHaveHugePages(t) {
		return
	}
	testheap.SetDecay(t, -1)
	first := func(p unsafe.Pointer) uintptr { return (uintptr(p) + testheap.HugePage - 1) &^ (testheap.HugePage - 1) } // all of it is the block's
	for _, row := range []struct {
		name string
		end  func(h *Heap, p unsafe.Pointer) (rest unsafe.Pointer)
	}{
		{"trimmed", func(h *Heap, p unsafe.Pointer) unsafe.Pointer {
			h.Free(p)
			span.TrimTo(first(p) - uintptr(p) + span.UnitSize)
			if has, known, _, _ := hasFlag(t, first(p), "hg"); known && !has {
				t.Error("a unit is warm, and no huge page is asked for")
			}
			h.Trim()
			return nil
		}},
		{"moved to a mapping", func(h *Heap, p unsafe.Pointer) unsafe.Pointer { return h.Realloc(p, 2*span.OwnMapping) }},
		{"taken by a mapping", func(h *Heap, p unsafe.Pointer) unsafe.Pointer {
			h.Free(p)
			return h.Malloc(span.OwnMapping)
		}},
	} {
		h := NewHeap(t, Options{HugePages: true})
		h.Trim()
		p := h.Malloc(3 * testheap.HugePage)
		if has, known, _, _ := hasFlag(t, first(p), "hg"); known && !has {
			t.Errorf("%s: no huge pages were asked for", row.name)
		}
		rest := row.end(h, p)
		if has, _, _, _ := hasFlag(t, first(p), "hg"); has {
			t.Errorf("%s: huge pages are asked for still", row.name)
		}
		h.Free(rest)
		MustHoldNothing(t, h)
	}
}

// TestHugePagesAgain has a heap with HugePages fill its memory, and give it back in pieces, which leaves tables of
// small pages. Each time it is filled, it has huge pages. The system may refuse what drops the tables.
func TestHugePagesAgain(t *testing.T) {
	if !osmem.CanMove() {
		return // the tables stay
	}
	const huge = 2 << 20
	testheap.SetDecay(t, -1)
	h := NewHeap(t, Options{HugePages: true})
	var refuse error
	dropped := 0
	note := func(op osmem.Op, size uintptr) error {
		if op != osmem.OpRemap || size != huge {
			return nil
		}
		dropped++
		return refuse
	}
	osmem.Fault.Store(&note)
	defer osmem.Fault.Store(nil)
	var whole []int // how many chunks had one byte written to, and were resident as a whole
	for _, refuse = range []error{nil, nil, nil, errors.New("refused"), osmem.ErrLost, nil} {
		h.Trim()
		dropped = 0
		reserved := osmem.ReadCounts().Reserved
		whole = append(whole, 0)
		chunks := map[uintptr]int{} // how many blocks are in each
		var blocks [4 * huge / span.UnitSize]testheap.Handed
		for i := range blocks {
			p := h.Malloc(span.UnitSize)
			chunk := uintptr(p) &^ (huge - 1)
			if chunks[chunk]++; chunks[chunk] == 1 {
				*(*byte)(p) = 1
				if testheap.Resident(t, chunk, huge) == huge {
					whole[len(whole)-1]++
				}
			}
			shadow.Fill(p, span.UnitSize, uint64(i))
			blocks[i] = testheap.Handed{P: p, Size: span.UnitSize, Seed: uint64(i)}
		}
		full := 0 // chunks in which no other heap can have a unit
		for _, n := range chunks {
			full += n / (huge / span.UnitSize)
		}
		if len(whole) > 1 && (dropped < full || dropped > len(chunks)) {
			t.Errorf("the tables of %d chunks are dropped, of %d, and %d have no other units", dropped, len(chunks), full)
		}
		want := 0 // what is lost may belong to another mapping by now
		if refuse == osmem.ErrLost {
			want = dropped
		}
		if n := int(osmem.ReadCounts().Reserved-reserved) / huge; len(whole) > 1 && n != want {
			t.Errorf("%v: %d chunks of addresses are not released, want %d", refuse, n, want)
		}
		for start := range 2 {
			for i := start; i < len(blocks); i += 2 {
				blocks[i].Unwrap(t, h)
			}
			h.Trim()
		}
	}
	if whole[0] > 0 && whole[1]+whole[2]+whole[5] == 0 {
		t.Errorf("%d chunks had a huge page at first, and none later", whole[0])
	}
}

// BenchmarkHugePages reads values of 600 bytes at random, of 1 GiB of them.
func BenchmarkHugePages(b *testing.B) {
	for _, huge := range []bool{false, true} {
		b.Run(fmt.Sprintf("huge=%v", huge), func(b *testing.B) {
			const size = 600
			h, err := New(Options{HugePages: huge})
			testcall.Must(b, err)
			defer h.DestroyAll()
			values := make([]unsafe.Pointer, 1<<30/size)
			for i := range values {
				p := h.Malloc(size)
				if p == nil {
					b.Fatal("no memory")
				}
				clear(unsafe.Slice((*byte)(p), size))
				values[i] = p
			}
			rng, to := rand.New(rand.NewPCG(1, 2)), make([]byte, size)
			for b.Loop() {
				copy(to, unsafe.Slice((*byte)(values[rng.IntN(len(values))]), size))
			}
		})
	}
}
