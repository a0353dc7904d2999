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

// TestHammerDestroy destroys heaps while others use them, which is misuse: they
// may panic, but must not fault, nor harm the blocks of another heap.
func TestHammerDestroy(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	rounds := testheap.HammerRounds(100)
	bystander := newHeap(t, Options{})
	stop := make(chan bool)
	verified := make(chan int)
	go func() { // allocates what the others lose, and looks whether it is left alone
		var live shadow.Set
		var blocks []unsafe.Pointer
		n := 0
		defer func() {
			freeAll(bystander, blocks)
			verified <- n
		}()
		for {
			select {
			case <-stop:
				return
			default:
			}
			for i := range 100 {
				size := []int{16, 64, 500, 3000, 10_000, 70_000}[i%6]
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
	for range rounds {
		h, err := New(Options{})
		testcall.Must(t, err)
		var wg sync.WaitGroup
		var ready atomic.Int32
		for g := range 4 {
			wg.Go(func() {
				defer recoverMisuse(t)
				var a Allocator = h
				if g == 3 {
					a = h.NewLocal()
				}
				var blocks []unsafe.Pointer
				for i := 0; ; i++ {
					if i == 200 {
						ready.Add(1)
					}
					// Not written to: that would be the misuser's own fault.
					blocks = append(blocks, a.Malloc([]int{16, 64, 500, 3000, 10_000, 70_000}[i%6]))
					if i%50 == 49 {
						blocks[0] = h.Realloc(blocks[0], 200_000)
						blocks[0] = h.Realloc(blocks[0], 50_000)
						freeAll(a, blocks)
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
		h.DestroyAll()
		wg.Wait()
	}
	close(stop)
	if n := <-verified; n == 0 {
		t.Error("the bystander has not come round once")
	}
	mustHoldNothing(t, bystander)
}
