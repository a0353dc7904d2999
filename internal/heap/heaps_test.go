package heap_test

import (
	"slices"
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

// TestThousandHeaps has as many heaps at once, each with blocks of all kinds.
func TestThousandHeaps(t *testing.T) {
	const n = 1000
	type one struct {
		h      *Heap
		blocks []testheap.Handed
	}
	for range 2 { // the second thousand use the memory of the first
		var heaps []one
		for i := range n {
			h, err := New(Options{})
			testcall.Must(t, err)
			o := one{h: h}
			for j, size := range []int{16, 600, 40_000} {
				if size < sizeclass.MaxSize || i%10 == 0 {
					o.blocks = append(o.blocks, testheap.Wrap(h, size, uint64(i*10+j)))
				}
			}
			heaps = append(heaps, o)
		}
		for i, o := range heaps {
			other := heaps[(i+1)%n]
			for _, b := range o.blocks {
				if i%50 == 0 {
					MustAccuse(t, "Heap.Free", uintptr(b.P), func() { other.h.Free(b.P) }, "belongs to another heap")
				}
				if other.h.Owns(b.P) || !o.h.Owns(b.P) {
					t.Fatalf("heap %d: Owns is wrong", i)
				}
			}
			if s := o.h.Stats(); s.Blocks != int64(len(o.blocks)) {
				t.Fatalf("heap %d: %+v", i, s)
			}
		}
		for i, o := range heaps {
			if i%2 == 0 {
				for _, b := range o.blocks {
					b.Unwrap(t, o.h)
				}
				testcall.Must(t, o.h.Destroy())
				continue
			}
			for _, b := range o.blocks {
				testcall.Must(t, shadow.Check(b.P, b.Size, b.Seed))
			}
			testcall.Must(t, o.h.DestroyAll())
		}
	}
}

// TestDestroyWithMappings destroys a heap that has blocks with mappings of their own. The
// system has the memory back, and another heap may use the addresses.
func TestDestroyWithMappings(t *testing.T) {
	sizes := []int{span.OwnMapping, span.OwnMapping + 1, 2*span.OwnMapping + 12_345, span.RegionSize, span.RegionSize + 1}
	if testheap.Scarce {
		sizes = sizes[:2]
	}
	space := int64(0)
	for _, size := range sizes {
		space += int64(size+span.RegionSize-1) &^ (span.RegionSize - 1)
	}
	other := NewHeap(t, Options{})
	for range 2 {
		h, err := New(Options{})
		testcall.Must(t, err)
		var blocks []unsafe.Pointer
		for _, size := range append(sizes, 100, 50_000) {
			p := h.Malloc(size)
			markEnds(p, size, 1)
			blocks = append(blocks, p)
		}
		if e, ok := h.Destroy().(*LiveError); !ok || e.Blocks != int64(len(blocks)) {
			t.Fatalf("Destroy with %d blocks: %v", len(blocks), e)
		}
		for i, size := range sizes {
			if !hasEnds(blocks[i], size, 1) {
				t.Error("a block has changed")
			}
		}
		before := osmem.ReadCounts().Reserved
		testcall.Must(t, h.DestroyAll())
		// The addresses say nothing: Go, or the stack of a thread, may be there by now.
		if n := before - osmem.ReadCounts().Reserved; n < space {
			t.Errorf("%d bytes of address space were released, want %d", n, space)
		}
		for _, p := range blocks {
			MustAccuse(t, "Heap.Free", uintptr(p), func() { other.Free(p) }, "given back")
		}
		b := testheap.Wrap(other, sizes[len(sizes)-1], 5)
		b.Unwrap(t, other)
	}
	MustHoldNothing(t, other)
}

func TestHeapsAreListed(t *testing.T) {
	h, err := New(Options{Name: "listed"})
	testcall.Must(t, err)
	h.Malloc(100)
	if !slices.Contains(Heaps(), h) || !slices.Contains(Heaps(), Default()) {
		t.Error("Heaps lacks a heap")
	}
	if h.Name() != "listed" || Default().Name() != "cheap.Heap" {
		t.Errorf("the names are %q and %q", h.Name(), Default().Name())
	}
	if s := h.Stats(); s.Blocks != 1 {
		t.Errorf("Stats returns %+v, want 1 block", s)
	}
	testcall.Must(t, h.DestroyAll())
	if slices.Contains(Heaps(), h) {
		t.Error("Heaps has a heap that is destroyed")
	}
	if s := h.Stats(); s != (Stats{}) {
		t.Errorf("Stats of a heap that is destroyed returns %+v", s)
	}
	if h.Name() != "listed" {
		t.Error("a destroyed heap has no name")
	}
}
