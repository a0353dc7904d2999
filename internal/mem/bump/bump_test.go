package bump

import (
	"math"
	"math/rand/v2"
	"testing"
)

// place is the reference: it tries each address from the top.
func place(c Chunk, size, align int) (addr uintptr, ok bool) {
	for left := c.Left - size; left >= 0; left-- {
		if p := c.Base + uintptr(left); p%uintptr(align) == 0 {
			return p, true
		}
	}
	return 0, false
}

// TestCut cuts blocks of random sizes and alignments off chunks at random addresses,
// until one does not fit. Each begins at the highest address that there is for it,
// and the rest ends there.
func TestCut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		c := Chunk{uintptr(r.Uint32()) &^ (Align - 1), r.IntN(3000)}
		for ok := true; ok; {
			was, size, align := c, r.IntN(300)+1, Align<<r.IntN(5)
			cut := func() (uintptr, bool) { return c.CutAligned(size, align) }
			if r.IntN(2) == 0 {
				align = Align
				cut = func() (uintptr, bool) { return c.Cut(size) }
			}
			want, fits := place(was, size, align)
			var p uintptr
			if p, ok = cut(); p != want || ok != fits {
				t.Fatalf("%d bytes aligned to %d of %+v: %#x, %v; want %#x, %v", size, align, was, p, ok, want, fits)
			}
			if rest := uintptr(c.Left); c.Base != was.Base || ok && c.Base+rest != p || !ok && c != was {
				t.Fatalf("%d bytes aligned to %d of %+v leave %+v", size, align, was, c)
			}
		}
	}
}

// TestCutRefuses asks for sizes and alignments that nothing has room for, some of
// which wrap around.
func TestCutRefuses(t *testing.T) {
	for _, c := range []Chunk{{}, {1 << 20, 0}, {1 << 20, 100}, {math.MaxUint - 1<<12 + 1, 1 << 12}} {
		was := c
		for _, size := range []int{0, -1, math.MinInt, math.MaxInt, math.MaxInt - 15, 1<<12 + 1} {
			if p, ok := c.Cut(size); ok || p != 0 || c != was {
				t.Errorf("%+v: Cut(%d) = %#x, %v", was, size, p, ok)
			}
			for _, align := range []int{Align, 1 << 12, math.MaxInt/2 + 1} {
				if size < 1 {
					continue
				}
				if p, ok := c.CutAligned(size, align); ok || p != 0 || c != was {
					t.Errorf("%+v: CutAligned(%d, %d) = %#x, %v", was, size, align, p, ok)
				}
			}
		}
	}
	var zero Chunk
	if p, ok := zero.CutAligned(1, Align); ok {
		t.Errorf("a block at %#x of nothing", p)
	}
}
