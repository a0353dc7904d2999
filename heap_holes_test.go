package cheap

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/shadow"
	"github.com/cheapgo/cheap/internal/span"
)

// holey returns a heap in which one block in fifty of those of a size is left, the blocks that
// are left, and those that were freed. The heap has made holes.
func holey(t *testing.T, size, n int) (h *Heap, kept, freed []unsafe.Pointer) {
	t.Helper()
	withRate(t, 0)
	h = newHeap(t, HeapOptions{})
	var all []unsafe.Pointer
	for i := range n {
		p := h.Malloc(size)
		shadow.Fill(p, size, uint64(i))
		all = append(all, p)
	}
	for i, p := range all {
		if i%50 == 0 {
			kept = append(kept, p)
		} else {
			h.Free(p)
			freed = append(freed, p)
		}
	}
	h.Trim()
	return h, kept, freed
}

// numHoles counts the pages that are holes, and the blocks that begin in them.
func numHoles(h *Heap) (pages, blocks int) {
	span.Each(h.id, func(s *span.Span) {
		for j := range span.UnitSize / osmem.PageSize {
			pages += int(s.Holes >> j & 1)
		}
		blocks += int(s.HoleBlocks)
	})
	return pages, blocks
}

// pagesWithout counts the pages of the spans of h that have none of the blocks.
func pagesWithout(h *Heap, blocks []unsafe.Pointer) (n int) {
	taken := map[uintptr]bool{}
	for _, p := range blocks {
		first, last := uintptr(p), uintptr(p)+uintptr(h.UsableSize(p))-1
		for a := first &^ (osmem.PageSize - 1); a <= last; a += osmem.PageSize {
			taken[a] = true
		}
	}
	span.Each(h.id, func(s *span.Span) {
		for a := s.Base; a < s.Base+uintptr(carvedOf(s))*s.Size; a += osmem.PageSize {
			if !taken[a] {
				n++
			}
		}
	})
	return n
}

// TestHoles makes holes and fills them, with blocks that stay all the time.
func TestHoles(t *testing.T) {
	if !mayHaveHoles || osmem.PageSize > 4096 {
		return
	}
	for _, size := range []int{128, 144, 200, 256, 1000, 1024, 3000, 4096, 5000, 7168} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			n := 3 << 20 / size
			h, kept, freed := holey(t, size, n)
			pages, blocks := numHoles(h)
			t.Logf("%d pages, %d blocks of %d", pages, blocks, n)
			if want := pagesWithout(h, kept); pages != want || int64(pages) != h.holes.Load() || pages == 0 {
				t.Errorf("%d pages are holes, want %d; the heap counts %d", pages, want, h.holes.Load())
			}
			// Whatever was freed, in a hole or not, is free.
			for _, p := range freed {
				if _, v := judge(uintptr(p), h.id); v == blockLive || v == blockInside {
					t.Fatalf("%p, which was freed: verdict %d", p, v)
				}
			}
			if catch(func() { h.Free(freed[len(freed)/2]) }) == nil {
				t.Error("a block is freed twice, and there is no panic")
			}
			// Whatever was not is as before: freed, resized, measured, and allocated again.
			for i, p := range kept {
				if err := shadow.Check(p, size, uint64(50*i)); err != nil {
					t.Fatal(err)
				}
				if got := h.UsableSize(p); got != UsableSizeFor(size) || !h.Owns(p) {
					t.Fatalf("UsableSize is %d", got)
				}
				switch i % 3 {
				case 0:
					h.Free(p)
					if i == 0 && catch(func() { h.Free(p) }) == nil {
						t.Error("a survivor is freed twice, and there is no panic")
					}
					kept[i] = nil
				case 1:
					kept[i] = h.Realloc(p, size/2)
				}
			}
			seen := map[unsafe.Pointer]bool{}
			for _, p := range kept {
				seen[p] = true
			}
			freed = freed[:0]
			for i := 0; i < n && (i < n/2 || h.holes.Load() > 0); i++ {
				p := h.Malloc(size)
				if seen[p] {
					t.Fatalf("%p is handed out twice", p)
				}
				seen[p] = true
				shadow.Fill(p, size, uint64(i))
				freed = append(freed, p)
			}
			if n := h.holes.Load(); n != 0 {
				t.Errorf("%d holes are left", n)
			}
			for i, p := range kept {
				if p != nil {
					if err := shadow.Check(p, size/2, uint64(50*i)); err != nil {
						t.Fatal(err)
					}
					h.Free(p)
				}
			}
			for i, p := range freed {
				if err := shadow.Check(p, size, uint64(i)); err != nil {
					t.Fatal(err)
				}
				h.Free(p)
			}
			h.Trim()
			if pages, blocks := numHoles(h); pages != 0 || blocks != 0 || h.holes.Load() != 0 || h.Stats().Blocks != 0 {
				t.Errorf("%d holes with %d blocks, the heap counts %d, %+v", pages, blocks, h.holes.Load(), h.Stats())
			}
		})
	}
}

// TestHoleGoesBack frees the last blocks of spans with holes, so that the spans go back.
func TestHoleGoesBack(t *testing.T) {
	if !mayHaveHoles || osmem.PageSize > 4096 {
		return
	}
	h, kept, _ := holey(t, 512, 8192)
	for _, i := range rand.Perm(len(kept)) {
		h.Free(kept[i])
	}
	h.Trim()
	if s := h.Stats(); s.Blocks != 0 || h.holes.Load() != 0 {
		t.Errorf("%d holes, %+v", h.holes.Load(), s)
	}
	if pages, _ := numHoles(h); pages != 0 {
		t.Errorf("spans with %d holes are left", pages)
	}
}

// TestHoleWrittenTo writes to a block in a hole. The Malloc that would hand it out finds that.
func TestHoleWrittenTo(t *testing.T) {
	if !mayHaveHoles || osmem.PageSize > 4096 {
		return
	}
	for _, at := range []uintptr{0, 8} {
		h, kept, freed := holey(t, 512, 8192)
		var p unsafe.Pointer
		for _, p = range freed {
			if inHole(span.Find(uintptr(p)), uintptr(p)) {
				break
			}
		}
		*(*byte)(unsafe.Add(p, at)) = 1
		wantMisuse(t, "Heap", func() {
			for range freed {
				h.Malloc(512)
			}
		}, "written to after it was freed")
		_ = kept
		h.DestroyAll()
	}
}

// TestHolesAtGrowth makes no call for it: holes are made before the heap takes more memory.
func TestHolesAtGrowth(t *testing.T) {
	if !mayHaveHoles || osmem.PageSize > 4096 {
		return
	}
	withRate(t, 0)
	h := newHeap(t, HeapOptions{})
	const size, n = 16 << 20, 16 << 20 / 512
	var all []unsafe.Pointer
	for range n {
		all = append(all, h.Malloc(512))
	}
	for i, p := range all {
		if i%50 != 0 {
			h.Free(p)
		}
	}
	for b := 0; b < size/2; b += 256 {
		h.Malloc(256)
	}
	if held, touched := h.account.Held(), h.touched(); touched > held-size/4 {
		t.Errorf("the heap has touched %d of %d bytes", touched, held)
	}
	if err := h.DestroyAll(); err != nil {
		t.Error(err)
	}
}

// TestHammerHoles has goroutines that leave few blocks of each size, and free those of others,
// while holes are made all the time.
func TestHammerHoles(t *testing.T) {
	withRate(t, 0)
	h := newHeap(t, HeapOptions{})
	type left struct {
		p    unsafe.Pointer
		size int
		fill uint64
	}
	leftovers := make(chan left, 2000)
	var work sync.WaitGroup
	for g := range 4 {
		work.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for round := range hammerRounds(40) {
				size := 128 << (round % 4)
				var blocks []left
				for range 2000 {
					b := left{size: size + r.IntN(size), fill: r.Uint64()}
					b.p = h.Malloc(b.size)
					shadow.Fill(b.p, b.size, b.fill)
					blocks = append(blocks, b)
				}
				for i, b := range blocks {
					if i%50 == 0 {
						select {
						case leftovers <- b:
							continue
						case b = <-leftovers:
							h.Free(blocks[i].p)
						}
					}
					if err := shadow.Check(b.p, b.size, b.fill); err != nil {
						t.Error(err)
						return
					}
					h.Free(b.p)
				}
			}
		})
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		work.Wait()
	}()
	most := int64(0)
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			h.Trim()
			most = max(most, h.holes.Load())
		}
	}
	if most == 0 && mayHaveHoles && osmem.PageSize <= 4096 {
		t.Error("there were no holes")
	}
	close(leftovers)
	for b := range leftovers {
		if err := shadow.Check(b.p, b.size, b.fill); err != nil {
			t.Error(err)
		}
		h.Free(b.p)
	}
	mustHoldNothing(t, h)
	if n := h.holes.Load(); n != 0 {
		t.Errorf("an empty heap has %d holes", n)
	}
}
