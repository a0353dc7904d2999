package heap

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// fillSizes are sizes of blocks that a checked heap takes from each of its sources.
var fillSizes = []int{0, 1, 7, 16, 100, 1000, 5000, 20_000, 32_768 - 144, 32_769, 40_000, span.UnitSize, 3 * span.UnitSize, 1_000_000, span.OwnMapping / 2}

// TestWrittenAfterQuarantine writes to a block that has left the quarantine, and wants the panic of
// the call that hands its memory out again, with the first and the last byte that changed.
func TestWrittenAfterQuarantine(t *testing.T) {
	if poisonsBlocks {
		return // the sanitizer reports the write itself
	}
	testheap.SetDecay(t, -1)
	for _, size := range fillSizes {
		for _, at := range [][2]int{{0, 1}, {size / 2, size/2 + 1}, {max(0, size-1), size}, {0, size}} {
			if at[1] > size || at[0] == at[1] || race.Told && size > 5000 && size <= sizeclass.MaxSize {
				continue // with the race detector nothing looks at a span that goes back, as these do
			}
			h := newCheckedHeap(t, Options{Check: CheckStacks, Quarantine: 1})
			p := makeChecked(h, size)
			h.Free(p)
			if large := size > sizeclass.MaxSize; large && !span.Find(uintptr(p)).Filled {
				t.Fatalf("%d bytes: the units are not filled", size)
			}
			write(p, at[0], at[1])
			found, ok := testcall.Catch(func() {
				for range max(3, 64<<20/(size+1)) {
					if q := h.Malloc(size); q == p {
						return
					}
				}
			}).(*MisuseError)
			if !ok || !strings.Contains(found.Reason, fmt.Sprintf("written to after it was freed: %d bytes from byte ", at[1]-at[0])) {
				t.Errorf("%d bytes, %v: %v", size, at, found)
			}
			if q := h.Malloc(size); q == nil {
				t.Errorf("%d bytes: the heap has no block any more", size)
			} else {
				write(q, 0, size)
				h.Free(q)
			}
		}
	}
}

// TestNotWrittenAfterQuarantine has heaps that check their blocks, and one that does not, take the
// same memory in turns, with blocks of all sizes that leave the quarantine at once. Nothing is
// written to that is free, so nothing is found.
func TestNotWrittenAfterQuarantine(t *testing.T) {
	rounds := 6000
	if race.Told || testenv.Emulated() {
		rounds = 1500
	}
	r := rand.New(rand.NewPCG(3, 4))
	var heaps [3]*Heap
	for i := range heaps {
		o := Options{Check: CheckBlocks, Quarantine: 1}
		if i == 0 {
			o = Options{}
		}
		heaps[i] = newCheckedHeap(t, o)
	}
	type live struct {
		h    *Heap
		p    unsafe.Pointer
		size int
	}
	var all []live
	for n := range rounds {
		if n%700 == 0 {
			heaps[n/700%len(heaps)].Trim()
		}
		if len(all) > 60 || len(all) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(all))
			b := all[i]
			testcall.Must(t, shadow.Check(b.p, b.size, uint64(b.size)))
			b.h.Free(b.p)
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
			continue
		}
		h, size := heaps[r.IntN(len(heaps))], fillSizes[r.IntN(len(fillSizes)-2)]
		p := h.AlignedMalloc(size, 16<<r.IntN(4))
		if p == nil {
			t.Fatal("no memory")
		}
		shadow.Fill(p, size, uint64(size))
		all = append(all, live{h, p, size})
	}
	for _, b := range all {
		b.h.Free(b.p)
	}
	for _, h := range heaps {
		testcall.Want(t, h.Destroy())
	}
}

// TestCopiedOverFreed copies a freed block over another one, with sizes above and below a word.
func TestCopiedOverFreed(t *testing.T) {
	if poisonsBlocks {
		return // the sanitizer reports the write itself
	}
	for _, size := range []int{8, 9, 16, 1000, 100_000} {
		h := newCheckedHeap(t, Options{Check: CheckBlocks})
		p, q := h.Malloc(size), h.Malloc(size)
		h.Free(p)
		h.Free(q)
		copy(testheap.RawBytes(p, size), testheap.RawBytes(q, size))
		if m, ok := testcall.Catch(func() { _ = h.Destroy() }).(*MisuseError); !ok || !strings.Contains(m.Reason, "written to after it was freed") {
			t.Errorf("%d bytes: %v", size, m)
		}
	}
}

// TestFreedWord looks at the first words of freed blocks: a small number, or text, that is written there
// is always a change of the first byte.
func TestFreedWord(t *testing.T) {
	var hd checkedHeader
	for hd.size = range 10_000 {
		if first := hd.freedWord()[0]; first < 0x80 {
			t.Fatalf("the first byte of a freed block of %d bytes is %#x", hd.size, first)
		}
	}
}
