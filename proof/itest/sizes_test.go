package itest

import (
	"errors"
	"math"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/own"
)

// anySize draws sizes up to what can be rounded: small ones, borders of classes
// and of pages, and those that no machine has.
var anySize = rapid.OneOf(
	rapid.IntRange(0, 3*sizeclass.MaxSize),
	rapid.Map(rapid.IntRange(0, sizeclass.Count-1), func(c int) int { return int(sizeclass.Classes[c].Size) }),
	rapid.Map(rapid.IntRange(0, sizeclass.Count-1), func(c int) int { return int(sizeclass.Classes[c].Size) + 1 }),
	rapid.IntRange(0, math.MaxInt-span.RegionSize),
)

// TestGoodSizeModel compares what sizes are rounded to with what is promised.
func TestGoodSizeModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := anySize.Draw(t, "size")
		got := cheap.GoodSize(size)
		waste := got - size
		if waste < 0 || got == 0 || got%sizeclass.Quantum != 0 {
			t.Fatalf("GoodSize(%d) = %d", size, got)
		}
		switch page := int(osmem.PageSize); {
		case size > sizeclass.MaxSize:
			if waste >= page || got%page != 0 {
				t.Fatalf("GoodSize(%d) = %d, with pages of %d", size, got, page)
			}
		case size > 128 && waste > size/8:
			t.Fatalf("GoodSize(%d) = %d wastes more than an eighth", size, got)
		case size > 0 && waste >= max(sizeclass.Quantum, size/8+1):
			t.Fatalf("GoodSize(%d) = %d wastes a quantum", size, got)
		}
		if again := cheap.GoodSize(got); again != got {
			t.Fatalf("GoodSize(%d) = %d, and of that %d", size, got, again)
		}
		other := anySize.Draw(t, "another size")
		if less, more := min(size, other), max(size, other); cheap.GoodSize(less) > cheap.GoodSize(more) {
			t.Fatalf("GoodSize(%d) = %d, but GoodSize(%d) = %d", less, cheap.GoodSize(less), more, cheap.GoodSize(more))
		}
	})
}

// TestMemoryOfHugeSize asks a Memory, whose heap has a limit, for sizes near the
// largest. They are refused, and change nothing.
func TestMemoryOfHugeSize(t *testing.T) {
	const limit = 16 << 20
	h, err := cheap.NewHeap(cheap.HeapOptions{Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	m := own.NewMemory(h, own.MemoryOptions{})
	g, err := m.NewGroup()
	if err != nil {
		t.Fatal(err)
	}
	for _, top := range []uint64{math.MaxInt, math.MaxInt - 4*span.RegionSize, math.MaxInt / 2, 1 << 48, 1 << 47, 1 << 40, 1 << 31} {
		if top > math.MaxInt {
			continue // on 32-bit systems
		}
		for d := range uint64(20) {
			for _, size := range []uint64{top - d, top - d*4096, min(top+d, math.MaxInt)} {
				b, err := m.NewBytes(int(size))
				if b != nil || !errors.Is(err, cheap.ErrLimit) && !errors.Is(err, cheap.ErrNoMemory) {
					t.Errorf("Bytes(%#x) = %v, %v", size, b, err)
				}
				p, err := g.TryMalloc(int(size))
				if p != nil || !errors.Is(err, cheap.ErrLimit) && !errors.Is(err, cheap.ErrNoMemory) {
					t.Errorf("Group.TryMalloc(%#x) = %v, %v", size, p, err)
				}
				if now := h.Stats().Held; now < 0 || now > limit {
					t.Fatalf("%d bytes held after %#x", now, size)
				}
			}
		}
	}
	g.Close()
	if err := errors.Join(m.CloseWait(t.Context()), h.Destroy()); err != nil {
		t.Error(err)
	}
}

// TestUsableSizeModel compares what sizes are rounded to with what blocks of
// them have, however they are asked for.
func TestUsableSizeModel(t *testing.T) {
	h := newHeap(t)
	l := h.NewLocal()
	defer l.Destroy()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(sizes, rapid.IntRange(0, 3*sizeclass.MaxSize)).Draw(t, "size")
		for i, p := range []unsafe.Pointer{
			h.Malloc(size), h.Calloc(1, size), h.AlignedMalloc(size, 16), h.Realloc(nil, size),
			l.Malloc(size), l.Calloc(size, 1), l.AlignedMalloc(size, 1), l.Realloc(nil, size),
		} {
			if got, want := h.UsableSize(p), cheap.GoodSize(size); got != want {
				t.Fatalf("block %d of %d bytes has %d, GoodSize says %d", i, size, got, want)
			}
			h.Free(p)
		}
	})
}
