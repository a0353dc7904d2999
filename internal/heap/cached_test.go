package heap

import (
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// A resizer is what the tests of this file use of a Heap and of a Local.
type resizer interface {
	Allocator
	Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer
	TryRealloc(ptr unsafe.Pointer, size int) (unsafe.Pointer, error)
	Calloc(count, size int) unsafe.Pointer
	TryCalloc(count, size int) (unsafe.Pointer, error)
}

// onCaches calls f with a heap, and with a Local of it, whose caches serve: a block of
// each class was freed. No other P takes part.
func onCaches(t *testing.T, f func(t *testing.T, h *Heap, a resizer)) {
	for _, name := range []string{"Heap", "Local"} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			h := NewHeap(t, Options{})
			l := h.NewLocal()
			var a resizer = h
			if name == "Local" {
				a = l
			}
			for range 2 { // a first Free of a P makes its cache
				for _, c := range sizeclass.Classes {
					a.Free(a.Malloc(int(c.Size)))
				}
			}
			f(t, h, a)
			l.Destroy()
			MustHoldNothing(t, h)
		})
	}
}

// firstBytes returns the first n bytes of a block.
func firstBytes(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// TestReallocBetweenClasses resizes a block from each class to each other: the contents
// are kept, the counts are exact, and a block stays where it fits.
func TestReallocBetweenClasses(t *testing.T) {
	onCaches(t, func(t *testing.T, h *Heap, a resizer) {
		for from := range sizeclass.Classes {
			for to := range sizeclass.Classes {
				old, size := int(sizeclass.Classes[from].Size), int(sizeclass.Classes[to].Size)-1
				r := a.Malloc(size)
				for i := range firstBytes(r, size) {
					firstBytes(r, size)[i] = 0xee
				}
				a.Free(r)
				before := h.Stats()
				p := a.Malloc(old)
				b := firstBytes(p, old)
				for i := range b {
					b[i] = byte(i*7 + from)
				}
				want := slices.Clone(b[:min(old, size)])
				q := a.Realloc(p, size)
				if !slices.Equal(firstBytes(q, len(want)), want) {
					t.Fatalf("from %d to %d bytes: the contents are not kept", old, size)
				}
				if tail := min(max(old, sizeclass.Quantum), size); q == r && slices.ContainsFunc(firstBytes(q, size)[tail:], func(b byte) bool { return b != 0xee }) {
					t.Fatalf("from %d to %d bytes: more was copied than the old block has", old, size)
				}
				stays := size <= old && size+1 > old/2 || isAlone(uintptr(from)) && isAlone(uintptr(to)) // the unit is its own
				if (p == q) != stays {
					t.Fatalf("from %d to %d bytes: moved is %v, want %v", old, size, p != q, !stays)
				}
				a.Free(q)
				blocks := int64(1)
				if !stays {
					blocks++
				}
				after := h.Stats()
				if n := after.Mallocs - before.Mallocs; n != blocks || after.Frees-before.Frees != blocks || after.Blocks != before.Blocks || after.Bytes != before.Bytes {
					t.Fatalf("from %d to %d bytes: %+v, then %+v, want %d blocks handed out and freed", old, size, before, after, blocks)
				}
			}
		}
	})
}

// TestReallocFullList resizes blocks where the list of the old size has no room, and
// where that of the new size has no block.
func TestReallocFullList(t *testing.T) {
	onCaches(t, func(t *testing.T, h *Heap, a resizer) {
		const n, old, size = 300, 64, 512
		var blocks []unsafe.Pointer
		for i := range n {
			p := a.Malloc(old)
			*(*int)(p) = i
			blocks = append(blocks, p)
		}
		for i, p := range blocks {
			q, err := a.TryRealloc(p, size)
			if err != nil || *(*int)(q) != i {
				t.Fatalf("block %d: %v", i, err)
			}
			blocks[i] = q
		}
		if s := h.Stats(); s.Blocks != n || s.Bytes != n*size {
			t.Errorf("%+v, want %d blocks of %d bytes", s, n, size)
		}
		testheap.FreeAll(a, blocks)
	})
}

// TestReallocWrong passes what is no live block to Realloc while the cache serves.
func TestReallocWrong(t *testing.T) {
	onCaches(t, func(t *testing.T, h *Heap, a resizer) {
		other := NewHeap(t, Options{})
		defer other.DestroyAll()
		freed, live, foreign := a.Malloc(64), a.Malloc(64), other.Malloc(64)
		a.Free(freed)
		for name, p := range map[string]unsafe.Pointer{
			"free already":    freed,
			"is inside":       unsafe.Add(live, 16),
			"another heap":    foreign,
			"not handed out":  osmem.Pointer(h.mustOwn("", uintptr(live)).Base + 60_000&^63),
			"is not from a h": unsafe.Pointer(&global),
		} {
			for _, size := range []int{10, 64, 512} { // smaller, in place, larger
				before := h.Stats()
				e, ok := testcall.Catch(func() { a.Realloc(p, size) }).(*MisuseError)
				if !ok || !strings.Contains(e.Reason, name) {
					t.Errorf("Realloc to %d bytes of what %s: %v", size, name, e)
				}
				if after := h.Stats(); after.Blocks != before.Blocks || after.Mallocs-after.Frees != after.Blocks {
					t.Errorf("Realloc to %d bytes of what %s: %+v, then %+v", size, name, before, after)
				}
			}
		}
		a.Free(live)
	})
}

// TestCallocOverflow passes sizes whose product wraps around to that of a small block.
func TestCallocOverflow(t *testing.T) {
	const half = 1 << (bits.UintSize / 2)
	onCaches(t, func(t *testing.T, h *Heap, a resizer) {
		for _, size := range []int{half, half + 1, half * 3} {
			a.Free(a.Malloc(1)) // the cache has a block
			if p := a.Calloc(half, size); p != nil {
				t.Errorf("Calloc(%d, %d) = %p", half, size, p)
			}
			if p, err := a.TryCalloc(size, half); p != nil || err == nil {
				t.Errorf("TryCalloc(%d, %d) = %p, %v", size, half, p, err)
			}
		}
		for _, args := range [][2]int{{-1, 16}, {16, -1}, {-1, -16}, {0, -1}} {
			if e, ok := testcall.Catch(func() { a.Calloc(args[0], args[1]) }).(*MisuseError); !ok {
				t.Errorf("Calloc(%d, %d): %v", args[0], args[1], e)
			}
		}
	})
}

// TestReallocWithinPages resizes a large block to sizes of as many pages: no lock is taken, and the
// block stays. An address inside of it is a mistake all the same.
func TestReallocWithinPages(t *testing.T) {
	onCaches(t, func(t *testing.T, h *Heap, a resizer) {
		page := int(osmem.PageSize)
		p := a.Malloc(8 * sizeclass.MaxSize)
		pages := h.UsableSize(p)
		h.large.mu.Lock()
		h.seize.Lock()
		for _, size := range []int{pages, pages - 1, pages - page + 1} {
			if q := a.Realloc(p, size); q != p {
				t.Errorf("%d of %d bytes: the block at %p is at %p", size, pages, p, q)
			}
		}
		h.seize.Unlock()
		h.large.mu.Unlock()
		op := "Heap.Realloc"
		if _, is := a.(*Local); is {
			op = "Local.Realloc"
		}
		for _, inner := range []int{sizeclass.Quantum, page, span.UnitSize} {
			at := unsafe.Add(p, inner)
			MustAccuse(t, op, uintptr(at), func() { a.Realloc(at, pages) }, "inside the block")
		}
		for _, size := range []int{pages - page, pages + 1} {
			if p = a.Realloc(p, size); h.UsableSize(p) == pages {
				t.Errorf("with %d bytes the block has %d", size, pages)
			}
			p = a.Realloc(p, pages)
		}
		a.Free(p)
	})
}
