package cheap

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/shadow"
	"github.com/cheapgo/cheap/internal/span"
	"github.com/cheapgo/cheap/internal/testcall"
)

// sparse has blocks of one size in a heap of which most were freed at random.
type sparse struct {
	h    *Heap
	size int
	rng  *rand.Rand
	live []unsafe.Pointer
	free []unsafe.Pointer
}

// newSparse allocates bytes bytes in blocks of size, and frees all but one in 50.
func newSparse(t *testing.T, h *Heap, size, bytes int) *sparse {
	w := &sparse{h: h, size: size, rng: rand.New(rand.NewPCG(1, uint64(size)))}
	for range bytes / size {
		p := h.Malloc(size)
		if p == nil {
			t.Fatal("no memory")
		}
		shadow.Fill(p, size, uint64(uintptr(p)))
		if w.rng.IntN(50) == 0 {
			w.live = append(w.live, p)
		} else {
			w.free = append(w.free, p)
		}
	}
	for _, p := range w.free {
		h.Free(p)
	}
	return w
}

// check looks whether the live blocks are as they were.
func (w *sparse) check(t *testing.T) {
	t.Helper()
	for _, p := range w.live {
		if err := shadow.Check(p, w.size, uint64(uintptr(p))); err != nil {
			t.Fatalf("%d bytes: the block at %p: %v", w.size, p, err)
		}
		if !w.h.Owns(p) || w.h.UsableSize(p) < w.size {
			t.Fatalf("%d bytes: the block at %p is not live", w.size, p)
		}
	}
}

// dropped returns how many blocks of free lie in pages that were given back.
func (w *sparse) dropped() (in []unsafe.Pointer) {
	for _, p := range w.free {
		if s := span.Find(uintptr(p)); s.LoadTag()>>span.KindBits == w.h.id && isDropped(s, uintptr(p)) {
			in = append(in, p)
		}
	}
	return in
}

var hollowSizes = []int{16, 48, 100, 256, 320, 1024, 1400, 2000, 3000, 4096, 5000, 7000}

// TestHollowSpans frees most blocks of a size at random, and has their pages given back. What Free, Owns,
// UsableSize, Realloc and Stats say of free and of live blocks is the same as before.
func TestHollowSpans(t *testing.T) {
	withRate(t, 0)
	for _, size := range hollowSizes {
		h := newHeap(t, HeapOptions{})
		if !h.mayHollow() {
			return
		}
		w := newSparse(t, h, size, 4<<20)
		h.reclaim()
		before := h.Stats()
		h.Trim()
		after := h.Stats()
		in := w.dropped()
		// Of the pages of 4 KiB with blocks of 256 bytes or more, 0.98^16 have none in use.
		if size >= 256 && (after.Held > before.Held*3/4) {
			t.Errorf("%d bytes: %d of %d free blocks are in pages that were given back; held %d, before %d", size, len(in), len(w.free), after.Held, before.Held)
		}
		if after.Blocks != int64(len(w.live)) || after.Blocks != before.Blocks || after.Bytes != before.Bytes || after.Mallocs != before.Mallocs {
			t.Errorf("%d bytes: %+v, before %+v", size, after, before)
		}
		w.check(t)
		for i := range min(len(in), 200) {
			p := in[i]
			if h.Owns(p) {
				t.Errorf("%d bytes: %p is owned", size, p)
			}
			mustAccuse(t, "Heap.Free", uintptr(p), func() { h.Free(p) }, "free already")
			mustAccuse(t, "Heap.Realloc", uintptr(p), func() { h.Realloc(p, 2*size) }, "free already")
		}
		l := h.NewLocal()
		if len(in) > 0 {
			mustAccuse(t, "Local.Free", uintptr(in[0]), func() { l.Free(in[0]) }, "free already")
			mustAccuse(t, "Heap.UsableSize", uintptr(in[0]), func() { h.UsableSize(in[0]) }, "free already")
		}
		// Some live blocks move, and are freed twice, in hollow spans.
		for i := range len(w.live) / 4 {
			p := w.live[i]
			if w.live[i] = h.Realloc(p, 2*size); w.live[i] == p {
				t.Fatalf("%d bytes: a block of twice the size at %p", size, p)
			}
			mustAccuse(t, "Heap.Free", uintptr(p), func() { h.Free(p) }, "free already")
		}
		for i := range len(w.live) / 4 {
			h.Free(w.live[i])
		}
		w.live = w.live[len(w.live)/4:]
		// The pages are used again.
		used := map[unsafe.Pointer]bool{}
		for _, p := range w.live {
			used[p] = true
		}
		var again []unsafe.Pointer
		for i := range 4 << 20 / size {
			p := h.Malloc(size)
			if i%2 != 0 {
				h.Free(p)
				p = h.Calloc(1, size)
				if err := shadow.Zero(p, size); err != nil {
					t.Fatalf("%d bytes: Calloc: %v", size, err)
				}
			}
			if used[p] {
				t.Fatalf("%d bytes: %p is live", size, p)
			}
			used[p] = true
			shadow.Fill(p, size, uint64(uintptr(p)))
			again = append(again, p)
			if i%5000 == 0 {
				h.Trim()
			}
		}
		for _, p := range again {
			if err := shadow.Check(p, size, uint64(uintptr(p))); err != nil {
				t.Fatalf("%d bytes: %p: %v", size, p, err)
			}
			h.Free(p)
		}
		w.check(t)
		h.Trim()
		w.check(t)
		w.rng.Shuffle(len(w.live), func(i, j int) { w.live[i], w.live[j] = w.live[j], w.live[i] })
		for i, p := range w.live {
			if i%2 == 0 {
				h.Free(p)
			} else {
				l.Free(p)
			}
		}
		if err := l.Destroy(); err != nil {
			t.Error(err)
		}
		mustHoldNothing(t, h)
	}
}

// TestHollowWritten writes to a free block in a page that was given back. It is found when the page is
// used again, and when the span goes back.
func TestHollowWritten(t *testing.T) {
	withRate(t, 0)
	for _, size := range []int{48, 256, 1400} {
		for _, back := range []bool{false, true} {
			h := newHeap(t, HeapOptions{})
			if !h.mayHollow() {
				return
			}
			w := newSparse(t, h, size, 1<<20)
			h.Trim()
			in := w.dropped()
			if len(in) == 0 {
				continue // no page had no block in use
			}
			p := in[len(in)/2]
			*(*byte)(unsafe.Add(p, 9)) = 0x42
			var found *MisuseError
			note := func(v any) {
				if e, ok := v.(*MisuseError); ok && found == nil {
					found = e
				} else if v != nil {
					t.Errorf("%d bytes: %v", size, v)
				}
			}
			if back {
				for _, q := range w.live {
					note(testcall.Catch(func() { h.Free(q) }))
				}
				note(testcall.Catch(h.Trim))
			} else {
				for range 1 << 20 / size {
					note(testcall.Catch(func() {
						if h.Malloc(size) == p {
							t.Errorf("%d bytes: %p was handed out", size, p)
						}
					}))
				}
			}
			if found == nil || found.Addr != uintptr(p) {
				t.Errorf("%d bytes, back %v: written to %p: %v", size, back, p, found)
			}
			h.DestroyAll()
		}
	}
}

// TestHollowGrowth allocates blocks of another size after most of one size were freed at random. Held
// bytes do not grow by them.
func TestHollowGrowth(t *testing.T) {
	withRate(t, 0)
	h := newHeap(t, HeapOptions{})
	if !h.mayHollow() {
		return
	}
	const bytes = 3 * hollowLeast
	w := newSparse(t, h, 256, bytes)
	full := h.Stats().Held
	var more []unsafe.Pointer
	for range bytes / 2 / 320 {
		more = append(more, h.Malloc(320))
		if held := h.account.Held(); held > full+hollowStep {
			t.Fatalf("%d bytes are held, of %d before", held, full)
		}
	}
	w.check(t)
	for _, p := range slices.Concat(more, w.live) {
		h.Free(p)
	}
	mustHoldNothing(t, h)
}

// TestHollowLimit has a heap at its limit give pages back in place of refusing a request.
func TestHollowLimit(t *testing.T) {
	withRate(t, 0)
	h := newHeap(t, HeapOptions{Limit: 6 << 20})
	if !h.mayHollow() {
		return
	}
	w := newSparse(t, h, 256, 5<<20)
	var more []unsafe.Pointer
	for range 3 << 20 / 320 {
		p := h.Malloc(320)
		if p == nil {
			t.Fatalf("refused after %d blocks: %+v", len(more), h.Stats())
		}
		more = append(more, p)
	}
	// The pages of the free blocks cannot all come back.
	n := 0
	for p := h.Malloc(256); p != nil; p = h.Malloc(256) {
		more = append(more, p)
		n++
	}
	if n < 1<<20/256 || n > 4<<20/256 {
		t.Errorf("%d blocks of 256 bytes fit, too", n)
	}
	w.check(t)
	for _, p := range slices.Concat(more, w.live) {
		h.Free(p)
	}
	mustHoldNothing(t, h)
}

// TestHammerHollow has goroutines allocate and free while another has pages given back.
func TestHammerHollow(t *testing.T) {
	h := newHeap(t, HeapOptions{})
	if !h.mayHollow() {
		return
	}
	var wg sync.WaitGroup
	done := make(chan struct{})
	for g := range 3 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(g)))
			var l *Local
			if g == 0 {
				l = h.NewLocal()
				defer l.Destroy()
			}
			free := func(p unsafe.Pointer) {
				if l != nil {
					l.Free(p)
				} else {
					h.Free(p)
				}
			}
			type held struct {
				p    unsafe.Pointer
				size int
			}
			var live []held
			for range hammerRounds(40) {
				for range 4000 {
					size := hollowSizes[rng.IntN(4)]
					p := h.Malloc(size)
					shadow.Fill(p, size, uint64(uintptr(p)))
					live = append(live, held{p, size})
				}
				keep := live[:0]
				for _, b := range live {
					if err := shadow.Check(b.p, b.size, uint64(uintptr(b.p))); err != nil {
						t.Error(err)
						return
					}
					if rng.IntN(20) == 0 {
						keep = append(keep, b)
					} else {
						free(b.p)
					}
				}
				live = keep
			}
			for _, b := range live {
				free(b.p)
			}
		})
	}
	go func() { wg.Wait(); close(done) }()
	for ended := false; !ended; {
		h.Trim()
		select {
		case <-done:
			ended = true
		default:
		}
	}
	mustHoldNothing(t, h)
}

// TestTouched compares what the system says of pages with what was written to them.
func TestTouched(t *testing.T) {
	if !osmem.DropsPages {
		return // all are taken for touched
	}
	addr, err := osmem.Map(8 * osmem.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	*(*byte)(osmem.Pointer(addr + 3*osmem.PageSize)) = 1
	if got := osmem.Touched(addr, 8*osmem.PageSize); got>>3&1 == 0 {
		t.Errorf("touched: %#b, the page was written to", got)
	}
}
