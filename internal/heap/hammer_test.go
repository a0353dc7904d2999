package heap_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

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
	h := NewHeap(t, Options{})
	stop := disturb(h)
	const goroutines = 8
	rounds := testheap.HammerRounds(20_000)
	blocks := make(chan testheap.Handed, 300)
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
				b := testheap.Wrap(a, size, g<<32+uint64(i))
				mallocs.Add(1)
				select {
				case blocks <- b:
				default:
					b.Unwrap(t, a)
				}
				if i%2 == 0 {
					select {
					case b := <-blocks:
						b.Unwrap(t, a)
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
	var rest []testheap.Handed
	for b := range blocks {
		bytes += int64(h.UsableSize(b.P))
		rest = append(rest, b)
	}
	for range 100 {
		runtime.GC() // the counts must not care
	}
	if s := h.Stats(); s.Blocks != int64(live) || s.Bytes != bytes || s.Mallocs != mallocs.Load() || s.Frees != s.Mallocs-s.Blocks {
		t.Errorf("%+v, want %d blocks of %d bytes after %d mallocs", s, live, bytes, mallocs.Load())
	}
	for _, b := range rest {
		b.Unwrap(t, h)
	}
	MustHoldNothing(t, h)
}

// TestHammerOneClass has all goroutines allocate and free in bulk the same size,
// so that batches travel between their caches all the time.
func TestHammerOneClass(t *testing.T) {
	for _, size := range []int{16, 1000, 3000, 10_000} {
		h := NewHeap(t, Options{})
		stop := disturb(h)
		rounds := testheap.HammerRounds(300_000 / (size + 2000))
		var wg sync.WaitGroup
		for g := range 6 {
			wg.Go(func() {
				var blocks []testheap.Handed
				for i := range rounds {
					for j := range 50 + 50*g {
						blocks = append(blocks, testheap.Wrap(h, size, uint64(g)<<40+uint64(i<<20+j)))
					}
					for n := len(blocks); len(blocks) > n/4; {
						last := len(blocks) - 1
						blocks[last].Unwrap(t, h)
						blocks = blocks[:last]
					}
				}
				for _, b := range blocks {
					b.Unwrap(t, h)
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
		MustHoldNothing(t, h)
	}
}

// TestHammerLocals opens Locals, passes their blocks on, and closes them or
// drops them. The heap ends up with every block.
func TestHammerLocals(t *testing.T) {
	h := NewHeap(t, Options{})
	rounds := testheap.HammerRounds(100)
	blocks := make(chan testheap.Handed, 1000)
	var wg sync.WaitGroup
	var mallocs atomic.Int64
	for g := range 6 {
		wg.Go(func() {
			for i := range rounds {
				l := h.NewLocal()
				for j := range 100 {
					b := testheap.Wrap(l, (g+i+j)*37%2000, uint64(g)<<40+uint64(i<<20+j))
					mallocs.Add(1)
					select {
					case blocks <- b:
					case b2 := <-blocks:
						b2.Unwrap(t, l)
						b.Unwrap(t, l)
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
		b.Unwrap(t, h)
	}
	if s := h.Stats(); s.Blocks != 0 || s.Mallocs != mallocs.Load() {
		t.Errorf("%+v, want %d mallocs and no blocks", s, mallocs.Load())
	}
	testwait.Until(t, "the caches of dropped Locals are gone", func() bool {
		runtime.GC()
		h.Trim()
		return h.Stats().Caches <= percpu.Max && h.Stats().Cached == 0
	})
	MustHoldNothing(t, h)
}

// TestHammerLarge allocates, moves and frees large blocks.
func TestHammerLarge(t *testing.T) {
	h := NewHeap(t, Options{})
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
			var blocks [8]testheap.Handed
			for i := range rounds {
				b := &blocks[r.IntN(len(blocks))]
				seed := g<<40 + uint64(i)
				switch {
				case b.P == nil:
					*b = testheap.Wrap(h, size(), seed)
				case i%3 == 0:
					b.Unwrap(t, h)
					*b = testheap.Handed{}
				default:
					testcall.Want(t, shadow.Check(b.P, b.Size, b.Seed))
					*b = testheap.Handed{P: h.Realloc(b.P, size()), Size: 40, Seed: seed}
					b.Size = h.UsableSize(b.P)
					shadow.Fill(b.P, b.Size, seed)
				}
			}
			for _, b := range blocks {
				if b.P != nil {
					b.Unwrap(t, h)
				}
			}
		})
	}
	wg.Wait()
	stop()
	MustHoldNothing(t, h)
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
				var blocks []testheap.Handed
				for j := range 100 {
					blocks = append(blocks, testheap.Wrap(a, j*j%3000, uint64(g)<<40+uint64(i<<20+j)))
				}
				blocks = append(blocks, testheap.Wrap(a, 100_000, uint64(i)))
				if i%2 == 0 {
					for _, b := range blocks {
						b.Unwrap(t, a)
					}
					testcall.Want(t, h.Destroy())
					continue
				}
				if err, ok := h.Destroy().(*LiveError); !ok || err.Blocks != int64(len(blocks)) {
					t.Errorf("Destroy with %d live blocks: %v", len(blocks), err)
				}
				for _, b := range blocks {
					testcall.Want(t, shadow.Check(b.P, b.Size, b.Seed))
				}
				h.DestroyAll()
			}
		})
	}
	wg.Wait()
}
