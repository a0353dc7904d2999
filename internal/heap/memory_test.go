package heap

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestDecay leaves memory idle. It goes back by itself, unless it is to stay.
func TestDecay(t *testing.T) {
	h := NewHeap(t, Options{})
	testheap.SetDecay(t, 20*time.Millisecond)
	for range 3 {
		useSome(h)
		testwait.Until(t, "nothing is idle", func() bool { return span.Idle() == 0 })
	}

	if old := span.SetDecay(-1); old != 20*time.Millisecond { // no timer is armed then, see package span
		t.Errorf("SetDecay returns %v", old)
	}
	useSome(h)
	if span.Idle() == 0 {
		t.Error("nothing is idle, without decay")
	}
	h.Trim()
	if n := span.Idle(); n != 0 {
		t.Errorf("idle is %d after Trim", n)
	}

	useSome(h)
	span.SetDecay(time.Hour)
	useSome(h)
	span.SetDecay(0) // although a timer for half an hour is armed
	if n := span.Idle(); n != 0 {
		t.Errorf("idle is %d after span.SetDecay(0)", n)
	}
	h.Free(h.Malloc(100_000))
	if n := span.Idle(); n != 0 {
		t.Errorf("idle is %d, decay is 0", n)
	}

	span.SetDecay(time.Hour)
	h.Free(h.Malloc(100_000))
	span.SetDecay(10 * time.Millisecond)
	testwait.Until(t, "nothing is idle after a shorter decay", func() bool { return span.Idle() == 0 })
}

// TestDecayBounds frees blocks of each kind. Their memory is idle as long as no timer has
// ticked, and not for ever. Package span looks at how many ticks it takes.
func TestDecayBounds(t *testing.T) {
	h := NewHeap(t, Options{})
	testheap.SetDecay(t, -1)
	for _, size := range []int{100, 20_000, 500_000} {
		p := h.Malloc(size)
		Trim()
		if n := span.Idle(); n != 0 {
			t.Fatalf("%d bytes are idle after Trim", n)
		}
		span.SetDecay(24 * time.Hour)
		h.Free(p)
		h.reclaim() // out of the cache
		if span.Idle() == 0 {
			t.Errorf("a block of %d bytes is not idle after Free", size)
		}
		span.SetDecay(time.Millisecond)
		testwait.Until(t, "nothing is idle", func() bool { return span.Idle() == 0 })
		span.SetDecay(-1)
	}
}

// TestDecayKeepsBlocks lets memory decay next to blocks that are live.
func TestDecayKeepsBlocks(t *testing.T) {
	h := NewHeap(t, Options{})
	testheap.SetDecay(t, time.Millisecond)
	var kept []testheap.Handed
	for i := range 200 {
		kept = append(kept, testheap.Wrap(h, i*i, uint64(i)))
		useSome(h)
	}
	testwait.Until(t, "nothing is idle", func() bool { return span.Idle() == 0 })
	for _, b := range kept {
		b.Unwrap(t, h)
	}
	MustHoldNothing(t, h)
}

// TestProducerConsumer has a goroutine that only allocates and one that only
// frees. The heap does not grow from that.
func TestProducerConsumer(t *testing.T) {
	h := NewHeap(t, Options{})
	const n = 4096
	rounds := testheap.HammerRounds(200)
	full := make(chan []unsafe.Pointer)
	done := make(chan bool)
	go func() {
		defer close(done)
		for blocks := range full {
			testheap.FreeAll(h, blocks)
		}
	}()
	var peak, live int64
	for range rounds {
		blocks := make([]unsafe.Pointer, n)
		for i := range blocks {
			blocks[i] = h.Malloc(16 + i%64*16)
		}
		peak = max(peak, h.Stats().Held)
		live = max(live, h.Stats().Bytes)
		full <- blocks
	}
	close(full)
	<-done
	if most := live*5/4 + 4<<20; peak > most {
		t.Errorf("at most %d bytes were live, and %d held", live, peak)
	}
	MustHoldNothing(t, h)
}

// TestCacheLimit frees more into every cache than it may hold.
func TestCacheLimit(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	h, l := NewHeapAndLocal(t, Options{})
	ways := []Allocator{h, h, h, h, l}
	var most atomic.Int64
	var wg sync.WaitGroup
	for _, a := range ways {
		wg.Go(func() {
			for c := range sizeclass.Count {
				size := int(sizeclass.Classes[c].Size)
				var blocks []unsafe.Pointer
				for range min(1000, 1<<20/size) {
					blocks = append(blocks, a.Malloc(size))
				}
				testheap.FreeAll(a, blocks)
				s := h.Stats()
				if s.Cached > most.Load() {
					most.Store(s.Cached)
				}
				if s.Cached > int64(s.Caches)*s.CacheMax {
					t.Errorf("%+v", s)
				}
			}
		})
	}
	wg.Wait()
	s := h.Stats()
	if s.CacheMax <= 0 || s.CacheMax > 1<<20 {
		t.Errorf("a cache may hold %d bytes", s.CacheMax)
	}
	if s.Caches == 0 || most.Load() == 0 {
		t.Errorf("%+v; the caches were never used", s)
	}
}

// TestCacheRoom has a Local use all classes again and again, whose largest batches
// together are more than a cache may hold. The second time the heap does not grow any
// more, which would empty the cache.
func TestCacheRoom(t *testing.T) {
	testheap.WithRate(t, 0)  // it looks at lists of blocks that are not sampled
	testheap.SetDecay(t, -1) // a cache that rests would be taken
	h, l := NewHeapAndLocal(t, Options{})
	var most int64
	for range 8 {
		var blocks []unsafe.Pointer
		for _, c := range sizeclass.Classes {
			for range 3 * c.Magazine {
				blocks = append(blocks, l.Malloc(int(c.Size)))
			}
		}
		for _, p := range blocks {
			l.Free(p)
			most = max(most, h.Stats().Cached)
		}
	}
	if limit := h.Stats().CacheMax; most > limit || most < limit/2 {
		t.Errorf("at most %d bytes were cached; at most %d may be, and half of that should", most, limit)
	}
	l.empty()
	if got, want := l.k.room, cacheLimit-sizeclass.CacheLeast; got != want {
		t.Errorf("the empty cache has room for %d bytes, want %d", got, want)
	}
}

// TestCachedPair takes and frees a block of each class again and again: only the first goes to the class, as
// long as the cache has room. Without room all of them do, and none is lost.
func TestCachedPair(t *testing.T) {
	testheap.WithRate(t, 0)  // it counts calls, of which a sample is one
	testheap.SetDecay(t, -1) // a cache that rests would be taken
	for _, full := range []bool{false, true} {
		h := NewHeap(t, Options{})
		l := h.NewLocal()
		pair := func(c int) {
			if full && l.k != nil {
				l.k.room = 0 // when the heap grows the cache is emptied, and has room again
			}
			p := l.Malloc(int(sizeclass.Classes[c].Size))
			if p == nil {
				t.Fatal("no memory")
			}
			l.Free(p)
		}
		for c := range sizeclass.Count {
			if sizeclass.Classes[c].Blocks == 1 { // there is not room for all of them
				l.Destroy()
				l = h.NewLocal()
			}
			for range 3 {
				pair(c)
			}
			before := h.classes[c].mallocs
			for range 100 {
				pair(c)
			}
			slow, want := h.classes[c].mallocs-before, uint64(0)
			if full && sizeclass.Classes[c].Least == 0 {
				want = 100
			}
			if slow != want {
				t.Errorf("%d bytes: %d of 100 calls of Malloc were not served by the cache, want %d", sizeclass.Classes[c].Size, slow, want)
			}
		}
		l.Destroy()
		MustHoldNothing(t, h)
	}
}

// TestCacheRoomLeft uses the classes of larger blocks until the cache has no room for
// larger batches. Smaller blocks still come to the cache in batches, while the heap does
// not grow, which would empty the cache.
func TestCacheRoomLeft(t *testing.T) {
	testheap.WithRate(t, 0)  // it looks at lists of blocks that are not sampled
	testheap.SetDecay(t, -1) // a cache that rests would be taken
	h, l := NewHeapAndLocal(t, Options{})
	const n = 1000
	least := sizeclass.Of(256)
	var live, free []unsafe.Pointer
	for _, c := range sizeclass.Classes[:sizeclass.Of(16<<10)+1] {
		for i := range 2 * n {
			p := l.Malloc(int(c.Size))
			if c.Size > 256 && i == 4*int(c.Magazine) {
				live = append(live, p)
				break
			}
			if i%2 == 0 {
				live = append(live, p) // it keeps the span
			} else {
				free = append(free, p)
			}
		}
	}
	testheap.FreeAll(l, free)
	l.empty()
	h.reclaim()
	held := h.Stats().Held
	var blocks []unsafe.Pointer
	use := func(c, n int) {
		for range n {
			blocks = append(blocks, l.Malloc(int(sizeclass.Classes[c].Size)))
		}
		testheap.FreeAll(l, blocks)
		blocks = blocks[:0]
	}
	for round := 0; round < 8; round++ {
		for c := int(sizeclass.Of(16 << 10)); c > int(least); c-- {
			use(c, 2*int(sizeclass.Classes[c].Magazine))
		}
	}
	if l.k.room > 2*256 {
		t.Errorf("there is room for %d bytes more", l.k.room)
	}
	for c := range int(least) + 1 {
		cl, size := &h.classes[c], int(sizeclass.Classes[c].Size)
		use(c, n/2)
		before := cl.mallocs
		use(c, n/2)
		if slow, most := cl.mallocs-before, uint64(n/2*size/(2<<10)+8); slow > most {
			t.Errorf("of %d calls of Malloc of %d bytes %d were not served by the cache, want %d or fewer", n/2, size, slow, most)
		}
	}
	if s := h.Stats(); s.Held != held {
		t.Errorf("the heap has grown from %d to %d bytes", held, s.Held)
	}
	testheap.FreeAll(l, live)
}

// TestHollow leaves free blocks among live ones, lets the heap grow, which may
// take the memory of the free ones, and asks for zeroes.
func TestHollow(t *testing.T) {
	h := NewHeap(t, Options{})
	for _, size := range []int{4096, 8192, 9000, 12_288, 16_000, 20_480, 32_768} {
		var live, blocks []testheap.Handed
		for i := range 60 {
			b := testheap.Wrap(h, size, uint64(i))
			if i%2 == 0 {
				live = append(live, b)
			} else {
				blocks = append(blocks, b)
			}
		}
		for _, b := range blocks {
			b.Unwrap(t, h)
		}
		large := []testheap.Handed{testheap.Wrap(h, 3<<20, 1), testheap.Wrap(h, 5<<20, 2)} // grow
		for range 40 {
			p := h.Calloc(1, size)
			if err := shadow.Zero(p, size); err != nil {
				t.Fatalf("size %d: %v", size, err)
			}
			shadow.Fill(p, h.UsableSize(p), 3)
			live = append(live, testheap.Handed{P: p, Size: size, Seed: 3})
		}
		for _, b := range append(live, large...) {
			b.Unwrap(t, h)
		}
	}
	MustHoldNothing(t, h)
}

// TestFewerPs fills the caches of several Ps and then takes the Ps away. What
// they hold must not be lost.
func TestFewerPs(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	const ps = 4
	before := runtime.GOMAXPROCS(ps)
	defer runtime.GOMAXPROCS(before)
	h := NewHeap(t, Options{})
	testwait.Until(t, "several Ps have a cache", func() bool {
		testheap.OnAllPs(ps, func() {
			for range 100 {
				var blocks [50]unsafe.Pointer
				for i := range blocks {
					blocks[i] = h.Malloc(1000)
				}
				testheap.FreeAll(h, blocks[:])
			}
		})
		return h.Stats().Caches >= 2
	})
	runtime.GOMAXPROCS(1)
	// Growing the heap looks after the caches of Ps that are gone.
	span.TrimAll()
	p := h.Malloc(100_000)
	if s := h.Stats(); !percpu.Portable && s.Caches > 1 {
		t.Errorf("one P runs: %+v", s)
	}
	h.Free(p)
	MustHoldNothing(t, h)
}
