package heap

import (
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestSettleEnds uses an almost empty heap for one size after the other. After a
// while it has what it takes, and gives none of it back to take it again.
func TestSettleEnds(t *testing.T) {
	for _, sizes := range [][]int{
		{4, 128, 512},
		{16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16 << 10, 32 << 10},
	} {
		h := NewHeap(t, Options{})
		rounds := func(n int) {
			for range n {
				for _, size := range sizes {
					h.Free(h.Malloc(size))
				}
			}
		}
		rounds(100)
		before := h.consolidations.Load()
		const n = 1000
		rounds(n)
		if k := h.consolidations.Load() - before; k > n/100 {
			t.Errorf("%v: the heap settled %d times in %d rounds", sizes, k, n)
		}
	}
}

// TestHasBlocks looks for a block in each list of a cache.
func TestHasBlocks(t *testing.T) {
	var k cache
	if k.hasBlocks() {
		t.Error("an empty cache has blocks")
	}
	for i := range k.classes {
		for _, list := range []*uintptr{&k.classes[i].head, &k.classes[i].spare} {
			*list = 16
			if !k.hasBlocks() {
				t.Errorf("a block of class %d is not found", i)
			}
			*list = 0
		}
	}
}

// TestConsolidateReleasesPages frees blocks that are pages long, and keeps one of each
// span. Their pages are given back, except where checks need the contents and where
// a page is as long as the largest blocks of a span.
func TestConsolidateReleasesPages(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	h := NewHeap(t, Options{})
	size := int(max(releasePagesFrom, osmem.PageSize) * 2)
	whole := size <= sizeclass.MaxSize // a block has a page for itself
	size = min(size, sizeclass.MaxSize)
	var kept, freed []unsafe.Pointer
	for i := range 40 {
		if p := h.Malloc(size); i%4 == 0 {
			kept = append(kept, p)
		} else {
			freed = append(freed, p)
		}
	}
	testheap.FreeAll(h, freed)
	h.consolidate(nil, 0)
	cl := &h.classes[sizeclass.Of(size)]
	zeroed, other := 0, 0
	for a := cl.spans; a != 0; a = span.At(a).Next {
		s := span.At(a)
		for p := s.Free; p != 0; p = block.NextOf(block.At(p).Link) {
			if block.StateOf(block.At(p).Link)&block.Zeroed != 0 {
				zeroed++
			} else {
				other++
			}
		}
	}
	if gives := whole && !osmem.DecommitRevokes; gives && (zeroed == 0 || other != 0) || !gives && zeroed != 0 {
		t.Errorf("%d of %d free blocks have given their pages back", zeroed, zeroed+other)
	}
	testheap.FreeAll(h, kept)
}

// TestEmptyCachesOnce has two goroutines empty the caches at the same time. The one that comes second does
// not stop the world.
func TestEmptyCachesOnce(t *testing.T) {
	testheap.WithRate(t, 0) // a sampled block is in no cache
	h := NewHeap(t, Options{})
	h.Free(h.Malloc(64))
	if !h.hasCached() {
		return // with CHEAP_CHECK
	}
	before := h.emptyings.Load()
	var both sync.WaitGroup
	h.seize.Lock()
	for range 2 {
		both.Go(h.emptyCaches)
	}
	testwait.Until(t, "both wait", func() bool { return testheap.CountIn("(*Heap).emptyCaches(", "sync.(*Mutex).lockSlow(") == 2 })
	h.seize.Unlock()
	both.Wait()
	if n := h.emptyings.Load() - before; n != 1 {
		t.Errorf("the caches were emptied %d times", n)
	}
}

// TestListsAreOrdered frees at random among many spans. The next blocks come in the order of their addresses, and
// a list with a damaged block stays as it is.
func TestListsAreOrdered(t *testing.T) {
	testheap.WithRate(t, 0) // sampled blocks lie elsewhere
	h := NewHeap(t, Options{})
	defer h.DestroyAll()
	if h.checked != nil {
		return // the quarantine decides on the order
	}
	cl := &h.classes[sizeclass.Of(64)]
	var freed []unsafe.Pointer
	for i := range 2 * leastHeld / 64 {
		if p := h.Malloc(64); i%4 != 0 { // no span goes back
			freed = append(freed, p)
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(freed), func(i, j int) { freed[i], freed[j] = freed[j], freed[i] })
	testheap.FreeAll(h, freed)
	h.consolidate(nil, 0) // all are in the lists of their spans

	s, damaged := span.Find(uintptr(freed[0])), block.At(uintptr(freed[0]))
	was := *s
	damaged.Link ^= 1 << 20
	cl.order(s)
	was.Runs = 0
	if *s != was {
		t.Errorf("a list with a damaged block was changed: %+v, it was %+v", *s, was)
	}
	damaged.Link ^= 1 << 20

	back, from := 0, uintptr(0)
	for range len(freed) / 2 {
		p := uintptr(h.Malloc(64))
		if p < from && p/span.UnitSize == from/span.UnitSize {
			back++
		}
		from = p
	}
	if most := len(freed) / 2 / 50; back > most {
		t.Errorf("%d of %d blocks came before one with a lower address of the same span, want at most %d", back, len(freed)/2, most)
	}
}

// TestCarveTouchesPages carves blocks of a span. In fresh memory they begin in one page; in memory that has its pages
// they are warmCarved at least.
func TestCarveTouchesPages(t *testing.T) {
	h := NewHeap(t, Options{})
	defer h.DestroyAll()
	c := sizeclass.Of(1024)
	cl := &h.classes[c]
	for _, fresh := range []bool{true, false} {
		cl.mu.Lock()
		if err := cl.grow(h, c); err != nil {
			t.Fatal(err)
		}
		s := span.At(cl.spans)
		s.Fresh = fresh
		most := int(osmem.PageSize / s.Size)
		if !fresh {
			most = max(most, warmCarved)
		}
		most = min(most, int(s.Blocks))
		if m := cl.carve(h, s, 200); m.n != most {
			t.Errorf("fresh is %v: %d blocks, want %d", fresh, m.n, most)
		}
		cl.mu.Unlock()
	}
}

// TestConsolidateSeldom takes small and large blocks in turn, in a heap that holds nothing else.
func TestConsolidateSeldom(t *testing.T) {
	h := NewHeap(t, Options{})
	span.TrimAll() // what is warm serves without a consolidation
	for range 100 {
		h.Free(h.Malloc(sizeclass.MaxSize))
		h.Free(h.Malloc(sizeclass.MaxSize + 1))
	}
	if n := h.consolidations.Load(); n > 3 {
		t.Errorf("%d consolidations", n)
	}
}

// TestConsolidateAfterRefusal asks for more than most systems have, in a heap with a span to give back. That is no
// reason to consolidate more seldom.
func TestConsolidateAfterRefusal(t *testing.T) {
	h := NewHeap(t, Options{})
	h.Free(h.Malloc(64))
	span.TrimAll()
	p, _ := h.TryMalloc(int(maxLarge))
	h.Free(p)
	if room := h.consolidateAt.Load() - h.account.Held(); room > 2<<20 {
		t.Errorf("the heap may grow by %d bytes before it consolidates", room)
	}
}
