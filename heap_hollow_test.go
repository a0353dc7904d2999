package cheap

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/shadow"
	"github.com/cheapgo/cheap/internal/sizeclass"
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

// newSparse allocates bytes bytes in blocks of size, and frees all but one in 50, or fewer where pages are
// larger.
func newSparse(t *testing.T, h *Heap, size, bytes int) *sparse {
	w := &sparse{h: h, size: size, rng: rand.New(rand.NewPCG(1, uint64(size)))}
	for range bytes / size {
		p := h.Malloc(size)
		if p == nil {
			t.Fatal("no memory")
		}
		shadow.Fill(p, size, uint64(uintptr(p)))
		if w.rng.IntN(50*int(osmem.PageSize/4096)) == 0 {
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
			if len(in) == 0 { // no page had no block in use
				h.DestroyAll()
				continue
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
	if !h.mayHollow() || osmem.PageSize > 4096 {
		return // of larger pages fewer have no block in use
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

// TestHammerHollow has goroutines allocate, and free blocks of their own and of each other, while another has
// pages given back, and destroys heaps that have given pages back.
func TestHammerHollow(t *testing.T) {
	h := newHeap(t, HeapOptions{})
	if !h.mayHollow() {
		return
	}
	type held struct {
		p    unsafe.Pointer
		size int
	}
	var wg sync.WaitGroup
	var sent [3]chan held // blocks that the goroutine frees for the one before
	for g := range sent {
		sent[g] = make(chan held, 2000)
	}
	check := func(b held) bool {
		err := shadow.Check(b.p, b.size, uint64(uintptr(b.p)))
		if err != nil {
			t.Error(err)
		}
		return err == nil
	}
	for g := range sent {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(g)))
			free := h.Free
			if g == 0 {
				l := h.NewLocal()
				defer l.Destroy()
				free = l.Free
			}
			var live []held
			for range hammerRounds(40) {
				for range 4000 {
					size := hollowSizes[rng.IntN(5)]
					p := h.Malloc(size)
					shadow.Fill(p, size, uint64(uintptr(p)))
					live = append(live, held{p, size})
				}
				for len(sent[g]) > 0 {
					b := <-sent[g] // no other goroutine receives
					if !check(b) {
						return
					}
					free(b.p)
				}
				keep := live[:0]
				for _, b := range live {
					switch {
					case !check(b):
						return
					case rng.IntN(20) == 0:
						keep = append(keep, b)
						continue
					case rng.IntN(3) == 0:
						select {
						case sent[(g+1)%len(sent)] <- b:
							continue
						default:
						}
					}
					free(b.p)
				}
				live = keep
			}
			for _, b := range live {
				free(b.p)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for ended := false; !ended; {
		h.Trim()
		other := newHeap(t, HeapOptions{})
		w := newSparse(t, other, 256, 1<<20)
		other.Trim()
		w.check(t)
		if err := other.DestroyAll(); err != nil {
			t.Error(err)
		}
		select {
		case <-done:
			ended = true
		default:
		}
	}
	h.Trim()
	mustBeSound(t, h, nil)
	for g := range sent {
		for len(sent[g]) > 0 {
			b := <-sent[g]
			check(b)
			h.Free(b.p)
		}
	}
	mustHoldNothing(t, h)
}

// mustBeSound compares what the records of the spans of h say with each other, with the lists of the
// classes, and with the account. Nothing else uses the heap. A list may end with a block that was written to.
func mustBeSound(t *testing.T, h *Heap, written map[uintptr]bool) {
	t.Helper()
	listed := map[*span.Span]bool{}
	sorted := [sizeclass.Count]int64{}
	for c := range h.classes {
		cl := &h.classes[c]
		last := uintptr(0)
		for a := cl.spans; a != 0; a = span.At(a).Next {
			s := span.At(a)
			if s.LoadTag() != cl.tag || s.Prev != last || !s.Listed || listed[s] {
				t.Fatalf("class %d: the list is broken at %#x", c, s.Base)
			}
			listed[s], last = true, a
		}
		if cl.spans != 0 && cl.last != last {
			t.Fatalf("class %d: the list does not end with its last span", c)
		}
	}
	held := int64(0)
	span.Each(h.id, &h.regions, func(s *span.Span) {
		c := s.LoadTag() & span.KindMask
		if c >= sizeclass.Count {
			return
		}
		held += spanCost(uint8(c)) - droppedBytes(s)
		sorted[c] += int64(s.NumFree)
		gives := s.NumFree > 0 || isHollow(s) || s.Made < s.Blocks
		if listed[s] != gives || s.Listed != gives {
			t.Fatalf("the span at %#x is listed: %v, %v, and has %d free, %d dropped, %d of %d blocks made", s.Base, listed[s], s.Listed, s.NumFree, s.NumDropped, s.Made, s.Blocks)
		}
		if isHollow(s) != (s.NumDropped > 0) || s.Carved != s.Made && (s.Carved != 0 || !isHollow(s)) {
			t.Fatalf("the span at %#x has %d dropped blocks, %#x of its pages, and %d carved, of %d", s.Base, s.NumDropped, s.Dropped, s.Carved, s.Made)
		}
		n := uint32(0)
		for p := s.Free; p != 0; p = nextOf(blockAt(p).link) {
			if written[p] {
				n = s.NumFree
				break
			}
			if !blockAt(p).isSorted(p, factorOf(s.Tag)) || isDropped(s, p) || n >= s.NumFree {
				t.Fatalf("the list of the span at %#x is broken at %#x", s.Base, p)
			}
			n++
		}
		dropped := uint32(0)
		for i := range uintptr(s.Blocks) {
			if p := s.Base + i*s.Size; isDropped(s, p) {
				dropped++
			}
		}
		if n != s.NumFree || dropped != s.NumDropped {
			t.Fatalf("the span at %#x has %d blocks in its list, not %d, and %d dropped, not %d", s.Base, n, s.NumFree, dropped, s.NumDropped)
		}
	})
	for c := range h.classes {
		if h.classes[c].numSorted != sorted[c] {
			t.Fatalf("class %d has %d blocks in the lists of spans, and counts %d", c, sorted[c], h.classes[c].numSorted)
		}
	}
	if caches := h.account.Held() - held - h.large.bytes.Load(); caches%cacheBytes != 0 || caches < 0 {
		t.Fatalf("the account has %d bytes, the spans %d", h.account.Held(), held)
	}
}

// residentSpans returns how many bytes of the spans of a heap have memory. It is nil where the system does
// not say.
var residentSpans func(t *testing.T, h *Heap) int64

// mustBeCharged looks whether the account of h has what its spans have of memory.
func mustBeCharged(t *testing.T, h *Heap) {
	t.Helper()
	if residentSpans == nil || osmem.PageSize > 4096 {
		return // the account rounds a span to 4 KiB
	}
	if got, held := residentSpans(t, h), h.account.Held(); got > held {
		t.Fatalf("%d bytes are resident, and the account has %d", got, held)
	}
}

// TestModelHollow allocates and frees blocks of random sizes, one at a time and most of them at once, by
// the heap and by a Local, and has pages given back. Contents, lists, the account and the resident memory
// are right all the time. The heap has a limit, which it meets.
func TestModelHollow(t *testing.T) {
	withRate(t, 0)
	setDecay(t, -1)
	for _, limit := range []int64{0, 8 << 20} {
		h := newHeap(t, HeapOptions{Limit: limit})
		rng := rand.New(rand.NewPCG(3, uint64(limit)))
		l := h.NewLocal()
		type held struct {
			p    unsafe.Pointer
			size int
		}
		var live []held
		refused, hollows := 0, 0
		free := func(b held) {
			if err := shadow.Check(b.p, b.size, uint64(uintptr(b.p))); err != nil {
				t.Fatalf("%d bytes at %p: %v", b.size, b.p, err)
			}
			if rng.IntN(2) == 0 {
				h.Free(b.p)
			} else {
				l.Free(b.p)
			}
		}
		for step := range hammerRounds(60) {
			most := 1 << (5 + rng.IntN(9)) // of a size, up to 8 KiB
			for room := 4 << 20; room > 0; {
				b := held{size: 1 + rng.IntN(most)}
				switch rng.IntN(3) {
				case 0:
					b.p = l.Malloc(b.size)
				case 1:
					b.p = h.Calloc(1, b.size)
					if b.p != nil {
						if err := shadow.Zero(b.p, b.size); err != nil {
							t.Fatal(err)
						}
					}
				default:
					b.p = h.Malloc(b.size)
				}
				if room -= b.size + 64; b.p == nil {
					refused++
					break
				}
				shadow.Fill(b.p, b.size, uint64(uintptr(b.p)))
				live = append(live, b)
			}
			for len(live) > 0 && rng.IntN(3) == 0 {
				i := rng.IntN(len(live))
				free(live[i])
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			}
			kept, keep := live[:0], 1+rng.IntN(60)
			for _, b := range live {
				if rng.IntN(keep) == 0 {
					kept = append(kept, b)
				} else {
					free(b)
				}
			}
			live = kept
			mustBeSound(t, h, nil)
			mustBeCharged(t, h)
			if step%3 == 0 {
				h.Trim()
				mustBeSound(t, h, nil)
				mustBeCharged(t, h)
			}
			span.Each(h.id, &h.regions, func(s *span.Span) {
				if isHollow(s) {
					hollows++
				}
			})
		}
		if h.mayHollow() && hollows == 0 || limit != 0 && refused == 0 {
			t.Errorf("limit %d: %d hollow spans, %d refusals", limit, hollows, refused)
		}
		for _, b := range live {
			free(b)
		}
		if err := l.Destroy(); err != nil {
			t.Error(err)
		}
		mustHoldNothing(t, h)
	}
}

// TestHollowBorder uses blocks that begin in one page and end in another, in spans of which pages were
// given back. The account has the memory of each page that they touch.
func TestHollowBorder(t *testing.T) {
	withRate(t, 0)
	setDecay(t, -1)
	for _, size := range []int{48, 320, 1400, 3000, 5000, 7000} {
		h := newHeap(t, HeapOptions{})
		w := newSparse(t, h, size, 8<<20)
		h.Trim()
		mustBeCharged(t, h)
		for {
			before := h.account.Held()
			p := h.Malloc(size)
			if h.account.Held() != before { // what was free in pages that stayed is used
				h.Free(p)
				break
			}
			shadow.Fill(p, size, uint64(uintptr(p)))
			w.live = append(w.live, p)
		}
		mustBeCharged(t, h)
		w.check(t)
		h.DestroyAll()
	}
}

// TestHollowMisuse writes to free blocks of hollow spans: to those in their lists, and to those in pages
// that were given back. Other spans keep their blocks and their places in the lists, and the blocks that
// were not written to are handed out again.
func TestHollowMisuse(t *testing.T) {
	withRate(t, 0)
	for _, size := range []int{48, 256, 320, 1400} {
		for seed := range uint64(6) {
			h := newHeap(t, HeapOptions{})
			w := newSparse(t, h, size, 4<<20)
			h.Trim()
			rng := rand.New(rand.NewPCG(seed, 1))
			written := map[uintptr]bool{}
			for range 5 {
				p := w.free[rng.IntN(len(w.free))]
				if span.Find(uintptr(p)).LoadTag()>>span.KindBits == h.id {
					*(*uint64)(unsafe.Add(p, 8*rng.IntN(2))) += 1 + rng.Uint64()>>1
					written[uintptr(p)] = true
				}
			}
			live := map[unsafe.Pointer]bool{}
			for _, p := range w.live {
				live[p] = true
			}
			accused := 0
			note := func(v any) {
				if e, ok := v.(*MisuseError); ok && written[e.Addr] {
					accused++
				} else if v != nil {
					t.Fatalf("%d bytes: %v", size, v)
				}
			}
			full := h.Stats().Held
			for i := range len(w.free) {
				var p unsafe.Pointer
				note(testcall.Catch(func() { p = h.Malloc(size) }))
				if p == nil {
					continue
				}
				if live[p] || written[uintptr(p)] {
					t.Fatalf("%d bytes: %p was handed out", size, p)
				}
				live[p] = true
				shadow.Fill(p, size, uint64(uintptr(p)))
				w.live = append(w.live, p)
				if i%3 == 0 { // it goes back to a hollow span, or to one with damage
					w.live = w.live[:len(w.live)-1]
					delete(live, p)
					note(testcall.Catch(func() { h.Free(p) }))
				}
				if i%2000 == 0 {
					note(testcall.Catch(h.Trim))
				}
			}
			if accused == 0 && len(written) > 0 {
				t.Errorf("%d bytes: of %d blocks that were written to none was reported", size, len(written))
			}
			// Each damage loses the rest of a list, of a span at most.
			if held := h.Stats().Held; held > full+int64(len(w.free)*size)+int64(len(written)+2)*span.UnitSize {
				t.Errorf("%d bytes: %d are held, %d before", size, held, full)
			}
			w.check(t)
			mustBeSound(t, h, written)
			h.DestroyAll()
		}
	}
}
