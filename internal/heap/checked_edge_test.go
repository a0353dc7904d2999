package heap

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// TestCheckedAlignments asks for alignments that are large, with a size for which there may be
// no room.
func TestCheckedAlignments(t *testing.T) {
	h := newCheckedHeap(t, Options{Check: CheckStacks})
	for shift := 4; shift < 63; shift++ {
		align := uint64(1) << shift
		if align > uint64(maxInt) {
			break
		}
		if 33 < shift && testenv.Emulated() {
			break // the emulator needs memory for each page of address space
		}
		for _, size := range []int{0, 1, 100, maxInt, maxInt - 200, int(maxLarge)} {
			if size <= 100 && testheap.Scarce && shift > 24 {
				continue
			}
			p, _, err := h.alloc("Heap.AlignedMalloc", nil, size, int(align))
			if err != nil {
				continue
			}
			if uint64(p)%align != 0 {
				t.Errorf("align %d: %#x", align, p)
			}
			h.Free(testheap.AnyPointer(p))
		}
	}
	if s := h.Stats(); s.Blocks != 0 || s.Bytes != 0 {
		t.Errorf("%+v", s)
	}
}

const maxInt = int(^uint(0) >> 1)

// TestCheckedFreeNeighbour writes behind the end of a block into one that is free. The next
// Malloc finds that; it must name the block whose end was written over, and hold no lock.
func TestCheckedFreeNeighbour(t *testing.T) {
	for _, size := range []int{16, 1 << 10, 20_000} {
		for _, over := range []int{17, 32, 300, 2000} {
			t.Run(fmt.Sprintf("size=%d/over=%d", size, over), func(t *testing.T) {
				h := newCheckedHeap(t, Options{Check: CheckStacks})
				p := makeChecked(h, size)
				rest := int(headerAt(uintptr(p)-headerBytes).whole) - headerBytes - size
				write(p, size, size+rest+over)
				testwait.Return(t, "Malloc", func() {
					var v any
					for range 100 {
						if v = testcall.Catch(func() { h.Malloc(size) }); v != nil {
							break
						}
					}
					if v == nil { // no block was in the memory behind
						v = testcall.Catch(func() { h.Free(p) })
					}
					e, ok := v.(*MisuseError)
					if !ok {
						t.Errorf("panic value %v", v)
					}
					if !ok {
						return
					}
					for _, w := range []string{fmt.Sprintf("(%d bytes)", size), "behind its end", "makeChecked"} {
						if !strings.Contains(e.Reason, w) {
							t.Errorf("%q is not in: %v", w, e)
						}
					}
				})
				testwait.Return(t, "Malloc after the report", func() { testcall.Catch(func() { h.Free(h.Malloc(size)) }) })
			})
		}
	}
}

// TestCheckedStale frees a block of a destroyed heap, whose span a second heap has.
func TestCheckedStale(t *testing.T) {
	for _, size := range []int{16, 1000} {
		var stale []unsafe.Pointer
		h := newCheckedHeap(t, Options{Check: CheckStacks})
		for range 300 {
			stale = append(stale, h.Malloc(size))
		}
		testcall.Must(t, h.DestroyAll())
		h = newCheckedHeap(t, Options{Check: CheckStacks})
		live := map[unsafe.Pointer]bool{}
		for range 20 {
			live[h.Malloc(size)] = true
		}
		for _, p := range stale {
			if !live[p] {
				if h.Owns(p) {
					t.Errorf("size %d: Owns(%p) of a free block", size, p)
				}
				if v, ok := testcall.Catch(func() { h.Free(p) }).(*MisuseError); !ok {
					t.Errorf("size %d: Default().Free(%p) of a free block: %v", size, p, v)
				}
			}
		}
		if n := h.Stats().Blocks; n != 20 {
			t.Errorf("%d blocks", n)
		}
	}
}

// TestCheckedTrim gives all back.
func TestCheckedTrim(t *testing.T) {
	h := newCheckedHeap(t, Options{Check: CheckBlocks, Quarantine: 1})
	var blocks []unsafe.Pointer
	for i := range 5000 {
		blocks = append(blocks, h.Malloc(i%3000))
	}
	testheap.FreeAll(h, blocks)
	h.Trim()
	h.Free(h.Malloc(10))
	h.Trim()
	h.Free(h.Malloc(10))
	if s := h.Stats(); s.Cached > 64<<10 || s.Held > 256<<10 {
		t.Errorf("%+v", s)
	}
}

// TestCheckedOverQuarantined writes behind the end of a block over the header of one in quarantine,
// and over that of one in use.
func TestCheckedOverQuarantined(t *testing.T) {
	for _, size := range []int{16, 1 << 10} {
		for _, free := range []bool{true, false} {
			for _, end := range []string{"quarantine", "Free", "Destroy"} {
				h := newCheckedHeap(t, Options{Check: CheckStacks, Quarantine: 64 << 10})
				a, b := makeChecked(h, size), h.Malloc(size)
				if uintptr(b) < uintptr(a) {
					t.Fatal("the second block lies before the first")
				}
				if free {
					h.Free(b)
				}
				write(a, size, int(uintptr(b)-uintptr(a)))
				v := testcall.Catch(func() {
					switch end {
					case "quarantine":
						for range 10_000 {
							h.Free(h.Malloc(100))
						}
						h.Free(a)
					case "Free":
						h.Free(b)
					case "Destroy":
						h.DestroyAll()
					}
				})
				e, _ := v.(*MisuseError)
				for _, w := range []string{fmt.Sprintf("%#x (%d bytes)", a, size), "behind its end", "makeChecked"} {
					if e == nil || !strings.Contains(e.Reason, w) {
						t.Errorf("size %d, free %v, %s: %q is not in: %v", size, free, end, w, v)
					}
				}
			}
		}
	}
}

// TestCheckedLimitClasses fills a heap with blocks of one class after those of another.
func TestCheckedLimitClasses(t *testing.T) {
	for _, limit := range []int64{1 << 20, 4 << 20} {
		h := newCheckedHeap(t, Options{Check: CheckBlocks, Limit: limit})
		for _, size := range []int{10, 100, 500, 1000, 2000, 4000, 8000, 20} {
			var blocks []unsafe.Pointer
			for {
				p := h.Malloc(size)
				if p == nil {
					break
				}
				blocks = append(blocks, p)
			}
			if n := len(blocks) * (size + 144); n < int(limit)/2 {
				t.Errorf("limit %d: %d blocks of %d bytes: %+v", limit, len(blocks), size, h.Stats())
			}
			testheap.FreeAll(h, blocks)
		}
	}
}

// TestCheckedReallocDamaged looks what is left of a Realloc that panics.
func TestCheckedReallocDamaged(t *testing.T) {
	h := newCheckedHeap(t, Options{Check: CheckStacks})
	p := h.Malloc(100)
	write(p, 100, 101)
	wantMisuse(t, "Heap.Realloc", func() { h.Realloc(p, 200) }, "behind its end")
	if s := h.Stats(); s.Blocks != 0 {
		t.Errorf("%+v", s)
	}
}

// TestCheckedSamples has samples of a checked heap: they begin and end with the caller's block,
// and have its size.
func TestCheckedSamples(t *testing.T) {
	testheap.WithRate(t, 1)
	h := newCheckedHeap(t, Options{Name: testheap.UniqueName(t), Check: CheckBlocks})
	var all []unsafe.Pointer
	for range 100 {
		all = append(all, h.Malloc(100), h.Malloc(50_000))
	}
	sample.SetPool(uintptr(all[0]), "pool")
	if got := testheap.SampledIn(h.Name(), ""); got.Allocs != 200 || got.Frees != 0 {
		t.Errorf("%v allocated, %v freed, want 200 and 0", got.Allocs, got.Frees)
	}
	testheap.FreeAll(h, all[:150])
	if got := testheap.SampledIn(h.Name(), ""); got.Allocs != 200 || got.Frees != 150 {
		t.Errorf("%v allocated, %v freed, want 200 and 150", got.Allocs, got.Frees)
	}
	pool := 0.0
	for _, s := range sample.Sites() {
		if s.Heap == h.Name() && s.Size != 100 && s.Size != 50_000 {
			t.Errorf("a sample has %d bytes", s.Size)
		}
		if s.Heap == h.Name() && s.Pool == "pool" {
			pool += s.Allocs
		}
	}
	if pool != 1 {
		t.Errorf("%v samples are of the pool, want 1", pool)
	}
}

// TestCheckedDestroyAgain destroys a heap that Destroy has found something in.
func TestCheckedDestroyAgain(t *testing.T) {
	for _, off := range []int{10, -128} {
		h := newCheckedHeap(t, Options{Check: CheckBlocks})
		p := h.Malloc(10)
		if off < 0 {
			write(p, off, 0)
		} else {
			write(p, off, off+1)
		}
		wantMisuse(t, "Heap.DestroyAll", func() { h.DestroyAll() }, "written to")
		if err := h.DestroyAll(); err != nil {
			t.Errorf("the second DestroyAll returns %v", err)
		}
	}
}

// TestCheckedMapping has a block that is not filled: no page of it is touched.
func TestCheckedMapping(t *testing.T) {
	h := newCheckedHeap(t, Options{Check: CheckStacks})
	p := h.Malloc(4 * span.OwnMapping)
	if b := unsafe.Slice((*byte)(p), 4*span.OwnMapping); b[span.OwnMapping] != 0 {
		t.Errorf("the block has bytes %#x", b[span.OwnMapping])
	}
	write(p, 4*span.OwnMapping, 4*span.OwnMapping+1)
	wantMisuse(t, "Heap.Free", func() { h.Free(p) }, "behind its end")
}

// TestCheckedDestroyFree writes to the mark of a block that has left the quarantine. Both ways to
// destroy the heap find that.
func TestCheckedDestroyFree(t *testing.T) {
	for _, destroy := range []func(h *Heap) error{(*Heap).Destroy, (*Heap).DestroyAll} {
		h := newCheckedHeap(t, Options{Check: CheckStacks, Quarantine: 1})
		p := makeChecked(h, 100)
		h.Free(p)
		write(p, -headerBytes+8, -headerBytes+9)
		const want = "was written to after it was freed"
		m, ok := testcall.Catch(func() { _ = destroy(h) }).(*MisuseError)
		if !ok || !strings.Contains(m.Reason, want) {
			t.Errorf("%v does not say %q", m, want)
		}
		testcall.Want(t, h.DestroyAll())
	}
}
