package pace

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// TestLine compares a line with a slice: the first is the one that has waited longest.
func TestLine(t *testing.T) {
	var l waitQueue
	var want []*waiter
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 5000 {
		if r.IntN(2) == 0 || len(want) == 0 {
			want = append(want, l.enter())
		} else {
			k := 0
			if r.IntN(3) == 0 {
				k = r.IntN(len(want))
			}
			l.leave(want[k])
			want = slices.Delete(want, k, k+1)
		}
		for k, w := range want {
			if w.isFirst() != (k == 0) {
				t.Fatalf("step %d: the goroutine in place %d of %d is the first: %v", i, k, len(want), w.isFirst())
			}
		}
	}
}

// TestHammerLine has goroutines wait for their turn. There is one first at a time.
func TestHammerLine(t *testing.T) {
	var l waitQueue
	var inside atomic.Int32
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				w := l.enter()
				if (g+i)%7 == 0 { // gives up
					l.leave(w)
					continue
				}
				<-w.first
				if inside.Add(1) != 1 {
					t.Error("two are the first")
				}
				inside.Add(-1)
				l.leave(w)
			}
		})
	}
	wg.Wait()
}
