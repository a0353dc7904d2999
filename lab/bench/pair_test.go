//go:build cgo

package bench

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/CannibalVox/cgoalloc"

	"github.com/cheapgo/cheap"
)

// pairSize is the size of a block that is freed as soon as it is allocated.
const pairSize = 64

func heapPairs(tb testing.TB) work { return pairsOn(newHeap(tb)) }

// pairsOn is a work for one goroutine of any number.
func pairsOn(h *cheap.Heap) work {
	return func(n int) {
		for range n {
			h.Free(h.Malloc(pairSize))
		}
	}
}

func localPairs(tb testing.TB) work {
	l := newLocal(tb)
	return func(n int) {
		for range n {
			l.Free(l.Malloc(pairSize))
		}
	}
}

func nativePairs64(tb testing.TB) work {
	return func(n int) {
		if got := nativePairs(n, pairSize); got != n {
			tb.Fatalf("malloc failed %d times", n-got)
		}
	}
}

func cgoallocPairs(tb testing.TB) work {
	alloc, err := cgoalloc.CreateFixedBlockAllocator(&cgoalloc.DefaultAllocator{}, 4096, pairSize, 8)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := alloc.Destroy(); err != nil {
			tb.Error(err)
		}
	})
	return func(n int) {
		for range n {
			alloc.Free(alloc.Malloc(pairSize))
		}
	}
}

// privatePairs pops and pushes a private free list.
func privatePairs() work {
	list := &struct {
		_    [64]byte // the list has its own cache lines
		free uint32
		next [15]uint32
		_    [64]byte
	}{}
	return func(n int) {
		for range n {
			b := list.free & 7
			list.free = list.next[b]
			list.next[b] = list.free
			list.free = b
		}
	}
}

// BenchmarkPair allocates and frees 64 bytes.
func BenchmarkPair(b *testing.B) {
	for _, c := range []struct {
		allocator string
		open      contender
	}{
		{"heap", heapPairs},
		{"local", localPairs},
		{"native", nativePairs64},
		{"cgoalloc", cgoallocPairs},
	} {
		b.Run("allocator="+c.allocator, func(b *testing.B) {
			run := c.open(b)
			b.ResetTimer()
			run(b.N)
		})
	}
}

// BenchmarkPairParallel does it on every P. Run it with -cpu 1,2: the allocator "none"
// shares nothing, and shows what the machine can do.
func BenchmarkPairParallel(b *testing.B) {
	b.Run("allocator=heap", func(b *testing.B) {
		h := newHeap(b)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				h.Free(h.Malloc(pairSize))
			}
		})
	})
	b.Run("allocator=none", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			run := privatePairs()
			for pb.Next() {
				run(1)
			}
		})
	})
}

// scaling returns rounds that compare how much a second P slows a heap with how much
// it slows a loop that shares nothing. With one P, nothing is compared.
func scaling(tb testing.TB) func(turn int) float64 {
	if runtime.GOMAXPROCS(0) < 2 {
		tb.Skip("there is one P")
	}
	const n = 200_000
	heap := pairsOn(newHeap(tb))
	ours := []work{heap, heap}
	theirs := []work{privatePairs(), privatePairs()}
	return func(turn int) float64 {
		if turn%2 == 0 {
			return slowdown(ours, n) / slowdown(theirs, 4*n)
		}
		y := slowdown(theirs, 4*n)
		return slowdown(ours, n) / y
	}
}

// slowdown returns how much longer all works take at once than one alone.
func slowdown(works []work, n int) float64 {
	alone := together(works[:1], n)
	return float64(together(works, n)) / float64(alone)
}

// together runs works at once, on a goroutine each, and returns how long that
// took.
func together(works []work, n int) time.Duration {
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for _, w := range works {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-begin
			w(n)
		})
	}
	ready.Wait()
	start := time.Now()
	close(begin)
	done.Wait()
	return time.Since(start)
}
