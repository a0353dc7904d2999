package heap

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// A handed block is on its way from one goroutine to another. It is filled with
// the pattern of its seed.
type handed struct {
	p    unsafe.Pointer
	size int
	seed uint64
}

// wrap allocates a block and fills it.
func wrap(a Allocator, size int, seed uint64) handed {
	p := a.Malloc(size)
	shadow.Fill(p, size, seed)
	return handed{p, size, seed}
}

// unwrap looks at the contents of a block and frees it.
func (b handed) unwrap(t *testing.T, a Allocator) {
	if err := shadow.Check(b.p, b.size, b.seed); err != nil {
		t.Errorf("block at %p of %d bytes: %v", b.p, b.size, err)
	}
	a.Free(b.p)
}

// disturb changes GOMAXPROCS and trims h, over and over, until stop is called.
func disturb(h *Heap) (stop func() int) {
	return testheap.ChangeProcs(6, func(i int) {
		if i%3 == 0 {
			h.Trim()
		}
		for range 50 {
			runtime.Gosched()
		}
	})
}

// TestHammerHandOver has many goroutines allocate blocks, pass them on, verify
// and free what they get, through the heap and through Locals that they open
// and close, while GOMAXPROCS changes and the heap is trimmed.
func TestHammerHandOver(t *testing.T) {
	h := newHeap(t, Options{})
	stop := disturb(h)
	const goroutines = 8
	rounds := testheap.HammerRounds(20_000)
	blocks := make(chan handed, 300)
	var mallocs atomic.Int64
	var wg sync.WaitGroup
	for g := range uint64(goroutines) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(g, 4))
			var a Allocator = h
			for i := range rounds {
				if i%500 == 499 {
					if l, ok := a.(*Local); ok {
						l.Destroy()
						a = h
					} else {
						a = h.NewLocal()
					}
				}
				size := r.IntN(1 << (4 + r.IntN(11)))
				if i%1000 == 0 {
					size += 50_000
				}
				b := wrap(a, size, g<<32+uint64(i))
				mallocs.Add(1)
				select {
				case blocks <- b:
				default:
					b.unwrap(t, a)
				}
				if i%2 == 0 {
					select {
					case b := <-blocks:
						b.unwrap(t, a)
					default:
					}
				}
			}
			if l, ok := a.(*Local); ok {
				l.Destroy()
			}
		})
	}
	wg.Wait()
	stop()
	live, bytes := len(blocks), int64(0)
	close(blocks)
	var rest []handed
	for b := range blocks {
		bytes += int64(h.UsableSize(b.p))
		rest = append(rest, b)
	}
	for range 100 {
		runtime.GC() // the counts must not care
	}
	if s := h.Stats(); s.Blocks != int64(live) || s.Bytes != bytes || s.Mallocs != mallocs.Load() || s.Frees != s.Mallocs-s.Blocks {
		t.Errorf("%+v, want %d blocks of %d bytes after %d mallocs", s, live, bytes, mallocs.Load())
	}
	for _, b := range rest {
		b.unwrap(t, h)
	}
	mustHoldNothing(t, h)
}

// TestHammerOneClass has all goroutines allocate and free in bulk the same size,
// so that batches travel between their caches all the time.
func TestHammerOneClass(t *testing.T) {
	for _, size := range []int{16, 1000, 3000, 10_000} {
		h := newHeap(t, Options{})
		stop := disturb(h)
		rounds := testheap.HammerRounds(300_000 / (size + 2000))
		var wg sync.WaitGroup
		for g := range 6 {
			wg.Go(func() {
				var blocks []handed
				for i := range rounds {
					for j := range 50 + 50*g {
						blocks = append(blocks, wrap(h, size, uint64(g)<<40+uint64(i<<20+j)))
					}
					for n := len(blocks); len(blocks) > n/4; {
						last := len(blocks) - 1
						blocks[last].unwrap(t, h)
						blocks = blocks[:last]
					}
				}
				for _, b := range blocks {
					b.unwrap(t, h)
				}
			})
		}
		wg.Wait()
		stop()
		var want int64
		for g := range 6 {
			want += int64(rounds * (50 + 50*g))
		}
		if s := h.Stats(); s.Mallocs != want {
			t.Errorf("size %d: %+v, want %d mallocs", size, s, want)
		}
		mustHoldNothing(t, h)
	}
}

// TestHammerLocals opens Locals, passes their blocks on, and closes them or
// drops them. The heap ends up with every block.
func TestHammerLocals(t *testing.T) {
	h := newHeap(t, Options{})
	rounds := testheap.HammerRounds(100)
	blocks := make(chan handed, 1000)
	var wg sync.WaitGroup
	var mallocs atomic.Int64
	for g := range 6 {
		wg.Go(func() {
			for i := range rounds {
				l := h.NewLocal()
				for j := range 100 {
					b := wrap(l, (g+i+j)*37%2000, uint64(g)<<40+uint64(i<<20+j))
					mallocs.Add(1)
					select {
					case blocks <- b:
					case b2 := <-blocks:
						b2.unwrap(t, l)
						b.unwrap(t, l)
					}
				}
				if i%2 == g%2 {
					l.Destroy()
				}
				if i%20 == 0 {
					h.Trim()
				}
			}
		})
	}
	wg.Wait()
	close(blocks)
	for b := range blocks {
		b.unwrap(t, h)
	}
	if s := h.Stats(); s.Blocks != 0 || s.Mallocs != mallocs.Load() {
		t.Errorf("%+v, want %d mallocs and no blocks", s, mallocs.Load())
	}
	testwait.Until(t, "the caches of dropped Locals are gone", func() bool {
		runtime.GC()
		h.Trim()
		return h.Stats().Caches <= percpu.Max && h.Stats().Cached == 0
	})
	mustHoldNothing(t, h)
}

// TestHammerLarge allocates, moves and frees large blocks.
func TestHammerLarge(t *testing.T) {
	h := newHeap(t, Options{})
	stop := disturb(h)
	rounds := testheap.HammerRounds(300)
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(g, 5))
			size := func() int {
				if !testheap.Scarce && r.IntN(20) == 0 {
					return span.OwnMapping + r.IntN(span.OwnMapping)
				}
				return 33_000 + r.IntN(400_000)
			}
			var blocks [8]handed
			for i := range rounds {
				b := &blocks[r.IntN(len(blocks))]
				seed := g<<40 + uint64(i)
				switch {
				case b.p == nil:
					*b = wrap(h, size(), seed)
				case i%3 == 0:
					b.unwrap(t, h)
					*b = handed{}
				default:
					testcall.Want(t, shadow.Check(b.p, b.size, b.seed))
					*b = handed{h.Realloc(b.p, size()), 40, seed}
					b.size = h.UsableSize(b.p)
					shadow.Fill(b.p, b.size, seed)
				}
			}
			for _, b := range blocks {
				if b.p != nil {
					b.unwrap(t, h)
				}
			}
		})
	}
	wg.Wait()
	stop()
	mustHoldNothing(t, h)
}

// TestHammerHeaps makes heaps, uses them and destroys them, in many goroutines.
func TestHammerHeaps(t *testing.T) {
	rounds := testheap.HammerRounds(60)
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			for i := range rounds {
				h, err := New(Options{})
				if err != nil {
					t.Error(err)
					return
				}
				var a Allocator = h
				if i%3 == 0 {
					a = h.NewLocal()
				}
				var blocks []handed
				for j := range 100 {
					blocks = append(blocks, wrap(a, j*j%3000, uint64(g)<<40+uint64(i<<20+j)))
				}
				blocks = append(blocks, wrap(a, 100_000, uint64(i)))
				if i%2 == 0 {
					for _, b := range blocks {
						b.unwrap(t, a)
					}
					testcall.Want(t, h.Destroy())
					continue
				}
				if err, ok := h.Destroy().(*LiveError); !ok || err.Blocks != int64(len(blocks)) {
					t.Errorf("Destroy with %d live blocks: %v", len(blocks), err)
				}
				for _, b := range blocks {
					testcall.Want(t, shadow.Check(b.p, b.size, b.seed))
				}
				h.DestroyAll()
			}
		})
	}
	wg.Wait()
}
