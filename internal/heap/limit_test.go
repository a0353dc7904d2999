package heap

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// TestLimitMet allocates until the limit is met, in blocks of one size. What is
// there stays, the error says which limit it was, and what is freed can be
// allocated again.
func TestLimitMet(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	const limit = 512 << 10
	for _, size := range []int{17, 100, 1000, 8192, 20_000, 40_000, 200_000} {
		h := NewHeap(t, Options{Limit: limit})
		var live shadow.Set
		var blocks []unsafe.Pointer
		for {
			p, err := h.TryMalloc(size)
			if err != nil {
				if !errors.Is(err, ErrLimit) || errors.Is(err, ErrNoMemory) || p != nil {
					t.Errorf("TryMalloc(%d) = %p, %v", size, p, err)
				}
				break
			}
			testcall.Must(t, live.Add(p, size, h.UsableSize(p), sizeclass.Quantum))
			blocks = append(blocks, p)
		}
		s := h.Stats()
		if s.Held > limit || s.Limit != limit || s.Blocks != int64(len(blocks)) || s.Bytes < limit/2 {
			t.Errorf("size %d: %+v", size, s)
		}
		for name, f := range map[string]func() unsafe.Pointer{
			"Malloc":        func() unsafe.Pointer { return h.Malloc(size) },
			"Calloc":        func() unsafe.Pointer { return h.Calloc(1, size) },
			"AlignedMalloc": func() unsafe.Pointer { return h.AlignedMalloc(size, 32) },
			"Realloc":       func() unsafe.Pointer { return h.Realloc(blocks[0], 8*size+200) },
			"large":         func() unsafe.Pointer { return h.Malloc(limit) },
		} {
			if p := f(); p != nil {
				t.Errorf("size %d: %s beyond the limit = %p", size, name, p)
			}
		}
		for i, p := range blocks {
			testcall.Must(t, live.Remove(p))
			h.Free(p)
			if blocks[i] = h.Malloc(size); blocks[i] == nil {
				t.Fatalf("size %d: a block was freed, and there is no room for it", size)
			}
		}
		testheap.FreeAll(h, blocks)
		MustHoldNothing(t, h)
	}
}

// TestLimitTiny has a limit that nothing fits under.
func TestLimitTiny(t *testing.T) {
	h := NewHeap(t, Options{Limit: 1})
	l := h.NewLocal()
	for _, size := range []int{0, 100, 40_000, span.OwnMapping} {
		if p, err := h.TryMalloc(size); p != nil || !errors.Is(err, ErrLimit) {
			t.Errorf("TryMalloc(%d) = %p, %v", size, p, err)
		}
		if p := l.Malloc(size); p != nil {
			t.Errorf("Local.Malloc(%d) = %p", size, p)
		}
	}
	l.Destroy()
	if s := h.Stats(); s.Held != 0 || s.Mallocs != 0 {
		t.Errorf("%+v", s)
	}
}

// hugeSizes are sizes around those at which something could overflow: the size, its
// cost, the two rounded up, the largest size.
func hugeSizes() (sizes []int) {
	for _, top := range []uint64{math.MaxInt, math.MaxInt - 4*span.RegionSize, math.MaxInt / 2, uint64(maxLarge), uint64(maxLarge) / 2} {
		for _, d := range []uint64{0, 1, 10, 4095, 4096, 65_535, 65_536, span.RegionSize, 2 * span.RegionSize} {
			sizes = append(sizes, int(top-d), int(min(top+d, math.MaxInt)))
		}
	}
	return sizes
}

// TestLimitHuge asks for sizes near the largest in every way, under a limit and without
// one. Meanwhile what the heap holds is never negative and never above the limit, and
// blocks that fit are not refused.
func TestLimitHuge(t *testing.T) {
	for _, limit := range []int64{64 << 20, 0} {
		h := NewHeap(t, Options{Limit: limit})
		l := h.NewLocal()
		var done atomic.Bool
		var wg sync.WaitGroup
		defer wg.Wait()
		defer done.Store(true)
		wg.Go(func() {
			for !done.Load() {
				if held := h.account.Held(); held < 0 || limit > 0 && held > limit {
					t.Errorf("held %d, the limit is %d", held, limit)
					return
				}
			}
		})
		wg.Go(func() {
			for !done.Load() {
				p, err := h.TryMalloc(1 << 20)
				if err != nil {
					t.Errorf("a block of 1 MiB: %v", err)
					return
				}
				h.Free(p)
			}
		})
		for _, size := range hugeSizes() {
			if limit == 0 && uintptr(size) < maxLarge+7 {
				continue // the system may have that much address space
			}
			for name, f := range map[string]func() (unsafe.Pointer, error){
				"Heap.TryMalloc":         func() (unsafe.Pointer, error) { return h.TryMalloc(size) },
				"Heap.TryCalloc":         func() (unsafe.Pointer, error) { return h.TryCalloc(1, size) },
				"Heap.TryCalloc of many": func() (unsafe.Pointer, error) { return h.TryCalloc(size/7, 7) },
				"Heap.TryRealloc":        func() (unsafe.Pointer, error) { return h.TryRealloc(nil, size) },
				"Local.TryMalloc":        func() (unsafe.Pointer, error) { return l.TryMalloc(size) },
				"Local.TryCalloc":        func() (unsafe.Pointer, error) { return l.TryCalloc(size, 1) },
			} {
				if p, err := f(); p != nil || errors.Is(err, ErrLimit) != (limit > 0) || errors.Is(err, ErrNoMemory) != (limit == 0) {
					t.Errorf("limit %d: %s(%#x) = %p, %v", limit, name, size, p, err)
				}
			}
			for name, p := range map[string]unsafe.Pointer{
				"Heap.Malloc":         h.Malloc(size),
				"Heap.Calloc":         h.Calloc(size, 1),
				"Heap.AlignedMalloc":  h.AlignedMalloc(size, 1<<20),
				"Local.Malloc":        l.Malloc(size),
				"Local.AlignedMalloc": l.AlignedMalloc(size, 16),
			} {
				if p != nil {
					t.Errorf("limit %d: %s(%#x) = %p", limit, name, size, p)
				}
			}
			for _, old := range []int{100, 100_000} {
				p := h.Malloc(old)
				if q, err := h.TryRealloc(p, size); q != nil || errors.Is(err, ErrLimit) != (limit > 0) {
					t.Errorf("limit %d: TryRealloc from %d to %#x = %p, %v", limit, old, size, q, err)
				}
				h.Free(p)
			}
		}
		done.Store(true)
		wg.Wait()
		testcall.Want(t, l.Destroy())
		MustHoldNothing(t, h)
	}
}

// TestLimitPromise fills heaps, frees part of the blocks on several Ps, and
// asks for what must be left then: the limit, less what live blocks need, less
// the spans that are in use. The caches hold most of it at that moment.
func TestLimitPromise(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for seed := range uint64(testheap.HammerRounds(60)) {
		r := rand.New(rand.NewPCG(seed, 3))
		limit := int64(1+r.IntN(8)) << 20
		h := NewHeap(t, Options{Limit: limit})
		var blocks []unsafe.Pointer
		var classes []uint8 // of each; noClass for large ones
		var held int64
		const noClass = 255
		sizes := [...]int{r.IntN(64), r.IntN(500), r.IntN(3000), r.IntN(32_000), 33_000 + r.IntN(100_000)}
		for {
			size := sizes[r.IntN(len(sizes))]
			p := h.Malloc(size)
			if p == nil {
				break
			}
			blocks = append(blocks, p)
			if size > sizeclass.MaxSize {
				classes = append(classes, noClass)
			} else {
				classes = append(classes, sizeclass.Of(size))
			}
		}
		// The last ones go, so that the others fill their spans.
		keep := r.IntN(len(blocks))
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := keep + g; i < len(blocks); i += 4 {
					h.Free(blocks[i])
				}
			})
		}
		wg.Wait()
		var n [sizeclass.Count]int
		for i, p := range blocks[:keep] {
			if classes[i] == noClass {
				held += largeCost(uintptr(h.UsableSize(p)))
			} else {
				n[classes[i]]++
			}
		}
		for c, n := range n {
			blocks := int(sizeclass.Classes[c].Blocks)
			held += int64((n+blocks-1)/blocks) * spanCost(uint8(c))
		}
		// Freeing may have made caches; the request itself needs a record for
		// each of its units.
		left := limit - held - int64(h.Stats().Caches)*cacheBytes
		size := uintptr(left) &^ (osmem.PageSize - 1)
		for size > 0 && largeCost(size) > left {
			size -= osmem.PageSize
		}
		if size > sizeclass.MaxSize {
			p, err := h.TryMalloc(int(size))
			if err != nil {
				t.Errorf("seed %d: of %d bytes, %d are needed for %d live blocks, and %d cannot be had: %v; %+v", seed, limit, held, keep, size, err, h.Stats())
			}
			if s := h.Stats(); s.Held > limit {
				t.Errorf("seed %d: %+v", seed, s)
			}
			if p2, err := h.TryMalloc(int(size)); p2 != nil || !errors.Is(err, ErrLimit) {
				t.Errorf("seed %d: twice what is left = %p, %v", seed, p2, err)
			}
			h.Free(p)
		}
		testheap.FreeAll(h, blocks[:keep])
		MustHoldNothing(t, h)
	}
}

// TestHammerLimit allocates from many goroutines at the limit. It is never
// exceeded, and never in the way of what certainly fits.
func TestHammerLimit(t *testing.T) {
	const limit = 4 << 20
	h := NewHeap(t, Options{Limit: limit})
	var stop atomic.Bool
	var wg, readers sync.WaitGroup
	readers.Go(func() {
		for !stop.Load() {
			if held := h.account.Held(); held > limit {
				t.Errorf("held %d, the limit is %d", held, limit)
				return
			}
			runtime.Gosched()
		}
	})
	rounds := testheap.HammerRounds(40)
	var refused atomic.Int64
	for g := range 6 {
		wg.Go(func() {
			var live shadow.Set
			var blocks []unsafe.Pointer
			for i := range rounds {
				for range 200 { // more than the limit
					size := []int{16, 300, 5000, 40_000, 200_000}[(i+g+len(blocks))%5]
					p, err := h.TryMalloc(size)
					if err != nil {
						refused.Add(1)
						break
					}
					if err := live.Add(p, size, h.UsableSize(p), sizeclass.Quantum); err != nil {
						t.Error(err)
						return
					}
					blocks = append(blocks, p)
				}
				for _, p := range blocks {
					if err := live.Remove(p); err != nil {
						t.Error(err)
						return
					}
					h.Free(p)
				}
				blocks = blocks[:0]
			}
		})
	}
	wg.Wait()
	stop.Store(true)
	readers.Wait()
	if refused.Load() == 0 {
		t.Error("the limit was never met")
	}
	MustHoldNothing(t, h)
}

// TestRefusedStopsNothing is refused again and again with nothing to reclaim: the caches
// are not taken from their Ps. A block that is freed is found, on whatever P it is.
func TestRefusedStopsNothing(t *testing.T) {
	h := NewHeap(t, Options{Limit: 1 << 20})
	var blocks []unsafe.Pointer
	fill := func() {
		for _, size := range []int{100_000, 1000, 16} {
			for p := h.Malloc(size); p != nil; p = h.Malloc(size) {
				blocks = append(blocks, p)
			}
		}
	}
	fill()
	before := h.emptyings.Load()
	for range 100 {
		for _, size := range []int{16, 5000, 100_000} {
			if p := h.Malloc(size); p != nil {
				t.Fatalf("%d bytes beyond the limit", size)
			}
		}
	}
	if n := h.emptyings.Load() - before; n != 0 {
		t.Errorf("caches were emptied %d times, and had nothing", n)
	}
	// Each goroutine has a P, if there are as many, and its cache gets a block of 16
	// bytes of each span. So no span is free before all caches are emptied.
	gate := make(chan struct{})
	var wg sync.WaitGroup
	const goroutines = 4
	for g := range goroutines {
		wg.Go(func() {
			<-gate
			for i := g; i < len(blocks); i += goroutines {
				h.Free(blocks[i])
				if i%64 == g {
					runtime.Gosched()
				}
			}
		})
	}
	close(gate)
	wg.Wait()
	blocks = nil
	if p := h.Malloc(900_000); p == nil {
		t.Error("no memory, and all blocks are free")
	} else {
		h.Free(p)
	}
}

// BenchmarkRefused allocates at the limit, where there is nothing to reclaim.
func BenchmarkRefused(b *testing.B) {
	for _, goroutines := range []int{1, 4} {
		for _, size := range []int{1000, 100_000} {
			b.Run(fmt.Sprintf("goroutines=%d/size=%d", goroutines, size), func(b *testing.B) {
				h := NewHeap(b, Options{Limit: 1 << 20})
				var blocks []unsafe.Pointer
				for _, fill := range []int{100_000, 1000, 16} {
					for p := h.Malloc(fill); p != nil; p = h.Malloc(fill) {
						blocks = append(blocks, p)
					}
				}
				b.ResetTimer()
				var wg sync.WaitGroup
				for range goroutines {
					wg.Go(func() {
						for range b.N / goroutines {
							if p := h.Malloc(size); p != nil {
								b.Error("not refused")
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				testheap.FreeAll(h, blocks)
			})
		}
	}
}
