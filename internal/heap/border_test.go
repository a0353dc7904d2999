package heap_test

import (
	"testing"

	. "github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// TestSpanBorders asks about every address of a span, and of those before and
// behind it, for spans of several classes in which some blocks are live, some
// free, and some were never handed out.
func TestSpanBorders(t *testing.T) {
	for _, size := range []int{16, 48, 112, 640, 1152, 3072, 10_240, 28_672, 32_768} {
		h := NewHeap(t, Options{})
		class := &sizeclass.Classes[sizeclass.Of(size)]
		live := map[uintptr]bool{}
		for i := range max(2, int(class.Blocks)*2/3) {
			p := h.Malloc(size)
			if i%3 == 1 {
				h.Free(p)
				delete(live, uintptr(p))
				continue
			}
			live[uintptr(p)] = true
		}
		var base uintptr
		for p := range live {
			base = p &^ (span.UnitSize - 1)
			break
		}
		checkOwns(t, h, live, base-16, base+span.UnitSize+16, 1)

		// Freeing costs a panic each time, so only where blocks and borders are.
		near := func(addr uintptr) { mustOnlyFreeLive(t, h, live, addr-17, addr+18) }
		near(base)
		near(base + uintptr(class.Size))
		near(base + uintptr(class.Size)*uintptr(class.Blocks-1))
		near(base + uintptr(class.Size)*uintptr(class.Blocks))
		near(base + span.UnitSize)
		for p := range live {
			h.Free(osmem.Pointer(p))
		}
	}
}

// checkOwns compares Owns with what is known for the addresses from start to
// end.
func checkOwns(t *testing.T, h *Heap, live map[uintptr]bool, start, end, step uintptr) {
	t.Helper()
	for addr := start; addr < end; addr += step {
		if got := h.Owns(osmem.Pointer(addr)); got != live[addr] {
			t.Fatalf("Owns(%#x) = %v", addr, got)
		}
	}
}

// mustOnlyFreeLive frees every address from start to end that is not live.
func mustOnlyFreeLive(t *testing.T, h *Heap, live map[uintptr]bool, start, end uintptr) {
	t.Helper()
	for addr := start; addr < end; addr++ {
		if live[addr] || addr == 0 {
			continue
		}
		e, ok := testcall.Catch(func() { h.Free(osmem.Pointer(addr)) }).(*MisuseError)
		if !ok || e.Addr != addr {
			t.Fatalf("Free(%#x): %v", addr, e)
		}
	}
}

// TestLargeBorders asks about the addresses around large blocks and the borders
// of the units and regions that they reach over.
func TestLargeBorders(t *testing.T) {
	h := NewHeap(t, Options{})
	for _, size := range []int{32_769, span.UnitSize, span.UnitSize + 1, 5 * span.UnitSize, span.OwnMapping, span.RegionSize, 2*span.RegionSize + 1} {
		p := h.Malloc(size)
		start := uintptr(p)
		live := map[uintptr]bool{start: true}
		at := func(off uintptr) {
			t.Helper()
			checkOwns(t, h, live, start+off-64, start+off+64, 1)
			mustOnlyFreeLive(t, h, live, start+off-16, start+off+17)
		}
		at(0)
		at(uintptr(size))
		at(uintptr(h.UsableSize(p)))
		for off := uintptr(span.UnitSize); off < uintptr(size)+span.UnitSize; off *= 2 {
			at(off)
		}
		at((start+span.RegionSize)&^(span.RegionSize-1) - start)
		h.Free(p)
		delete(live, start)
		at(0)
		MustAccuse(t, "Heap.Free", start, func() { h.Free(p) })
	}
}

// TestSmallNumbersOnAnyStack frees numbers that the runtime takes for damaged
// pointers where it finds them on a stack that it moves. The stack must not
// grow while they are on it, however much of it is left.
func TestSmallNumbersOnAnyStack(t *testing.T) {
	h, l := NewHeapAndLocal(t, Options{})
	for depth := range 200 {
		testcall.Aside(func() {
			for op, f := range testheap.Accusers(h, l) {
				if v := testcall.Catch(func() { testheap.Deep(depth, func() { f(osmem.Pointer(8)) }) }); v == nil {
					t.Errorf("%s(8) does not panic", op)
				}
			}
		})
	}
}
