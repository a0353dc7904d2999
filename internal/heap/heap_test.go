package heap_test

import (
	"testing"
	"unsafe"

	. "github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// TestManySizes allocates a block of each of many sizes, all live at once.
func TestManySizes(t *testing.T) {
	h := NewHeap(t, Options{})
	var live shadow.Set
	sizes := []int{32_769, 40_000, span.UnitSize - 1, span.UnitSize, span.UnitSize + 1, 1 << 20, span.OwnMapping - 1, span.OwnMapping}
	for size, step := 0, 1; size <= sizeclass.MaxSize; size += step {
		sizes = append(sizes, size)
		if size == 2048 {
			step = 64 // still all classes, and not all memory
		}
	}
	for _, c := range sizeclass.Classes {
		sizes = append(sizes, int(c.Size), int(c.Size)+1)
	}
	var blocks []unsafe.Pointer
	for _, size := range sizes {
		p := h.Malloc(size)
		usable := h.UsableSize(p)
		testcall.Must(t, live.Add(p, size, usable, sizeclass.Quantum))
		if usable != GoodSize(size) || !h.Owns(p) {
			t.Fatalf("a block of %d bytes has %d, GoodSize says %d; Owns = %v", size, usable, GoodSize(size), h.Owns(p))
		}
		blocks = append(blocks, p)
	}
	if s := h.Stats(); s.Blocks != int64(live.Len()) || s.Bytes != live.Bytes() {
		t.Errorf("%+v, want %d blocks of %d bytes", s, live.Len(), live.Bytes())
	}
	testcall.Want(t, live.CheckAll(osmem.Pointer))
	testheap.FreeAll(h, blocks)
	MustHoldNothing(t, h)
}

// TestGoodSize compares what is promised about the waste with every size.
func TestGoodSize(t *testing.T) {
	for size := range 200_000 {
		got := GoodSize(size)
		if got < size || got%sizeclass.Quantum != 0 || got == 0 {
			t.Fatalf("GoodSize(%d) = %d", size, got)
		}
		most := got / 8
		if size > sizeclass.MaxSize {
			most = max(most, int(osmem.PageSize)-1) // which is an eighth if pages have 4 KiB
		}
		if waste := got - size; size > 128 && waste > most {
			t.Fatalf("GoodSize(%d) = %d wastes %d", size, got, waste)
		}
		if again := GoodSize(got); again != got {
			t.Fatalf("GoodSize(%d) = %d, and of that %d", size, got, again)
		}
	}
}

// TestZeroSize allocates nothing, often.
func TestZeroSize(t *testing.T) {
	h := NewHeap(t, Options{})
	seen := map[unsafe.Pointer]bool{}
	for range 10_000 {
		p := h.Malloc(0)
		if p == nil || seen[p] {
			t.Fatalf("Malloc(0) = %p; handed out already: %v", p, seen[p])
		}
		seen[p] = true
	}
	for p := range seen {
		h.Free(p)
	}
	for _, p := range []unsafe.Pointer{h.Calloc(0, 0), h.Calloc(0, 5), h.Calloc(5, 0), h.Realloc(nil, 0), h.AlignedMalloc(0, 1), h.AlignedMalloc(0, 1<<20)} {
		if p == nil {
			t.Error("no block of size 0")
		}
		h.Free(p)
	}
	MustHoldNothing(t, h)
}

// TestAlignedMalloc asks a heap and a Local in turn for every power of two up to more than a region.
func TestAlignedMalloc(t *testing.T) {
	h, l := NewHeapAndLocal(t, Options{})
	most := 256 << 20
	if osmem.GoBacked || ^uintptr(0)>>32 == 0 {
		most = 4 << 20 // takes real memory, or address space that is scarce
	}
	var live shadow.Set
	ways := []Allocator{h, l}
	for align := 1; align <= most; align *= 2 {
		for _, size := range []int{0, 1, 100, 5000, 32_768, 40_000, 3 * span.UnitSize} {
			p := ways[live.Len()%2].AlignedMalloc(size, align)
			usable := 0
			if p != nil {
				usable = h.UsableSize(p)
			}
			if err := live.Add(p, size, usable, max(align, sizeclass.Quantum)); err != nil {
				t.Fatalf("align %d: %v", align, err)
			}
		}
	}
	removeAll(t, &live, h)
}

// removeAll looks at all blocks of live, and frees them.
func removeAll(t testing.TB, live *shadow.Set, a Allocator) {
	t.Helper()
	for live.Len() > 0 {
		p := osmem.Pointer(live.At(live.Len() / 2).Addr)
		testcall.Must(t, live.Remove(p))
		a.Free(p)
	}
}

// TestCallocZeroes leaves dirt everywhere and then asks for zeroes.
func TestCallocZeroes(t *testing.T) {
	h, l := NewHeapAndLocal(t, Options{})
	sizes := []int{1, 17, 33_000, 60_000, 70_000, 1 << 20, span.OwnMapping}
	for _, c := range sizeclass.Classes {
		sizes = append(sizes, int(c.Size), int(c.Size)-15)
	}
	for _, size := range sizes {
		for round := range 3 { // fresh from the system, after frees, and after Trim
			var blocks []unsafe.Pointer
			for i := range max(3, min(200, 1<<20/size)) {
				p := h.Calloc(1, size)
				switch i % 3 {
				case 0:
					h.Free(p)
					p, _ = l.TryCalloc(size, 1)
				case 1:
					h.Free(p)
					p, _ = h.TryCalloc(size, 1)
				}
				if err := shadow.Zero(p, size); err != nil {
					t.Fatalf("size %d, round %d: %v", size, round, err)
				}
				shadow.Fill(p, h.UsableSize(p), 1)
				blocks = append(blocks, p)
			}
			testheap.FreeAll(h, blocks)
			if round == 1 {
				h.Trim()
			}
		}
	}
}

// TestDefaultHeap uses the package-level functions.
func TestDefaultHeap(t *testing.T) {
	before := Default().Stats()
	p := Default().Malloc(100)
	q := Default().Calloc(10, 10)
	testcall.Want(t, shadow.Zero(q, 100))
	r := Default().AlignedMalloc(10, 4096)
	if uintptr(r)%4096 != 0 || UsableSize(p) != GoodSize(100) || !Default().Owns(p) || !Default().Owns(q) || !Default().Owns(r) {
		t.Errorf("blocks %p, %p, %p", p, q, r)
	}
	p = Default().Realloc(p, 100_000)
	if UsableSize(p) != GoodSize(100_000) {
		t.Errorf("UsableSize = %d", UsableSize(p))
	}
	for _, b := range []unsafe.Pointer{nil, p, q, r} {
		Default().Free(b)
	}
	Trim()
	if after := Default().Stats(); after.Blocks != before.Blocks || after.Mallocs != before.Mallocs+4 {
		t.Errorf("%+v, before %+v", after, before)
	}
}
