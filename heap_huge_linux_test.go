//go:build !cheap_gomem

package cheap

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/shadow"
	"github.com/cheapgo/cheap/internal/span"
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

// TestHugePages looks at what the system was asked for the blocks of a heap with HugePages, and uses,
// resizes and frees them.
func TestHugePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		return // there are no huge pages
	}
	own, err := osmem.Reserve(2<<20, 2<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer osmem.Release(own, 2<<20)
	osmem.HugePages(own, 2<<20)
	if has, known, _, _ := hasFlag(t, own, "hg"); known && !has {
		return // an emulator drops the call
	}
	h := newHeap(t, HeapOptions{HugePages: true})
	var blocks []unsafe.Pointer
	for _, size := range []int{16, 600, 30_000, 100_000, 3 << 20, int(span.OwnMapping)} {
		p := h.Malloc(size)
		shadow.Fill(p, size, 1)
		has, known, start, end := hasFlag(t, uintptr(p), "hg")
		if known && !has {
			t.Errorf("%d bytes: no huge pages were asked for", size)
		}
		// A huge page needs all of it in one mapping.
		const huge = 2 << 20
		if from := uintptr(p) &^ (huge - 1); known && size < span.OwnMapping && span.OwnMapping >= huge && (start > from || end < from+huge) {
			t.Errorf("%d bytes at %p: the mapping is %#x to %#x", size, p, start, end)
		}
		q := h.Realloc(p, 2*size)
		if err := shadow.Check(q, min(size, shadow.Whole), 1); err != nil && size <= shadow.Whole {
			t.Errorf("%d bytes: %v", size, err)
		}
		blocks = append(blocks, q)
	}
	h.Trim()
	for _, p := range blocks {
		h.Free(p)
	}
	mustHoldNothing(t, h)
}

// TestHugePagesEnd has a heap with HugePages give its memory back. A small block of another heap takes
// a page of the memory that was there.
func TestHugePagesEnd(t *testing.T) {
	h := newHeap(t, HeapOptions{HugePages: true})
	var blocks []unsafe.Pointer
	for range 100 {
		p := h.Malloc(100_000)
		*(*byte)(p) = 1
		blocks = append(blocks, p)
	}
	for _, p := range blocks {
		h.Free(p)
	}
	h.Trim()
	small := newHeap(t, HeapOptions{})
	for _, size := range []int{16, 64, 1000, 4000} {
		p := small.Malloc(size)
		*(*byte)(p) = 1
		if n := resident(t, uintptr(p)&^(span.UnitSize-1), span.UnitSize); n > 2*osmem.PageSize {
			t.Errorf("one block of %d bytes makes %d bytes resident", size, n)
		}
		small.Free(p)
	}
}

// BenchmarkHugePages reads values of 600 bytes at random, of 1 GiB of them.
func BenchmarkHugePages(b *testing.B) {
	for _, huge := range []bool{false, true} {
		b.Run(fmt.Sprintf("huge=%v", huge), func(b *testing.B) {
			const size = 600
			h, err := NewHeap(HeapOptions{HugePages: huge})
			if err != nil {
				b.Fatal(err)
			}
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
