package heap

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/watch/guard"
)

// borderSizes returns sizes of blocks that end at the borders of memory or close to them: with
// the header and the border of a heap with a CheckLevel, and without.
func borderSizes() (sizes []int) {
	page, own := int(osmem.PageSize), span.OwnMapping
	const more = headerBytes + borderBehind
	for _, border := range []int{page, span.UnitSize, own, span.RegionSize} {
		sizes = append(sizes, border-more, border-more+1, border-page/2-100, border-1, border, border+1)
	}
	return append(sizes, own+page-6) // the end of the last page is not the end of the block
}

// neighbours are blocks of a heap on both sides of what another heap allocates between them.
type neighbours struct {
	h      *Heap
	blocks []unsafe.Pointer
	size   int
}

// add allocates another block. Mappings have no unused addresses behind their end.
func (n *neighbours) add(t *testing.T) {
	p := n.h.Malloc(n.size)
	if p == nil {
		t.Fatalf("no memory for a neighbour of %d bytes", n.size)
	}
	shadow.Fill(p, n.size, uint64(len(n.blocks)))
	n.blocks = append(n.blocks, p)
}

// check compares the contents of all.
func (n *neighbours) check(t *testing.T, what string) {
	t.Helper()
	for i, p := range n.blocks {
		if err := shadow.Check(p, n.size, uint64(i)); err != nil {
			t.Fatalf("%s: a block of another heap: %v", what, err)
		}
	}
}

// beside returns how many sides of the block at p have a neighbour in the next unit, or, for a
// mapping, in the next region.
func (n *neighbours) beside(p unsafe.Pointer, size int) (sides int) {
	space := uintptr(span.UnitSize)
	if n.size >= span.OwnMapping {
		space = span.RegionSize
	}
	start := uintptr(p) &^ (space - 1)
	end := (uintptr(p) + uintptr(size) + space - 1) &^ (space - 1)
	for _, q := range n.blocks {
		if q := uintptr(q); q == end || q+uintptr(n.size) == start {
			sides++
		}
	}
	return sides
}

// TestNeighbours allocates blocks whose ends are at borders of pages, units, mappings and
// regions, with each CheckLevel and with samples and guards, between blocks of another heap. A
// block is zeroed or keeps its contents, Free finds nothing wrong, and no other block changes.
func TestNeighbours(t *testing.T) {
	sides := 0
	for level := CheckNone; level <= CheckStacks; level++ {
		for _, rates := range [][2]int64{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
			t.Run(fmt.Sprintf("check=%d/sample=%d/guard=%d", level, rates[0], rates[1]), func(t *testing.T) {
				testheap.WithRate(t, rates[0])
				old := guard.SetRate(rates[1])
				t.Cleanup(func() { guard.SetRate(old) })
				for _, size := range borderSizes() {
					if testheap.Scarce && size > span.OwnMapping {
						continue // each neighbour would be memory
					}
					if size > 1<<16 && rates[1] != 0 {
						continue // no guards there
					}
					sides += betweenNeighbours(t, level, size)
				}
			})
		}
	}
	if sides == 0 && !osmem.GoBacked {
		t.Error("no block had a neighbour")
	}
}

// betweenNeighbours is TestNeighbours for blocks of one size. It returns how many sides of them
// had a neighbour.
func betweenNeighbours(t *testing.T, level CheckLevel, size int) (sides int) {
	n := &neighbours{h: NewHeap(t, Options{}), size: span.UnitSize}
	defer func() {
		for _, p := range n.blocks {
			n.h.Free(p)
		}
	}()
	if size >= span.OwnMapping-span.UnitSize {
		n.size = span.RegionSize
	}
	h := NewHeap(t, Options{Check: level, Quarantine: 1})
	begin := func(op string, p unsafe.Pointer) unsafe.Pointer {
		t.Helper()
		if p == nil {
			t.Fatalf("%s of %d bytes: no memory", op, size)
		}
		n.add(t)
		sides += n.beside(p, size)
		return p
	}
	end := func(op string, p unsafe.Pointer) {
		t.Helper()
		n.check(t, fmt.Sprint(op, " of ", size, " bytes"))
		shadow.Fill(p, size, 99)
		n.check(t, fmt.Sprint("writing to ", size, " bytes of ", op))
		h.Free(p)
		n.check(t, fmt.Sprint("Free of ", size, " bytes of ", op))
	}

	// What is large is slow: its pages are new each time, and are filled and copied.
	rounds, aligns, olds := 2, []int{16, 256, int(osmem.PageSize), 1 << 20}, []int{size - size/8, size + size/8}
	if size > 1<<20 {
		rounds, aligns, olds = 1, []int{int(osmem.PageSize)}, []int{100}
	}
	n.add(t)
	for range rounds { // the second one has memory that was written to
		p := begin("Calloc", h.Calloc(1, size))
		if err := shadow.Zero(p, size); err != nil {
			t.Fatalf("Calloc of %d bytes: %v", size, err)
		}
		end("Calloc", p)
	}
	for _, align := range aligns {
		p := begin("AlignedMalloc", h.AlignedMalloc(size, align))
		if uintptr(p)%uintptr(align) != 0 {
			t.Fatalf("AlignedMalloc of %d bytes at a multiple of %d: %p", size, align, p)
		}
		end("AlignedMalloc", p)
	}
	for _, from := range olds {
		kept := min(from, size, shadow.Whole)
		old := h.Malloc(from)
		shadow.Fill(old, kept, 7)
		p := begin("Realloc", h.Realloc(old, size))
		if err := shadow.Check(p, kept, 7); err != nil {
			t.Fatalf("Realloc from %d to %d bytes: %v", from, size, err)
		}
		end("Realloc", p)
	}
	return sides
}
