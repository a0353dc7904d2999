package heap_test

import (
	"slices"
	"strings"
	"testing"
	"unsafe"

	. "github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// TestEverySample samples every block, in each way to allocate one, of each size class and
// of large sizes. Every count must be exact, and so must those of the heap.
func TestEverySample(t *testing.T) {
	testheap.WithRate(t, 1)
	h := NewHeap(t, Options{Name: testheap.UniqueName(t)})
	l := h.NewLocal()
	ways := []struct {
		name string
		take func(size int) unsafe.Pointer
		free func(unsafe.Pointer)
	}{
		{"Malloc", h.Malloc, h.Free},
		{"TryMalloc", func(size int) unsafe.Pointer { p, _ := h.TryMalloc(size); return p }, h.Free},
		{"Calloc", func(size int) unsafe.Pointer { return h.Calloc(1, size) }, h.Free},
		{"AlignedMalloc", func(size int) unsafe.Pointer { return h.AlignedMalloc(size, 64) }, h.Free},
		{"Realloc", func(size int) unsafe.Pointer { return h.Realloc(nil, size) }, l.Free},
		{"Local.Malloc", l.Malloc, l.Free},
		{"Local.TryMalloc", func(size int) unsafe.Pointer { p, _ := l.TryMalloc(size); return p }, h.Free},
		{"Local.Calloc", func(size int) unsafe.Pointer { return l.Calloc(1, size) }, l.Free},
		{"Local.AlignedMalloc", func(size int) unsafe.Pointer { return l.AlignedMalloc(size, 64) }, h.Free},
		{"Local.Realloc", func(size int) unsafe.Pointer { return l.Realloc(nil, size) }, l.Free},
	}
	var sizes []int
	for _, c := range sizeclass.Classes {
		sizes = append(sizes, int(c.Size))
	}
	sizes = append(sizes, 40<<10, 1<<20, span.OwnMapping)
	want := 0.0
	for _, w := range ways {
		for _, size := range sizes {
			for round := range 2 { // the second gets what the first has freed
				p := w.take(size)
				want++
				if strings.HasSuffix(w.name, "Calloc") {
					if err := shadow.Zero(p, size); err != nil {
						t.Fatalf("%s(%d): %v", w.name, size, err)
					}
				}
				clear(unsafe.Slice((*byte)(p), min(size, 1<<20)))
				*(*byte)(p) = 1
				if round == 0 { // there are samples of other tests to go through
					if got := testheap.SampledIn(h.Name(), ""); got.Allocs != want || got.Frees != want-1 {
						t.Fatalf("%s(%d): %v allocated and %v freed, want %v and %v", w.name, size, got.Allocs, got.Frees, want, want-1)
					}
				}
				if s := h.Stats(); s.Blocks != 1 || s.Bytes != int64(h.UsableSize(p)) || s.Mallocs != int64(want) {
					t.Fatalf("%s(%d): %+v", w.name, size, s)
				}
				w.free(p)
			}
		}
	}
	got := testheap.SampledIn(h.Name(), "TestEverySample")
	lives := 0.0
	for _, n := range got.Lives {
		lives += n.Blocks
	}
	if got.Allocs != want || got.Frees != want || lives != want {
		t.Errorf("%v allocated, %v freed, %v lives, want %v of each", got.Allocs, got.Frees, lives, want)
	}
	l.Destroy()
	if s := h.Stats(); s.Blocks != 0 || s.Cached != 0 {
		t.Errorf("at the end: %+v", s)
	}
}

// TestSampledRealloc resizes blocks that are sampled: small ones that move and that stay, and
// large ones that grow and shrink in place and by moving their pages.
func TestSampledRealloc(t *testing.T) {
	testheap.WithRate(t, 1)
	h := NewHeap(t, Options{Name: testheap.UniqueName(t)})
	p := h.Malloc(100)
	for _, size := range []int{110, 60, 2000, 40 << 10, 90 << 10, 50 << 10, 1 << 20, span.OwnMapping, 2 * span.OwnMapping, span.OwnMapping + 5, 1 << 20, 10} {
		fillAll(p, min(size, h.UsableSize(p)))
		if p = h.Realloc(p, size); p == nil {
			t.Fatal("no memory")
		}
		mustBeFull(t, p, min(size, 10))
		live := 0.0
		for _, s := range sample.Sites() {
			if s.Heap == h.Name() && s.Allocs > s.Frees {
				live += s.Allocs - s.Frees
				if int(s.Size) != h.UsableSize(p) {
					t.Errorf("after Realloc to %d the sample has %d bytes, the block %d", size, s.Size, h.UsableSize(p))
				}
			}
		}
		if live != 1 {
			t.Errorf("after Realloc to %d there are %v live samples", size, live)
		}
	}
	h.Free(p)
	if got := testheap.SampledIn(h.Name(), ""); got.Allocs != got.Frees {
		t.Errorf("%v allocated, %v freed", got.Allocs, got.Frees)
	}
}

func fillAll(p unsafe.Pointer, n int) {
	for i := range unsafe.Slice((*byte)(p), n) {
		*(*byte)(unsafe.Add(p, i)) = 0xA5
	}
}

func mustBeFull(t *testing.T, p unsafe.Pointer, n int) {
	t.Helper()
	if i := slices.IndexFunc(unsafe.Slice((*byte)(p), n), func(b byte) bool { return b != 0xA5 }); i >= 0 {
		t.Fatalf("byte %d is lost", i)
	}
}

// TestReallocSamples resizes blocks that were not sampled, when the next one is to be: those that move, and those
// that would stay in their unit.
func TestReallocSamples(t *testing.T) {
	testheap.WithRate(t, 0)
	h, l := NewHeapAndLocal(t, Options{Name: testheap.UniqueName(t)})
	for name, realloc := range map[string]func(unsafe.Pointer, int) unsafe.Pointer{"Heap": h.Realloc, "Local": l.Realloc} {
		for from, to := range map[int]int{100: 500, 33_000: 50_000} {
			sample.SetRate(0)
			h.Free(h.Malloc(to)) // the caches have blocks of both sizes
			l.Free(l.Malloc(to))
			p := l.Malloc(from)
			l.Free(l.Malloc(from))
			fillAll(p, from)
			before := testheap.SampledIn(h.Name(), "").Allocs
			sample.SetRate(1)
			p = realloc(p, to)
			if n := testheap.SampledIn(h.Name(), "").Allocs - before; n != 1 {
				t.Errorf("%s: from %d to %d bytes: %v samples, want 1", name, from, to, n)
			}
			mustBeFull(t, p, from)
			h.Free(p)
		}
	}
}

// TestSampledMisuse frees sampled blocks wrongly.
func TestSampledMisuse(t *testing.T) {
	testheap.WithRate(t, 1)
	h := NewHeap(t, Options{Name: testheap.UniqueName(t)})
	other := NewHeap(t, Options{Name: testheap.UniqueName(t)})
	for _, size := range []int{16, 100, 5000, 40 << 10} {
		p := h.Malloc(size)
		next := h.Malloc(size)
		mustMisuse(t, func() { other.Free(p) })
		mustMisuse(t, func() { h.Free(unsafe.Add(p, 8)) })
		mustMisuse(t, func() { h.Free(unsafe.Add(p, 1)) })
		h.Free(p)
		mustMisuse(t, func() { h.Free(p) })
		h.Free(next)
		mustMisuse(t, func() { h.Free(next) })
	}
	if got := testheap.SampledIn(h.Name(), ""); got.Allocs != 8 || got.Frees != 8 {
		t.Errorf("%v allocated, %v freed, want 8", got.Allocs, got.Frees)
	}
}

func mustMisuse(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if _, ok := recover().(*MisuseError); !ok {
			t.Error("no MisuseError")
		}
	}()
	f()
}
