package cheap

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/span"
)

// TestPreconditions calls each function that wants a multiple of something with what is none, and
// wants a panic that names it.
func TestPreconditions(t *testing.T) {
	h := newHeap(t, HeapOptions{})
	size := 2 * osmem.PageSize
	large := h.Malloc(int(span.UnitSize + osmem.PageSize))
	defer h.Free(large)
	s := span.Find(uintptr(large))

	type row struct {
		op, arg string
		call    func()
	}
	var rows []row
	for _, off := range []uintptr{1, 128, osmem.PageSize - 1} {
		rows = append(rows,
			row{"largeCost", "size", func() { largeCost(size + off) }},
			row{"Heap.newLarge", "size", func() { h.newLarge(size+off, 16, 0) }},
			row{"Heap.resizeLarge", "size", func() { h.resizeLarge(s, uintptr(large), size+off, false) }},
		)
	}
	rows = append(rows, row{"Heap.newLarge", "size", func() { h.newLarge(0, 16, 0) }})
	before := h.Stats()
	for _, row := range rows {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "cheap: "+row.op+": "+row.arg+" is 0x") {
					t.Errorf("%s with a wrong %s: %q", row.op, row.arg, text)
				}
			}()
			row.call()
		}()
	}
	if after := h.Stats(); after.Held != before.Held {
		t.Errorf("the heap has %+v after that, and had %+v before", after, before)
	}
}

// A skewed is an AlignedAllocator that breaks its word: what AlignedMalloc returns is 16 bytes behind
// where it should be. Malloc aligns to plain.
type skewed struct {
	*fakeAlloc
	plain int
}

func (a skewed) AlignedMalloc(size, align int) unsafe.Pointer { return a.malloc(size, align, 16) }

func (a skewed) Malloc(size int) unsafe.Pointer { return a.malloc(size, a.plain, a.plain) }

// TestInnerAlignsToLess has an inner allocator of an Arena and of a FixedBlock return blocks that
// are not aligned as they were to be. The blocks above are aligned and apart all the same, or a
// panic says what is wrong.
func TestInnerAlignsToLess(t *testing.T) {
	inner := skewed{newFake(t), 16}
	a := NewArena(inner, 0)
	for _, align := range []int{32, 4096, 1 << 16} {
		if p := a.AlignedMalloc(1<<17, align); uintptr(p)%uintptr(align) != 0 {
			t.Errorf("%p of the arena is no multiple of %d", p, align)
		}
	}
	a.FreeAll()
	f := NewFixedBlock(inner, FixedBlockOptions{BlockSize: 64, Align: 64})
	for range 3000 { // several chunks
		if p := f.Malloc(64); p == nil || uintptr(p)%64 != 0 {
			t.Fatalf("%p of the FixedBlock is no multiple of 64", p)
		}
	}
	if err := f.DestroyAll(); err != nil || len(inner.blocks) != 0 {
		t.Errorf("DestroyAll: %v; %d blocks are left", err, len(inner.blocks))
	}

	inner.plain = 4
	f = NewFixedBlock(inner, FixedBlockOptions{BlockSize: 64})
	wantMisuse(t, "FixedBlock.Malloc", func() { f.Malloc(64) }, "no multiple of 8")
	if err := f.Destroy(); err != nil || len(inner.blocks) != 0 {
		t.Errorf("Destroy: %v; %d blocks are left", err, len(inner.blocks))
	}
}
