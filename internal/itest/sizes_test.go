package itest

import (
	"math"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// anySize draws sizes up to what can be rounded: small ones, borders of classes
// and of pages, and those that no machine has.
var anySize = rapid.OneOf(
	rapid.IntRange(0, 3*sizeclass.MaxSize),
	rapid.Map(rapid.IntRange(0, sizeclass.Count-1), func(c int) int { return int(sizeclass.Classes[c].Size) }),
	rapid.Map(rapid.IntRange(0, sizeclass.Count-1), func(c int) int { return int(sizeclass.Classes[c].Size) + 1 }),
	rapid.IntRange(0, math.MaxInt-span.RegionSize),
)

// TestRoundUpModel compares what sizes are rounded to with what is promised.
func TestRoundUpModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := anySize.Draw(t, "size")
		got := cheap.RoundUp(size)
		waste := got - size
		if waste < 0 || got == 0 || got%sizeclass.Quantum != 0 {
			t.Fatalf("RoundUp(%d) = %d", size, got)
		}
		switch page := int(osmem.PageSize); {
		case size > sizeclass.MaxSize:
			if waste >= page || got%page != 0 {
				t.Fatalf("RoundUp(%d) = %d, with pages of %d", size, got, page)
			}
		case size > 128 && waste > size/8:
			t.Fatalf("RoundUp(%d) = %d wastes more than an eighth", size, got)
		case size > 0 && waste >= max(sizeclass.Quantum, size/8+1):
			t.Fatalf("RoundUp(%d) = %d wastes a quantum", size, got)
		}
		if again := cheap.RoundUp(got); again != got {
			t.Fatalf("RoundUp(%d) = %d, and of that %d", size, got, again)
		}
		other := anySize.Draw(t, "another size")
		if less, more := min(size, other), max(size, other); cheap.RoundUp(less) > cheap.RoundUp(more) {
			t.Fatalf("RoundUp(%d) = %d, but RoundUp(%d) = %d", less, cheap.RoundUp(less), more, cheap.RoundUp(more))
		}
	})
}

// TestUsableSizeModel compares what sizes are rounded to with what blocks of
// them have, however they are asked for.
func TestUsableSizeModel(t *testing.T) {
	h := newHeap(t)
	l := h.NewLocal()
	defer l.Close()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(sizes, rapid.IntRange(0, 3*sizeclass.MaxSize)).Draw(t, "size")
		for i, p := range []unsafe.Pointer{
			h.Malloc(size), h.Calloc(1, size), h.AlignedMalloc(size, 16), h.Realloc(nil, size),
			l.Malloc(size), l.Calloc(size, 1), l.AlignedMalloc(size, 1), l.Realloc(nil, size),
		} {
			if got, want := h.UsableSize(p), cheap.RoundUp(size); got != want {
				t.Fatalf("block %d of %d bytes has %d, RoundUp says %d", i, size, got, want)
			}
			h.FreeSized(p, size)
		}
	})
}
