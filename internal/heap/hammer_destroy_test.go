//go:build !race || !cheap_gomem

package heap

// Not where the race detector sees blocks: what a misuser does to memory that is
// another heap's by now is a race, and is reported.

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// TestHammerDestroy destroys heaps, checked ones too, while others use them, which is misuse: they may
// panic, a checked heap with the reason that the heap is destroyed and no other. They must not fault,
// nor harm the blocks of another heap, which finds no mistake that nobody has made.
func TestHammerDestroy(t *testing.T) {
	t.Run("check=none", func(t *testing.T) {
		hammerDestroy(t, NewHeap(t, Options{}), testheap.HammerRounds(100), 200, func(int) Options { return Options{} })
	})
	t.Run("check=some", func(t *testing.T) {
		bystander := newCheckedHeap(t, Options{Check: CheckBlocks, Quarantine: 1 << 20})
		hammerDestroy(t, bystander, testheap.HammerRounds(6), 60, func(round int) Options {
			return Options{Check: CheckBlocks + CheckLevel(round%2), Quarantine: 100_000 * (round % 3)}
		})
	})
}

func hammerDestroy(t *testing.T, bystander *Heap, rounds, uses int, options func(round int) Options) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	sizes := []int{16, 64, 500, 3000, 10_000, 20_000, 70_000}
	stop := make(chan bool)
	verified := make(chan int)
	go func() { // allocates what the others lose, and looks whether it is left alone
		var live shadow.Set
		var blocks []unsafe.Pointer
		n := 0
		defer func() {
			if v := recover(); v != nil {
				t.Errorf("the bystander panics: %v", v)
			}
			testheap.FreeAll(bystander, blocks)
			verified <- n
		}()
		for {
			select {
			case <-stop:
				return
			default:
			}
			for i := range 100 {
				size := sizes[i%len(sizes)]
				p := bystander.Malloc(size)
				if err := live.Add(p, size, bystander.UsableSize(p), sizeclass.Quantum); err != nil {
					t.Error(err)
					return
				}
				blocks = append(blocks, p)
			}
			for _, p := range blocks {
				testcall.Want(t, live.Remove(p))
				bystander.Free(p)
			}
			n++
			blocks = blocks[:0]
			runtime.Gosched()
		}
	}()
	for round := range rounds {
		h, err := New(options(round))
		testcall.Must(t, err)
		checked := options(round).Check != CheckNone
		var wg sync.WaitGroup
		var ready atomic.Int32
		for g := range 4 {
			wg.Go(func() {
				defer func() {
					v := recover()
					if m, ok := v.(*MisuseError); !ok || checked && m.Reason != "the heap is destroyed" {
						t.Errorf("panic: %v", v)
					}
				}()
				var a Allocator = h
				if g == 3 {
					a = h.NewLocal()
				}
				var blocks []unsafe.Pointer
				for i := 0; ; i++ {
					if i == uses {
						ready.Add(1)
					}
					// Not written to: that would be the misuser's own fault.
					if size := sizes[i%len(sizes)]; checked && i%3 == 0 {
						blocks = append(blocks, h.Calloc(1, size))
					} else {
						blocks = append(blocks, a.Malloc(size))
					}
					if i%50 == 49 || checked && i%20 == 19 {
						blocks[0] = h.Realloc(blocks[0], 200_000)
						if checked && (!h.Owns(blocks[0]) || h.UsableSize(blocks[0]) != 200_000) {
							t.Error("a block is not known")
						}
						blocks[0] = h.Realloc(blocks[0], 50_000)
						testheap.FreeAll(a, blocks)
						blocks = blocks[:0]
					}
					if i%100 == 99 {
						runtime.Gosched()
					}
					if i%1000 == 999 {
						h.Trim()
					}
				}
			})
		}
		for ready.Load() < 4 {
			runtime.Gosched()
		}
		testcall.Want(t, h.DestroyAll())
		wg.Wait()
		if checked && (h.locals != nil || h.checked.local != nil) {
			t.Error("a destroyed heap has a cache")
		}
	}
	close(stop)
	if n := <-verified; n == 0 {
		t.Error("the bystander has not come round once")
	}
	MustHoldNothing(t, bystander)
}
