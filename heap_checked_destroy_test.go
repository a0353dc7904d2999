//go:build !race || !cheap_gomem

package cheap

// Not where the race detector sees blocks, as in heap_hammer_destroy_test.go.

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

// TestHammerCheckedDestroy destroys checked heaps while others use them, which is misuse. Those
// may panic, with the reason that the heap is destroyed and no other. Neither DestroyAll nor
// another checked heap finds a mistake that nobody has made.
func TestHammerCheckedDestroy(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	sizes := []int{16, 500, 3000, 20_000, 70_000}
	bystander := newCheckedHeap(t, HeapOptions{Check: CheckBlocks, Quarantine: 1 << 20})
	stop, stopped := make(chan bool), make(chan int)
	go func() { // allocates what the others lose
		n := 0
		defer func() { stopped <- n }()
		defer recoverNothing(t)
		for {
			select {
			case <-stop:
				return
			default:
			}
			var blocks []unsafe.Pointer
			for i := range 100 {
				p := bystander.Malloc(sizes[i%len(sizes)])
				*(*int)(p) = i
				blocks = append(blocks, p)
			}
			for i, p := range blocks {
				if *(*int)(p) != i {
					t.Error("a block of another heap was written to")
				}
				bystander.Free(p)
			}
			n++
			runtime.Gosched()
		}
	}()
	for round := range hammerRounds(12) {
		h, err := NewHeap(HeapOptions{Check: CheckBlocks + CheckLevel(round%2), Quarantine: 100_000 * (round % 3)})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var ready atomic.Int32
		for g := range 4 {
			wg.Go(func() {
				defer mustRecoverDestroyed(t)
				var a Allocator = h
				if g == 3 {
					a = h.NewLocal()
				}
				var blocks []unsafe.Pointer
				for i := 0; ; i++ {
					if i == 60 {
						ready.Add(1)
					}
					size := sizes[i%len(sizes)]
					// Not written to: that would be the misuser's own fault.
					switch i % 3 {
					case 0:
						blocks = append(blocks, h.Calloc(1, size))
					default:
						blocks = append(blocks, a.Malloc(size))
					}
					if i%20 == 19 {
						blocks[0] = h.Realloc(blocks[0], 200_000)
						if !h.Owns(blocks[0]) || h.UsableSize(blocks[0]) != 200_000 {
							t.Error("a block is not known")
						}
						for _, p := range blocks {
							a.Free(p)
						}
						blocks = blocks[:0]
					}
				}
			})
		}
		for ready.Load() < 4 {
			runtime.Gosched()
		}
		if err := h.DestroyAll(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
	close(stop)
	if n := <-stopped; n == 0 {
		t.Error("the bystander has not come round once")
	}
	if s := bystander.Stats(); s.Blocks != 0 || s.Bytes != 0 {
		t.Errorf("%+v", s)
	}
	if err := bystander.Destroy(); err != nil {
		t.Error(err)
	}
}

// recoverNothing is deferred where nothing may panic.
func recoverNothing(t *testing.T) {
	if v := recover(); v != nil {
		t.Errorf("panic: %v", v)
	}
}

// mustRecoverDestroyed is deferred where the use of a destroyed heap ends a goroutine.
func mustRecoverDestroyed(t *testing.T) {
	v := recover()
	if m, ok := v.(*MisuseError); !ok || m.Reason != "the heap is destroyed" {
		t.Errorf("panic: %v", v)
	}
}
