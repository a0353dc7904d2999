package heap

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/fill"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// newCheckedHeap returns a heap with a level, which is destroyed when the test ends, whatever
// is found then.
func newCheckedHeap(t testing.TB, o Options) *Heap {
	t.Helper()
	h, err := New(o)
	testcall.Must(t, err)
	t.Cleanup(func() {
		if testcall.Catch(func() { h.DestroyAll() }) == nil {
			return
		}
		if err := h.DestroyAll(); err != nil { // the second call looks at nothing
			t.Error(err)
		}
	})
	return h
}

//go:noinline
func makeChecked(h *Heap, size int) unsafe.Pointer { return h.Malloc(size) }

//go:noinline
func freeChecked(h *Heap, p unsafe.Pointer) { h.Free(p) }

// write sets bytes [from, to) relative to p.
func write(p unsafe.Pointer, from, to int) {
	for i := from; i < to; i++ {
		*(*byte)(unsafe.Add(p, i)) ^= 0x5A
	}
}

// TestCheckedFaults plants mistakes. Each must be found at the call that is named, with the
// size of the block and the stacks that allocated and freed it.
func TestCheckedFaults(t *testing.T) {
	type fault struct {
		name   string
		commit func(h *Heap, p unsafe.Pointer, size int) // ends with the call that must panic
		words  []string
	}
	faults := []fault{
		{"double free at once", func(h *Heap, p unsafe.Pointer, size int) {
			freeChecked(h, p)
			h.Free(p)
		}, []string{"is free already", "freed by", "freeChecked"}},
		{"double free after 1,024 operations", func(h *Heap, p unsafe.Pointer, size int) {
			freeChecked(h, p)
			for range 512 {
				h.Free(h.Malloc(100))
			}
			h.Free(p)
		}, []string{"is free already", "freed by", "freeChecked"}},
		{"double free by another goroutine", func(h *Heap, p unsafe.Pointer, size int) {
			freeChecked(h, p)
			var v any
			testcall.Aside(func() {
				v = testcall.Catch(func() { h.Free(p) })
			})
			if v != nil {
				panic(v)
			}
		}, []string{"is free already", "freed by", "freeChecked"}},
		{"Realloc of a free block", func(h *Heap, p unsafe.Pointer, size int) {
			freeChecked(h, p)
			h.Realloc(p, 10)
		}, []string{"is free already", "freed by", "freeChecked"}},
		{"free of the pointer before Realloc", func(h *Heap, p unsafe.Pointer, size int) {
			h.Realloc(p, size+1)
			h.Free(p)
		}, []string{"is free already", "freed by", "TestCheckedFaults"}},
		{"interior free", func(h *Heap, p unsafe.Pointer, size int) { h.Free(unsafe.Add(p, 8)) }, []string{"8 bytes after its start"}},
		{"misaligned free", func(h *Heap, p unsafe.Pointer, size int) { h.Free(unsafe.Add(p, 1)) }, []string{"1 bytes after its start"}},
		{"one byte over", func(h *Heap, p unsafe.Pointer, size int) {
			write(p, size, size+1)
			h.Free(p)
		}, []string{"behind its end: 1 bytes from byte"}},
		{"16 bytes over", func(h *Heap, p unsafe.Pointer, size int) {
			write(p, size, size+16)
			h.Free(p)
		}, []string{"behind its end: 16 bytes from byte"}},
		{"over, seen by Destroy", func(h *Heap, p unsafe.Pointer, size int) {
			write(p, size, size+1)
			h.Destroy()
		}, []string{"behind its end: 1 bytes from byte"}},
		{"over, behind a Realloc that shrinks", func(h *Heap, p unsafe.Pointer, size int) {
			q := h.Realloc(p, size/2)
			write(q, size/2, size/2+1)
			h.Free(q)
		}, []string{"behind its end: 1 bytes from byte"}},
		{"one byte under", func(h *Heap, p unsafe.Pointer, size int) {
			write(p, -1, 0)
			h.Free(p)
		}, []string{"before its start: 1 bytes from byte -1"}},
		{"32 bytes under", func(h *Heap, p unsafe.Pointer, size int) {
			write(p, -32, 0)
			h.Free(p)
		}, []string{"before its start: 32 bytes from byte -32"}},
		{"120 bytes under", func(h *Heap, p unsafe.Pointer, size int) {
			write(p, -120, 0)
			h.Free(p)
		}, []string{"before its start: more than"}},
		{"120 bytes under, seen by Destroy", func(h *Heap, p unsafe.Pointer, size int) {
			write(p, -120, 0)
			h.DestroyAll()
		}, []string{"were written to"}},
		{"write after free", func(h *Heap, p unsafe.Pointer, size int) {
			freeChecked(h, p)
			write(p, 3, 7)
			for range 1 << 20 {
				h.Free(h.Malloc(1000))
			}
		}, []string{"after it was freed: 4 bytes from byte 3", "freed by", "freeChecked"}},
		{"write after free, seen by Destroy", func(h *Heap, p unsafe.Pointer, size int) {
			freeChecked(h, p)
			write(p, size-1, size)
			h.Destroy()
		}, []string{"after it was freed: 1 bytes from byte", "freed by", "freeChecked"}},
		{"write over a freed neighbour", func(h *Heap, p unsafe.Pointer, size int) {
			freeChecked(h, p)
			write(p, size, size+2)
			h.Destroy()
		}, []string{"behind its end: 2 bytes from byte", "freed by", "freeChecked"}},
	}
	for _, f := range faults {
		// A block with a mapping of its own is not filled when it is freed.
		for _, size := range []int{16, 1 << 10, min(1<<20, int(span.OwnMapping)/2)} {
			t.Run(fmt.Sprintf("%s/%d", f.name, size), func(t *testing.T) {
				h := newCheckedHeap(t, Options{Check: CheckStacks})
				makeChecked(h, size) // a neighbour
				p := makeChecked(h, size)
				makeChecked(h, size)
				if strings.Contains(f.name, "by Destroy") || strings.Contains(f.name, "neighbour") {
					h.Malloc(1)
				}
				v := testcall.Catch(func() { f.commit(h, p, size) })
				e, ok := v.(*MisuseError)
				if !ok {
					t.Fatalf("panic value %v, want a MisuseError", v)
				}
				wants := append([]string{"allocated by", "makeChecked", "checked_test.go:"}, f.words...)
				switch f.name {
				case "over, behind a Realloc that shrinks":
					wants = append(f.words, fmt.Sprintf("(%d bytes)", size/2), "allocated by", "TestCheckedFaults")
				case "120 bytes under, seen by Destroy": // the size was overwritten
				default:
					wants = append(wants, fmt.Sprintf("(%d bytes)", size))
				}
				for _, w := range wants {
					if !strings.Contains(e.Reason, w) {
						t.Errorf("%q is not in: %v", w, e)
					}
				}
			})
		}
	}
}

// TestCheckedForeign frees what is no block.
func TestCheckedForeign(t *testing.T) {
	h, other, plain := newCheckedHeap(t, Options{Check: CheckBlocks}), newCheckedHeap(t, Options{Check: CheckBlocks}), NewHeap(t, Options{})
	p, q := h.Malloc(100), plain.Malloc(100)
	wantMisuse(t, "Heap.Free", func() { other.Free(p) }, "another heap")
	wantMisuse(t, "Heap.Free", func() { plain.Free(p) }, "another heap")
	wantMisuse(t, "Heap.Free", func() { h.Free(q) }, "another heap")
	wantMisuse(t, "Heap.Free", func() { h.Free(testheap.AnyPointer(100)) }, "small number")
	outside := unsafe.Pointer(new([100]byte))
	wantMisuse(t, "Heap.Free", func() { h.Free(outside) }, foreignWords(uintptr(outside)))
	wantMisuse(t, "Heap.Free", func() { h.Free(unsafe.Add(p, -16)) }, "inside the block")
	wantMisuse(t, "Heap.UsableSize", func() { h.UsableSize(unsafe.Add(p, 1)) }, "inside the block")
	if h.Owns(unsafe.Add(p, 1)) || h.Owns(q) || !h.Owns(p) {
		t.Error("Owns is wrong")
	}
	if n := h.UsableSize(p); n != 100 {
		t.Errorf("UsableSize is %d", n)
	}
	if n := UsableSize(p); n != 100 {
		t.Errorf("the function UsableSize returns %d", n)
	}
	h.Free(p)
	plain.Free(q)
}

// TestCheckedGoesOn recovers from reports, and uses the heap after them.
func TestCheckedGoesOn(t *testing.T) {
	h := newCheckedHeap(t, Options{Check: CheckStacks, Quarantine: 64 << 10})
	for i := range 200 {
		p := h.Malloc(100)
		switch i % 4 {
		case 0:
			write(p, 100, 101)
			wantMisuse(t, "Heap.Free", func() { h.Free(p) }, "behind its end")
			wantMisuse(t, "Heap.Free", func() { h.Free(p) }, "is free already")
		case 1:
			write(p, -128, 0)
			wantMisuse(t, "Heap.Free", func() { h.Free(p) }, "before its start")
		default:
			h.Free(p)
		}
	}
	// A large block that was to be handed out, while a free block is damaged, goes back, and is no damage.
	h.Free(h.Malloc(100_000))
	h.checked.empty()
	h.note(fill.Damage{Block: 16, Size: 16, To: 16})
	wantMisuse(t, "Heap", func() { h.Malloc(100_000) }, "written to")
	h.Free(h.Malloc(100_000))
	if s := h.Stats(); s.Blocks != 0 || s.Bytes != 0 {
		t.Errorf("%+v", s)
	}
	testcall.Want(t, h.Destroy())
}

// TestQuarantineOrder makes the quarantine larger when blocks have left it. The oldest leave first still.
func TestQuarantineOrder(t *testing.T) {
	h := newCheckedHeap(t, Options{Check: CheckBlocks, Quarantine: 1 << 20})
	c := h.checked
	const left, all = 10, 200
	var blocks [all]unsafe.Pointer
	for i := range blocks {
		blocks[i] = h.Malloc(100)
	}
	for i, p := range blocks {
		if i == 2*left {
			c.mu.Lock()
			for range left {
				c.leave("test")
			}
			c.mu.Unlock()
		}
		h.Free(p)
	}
	for i, p := range blocks[left:] {
		if got, want := c.ring[(c.first+i)%len(c.ring)], uintptr(p)-headerBytes; got != want {
			t.Fatalf("block %d of the quarantine has its header at %#x, want %#x", i, got, want)
		}
	}
}
