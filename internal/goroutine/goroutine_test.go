package goroutine

import (
	"runtime"
	"sync"
	"testing"
)

// deep calls f below n frames, so that the stack grows and moves.
func deep(n int, f func()) {
	var page [1 << 10]byte
	if page[n%len(page)]++; n > 0 {
		deep(n-1, f)
	} else {
		f()
	}
	runtime.KeepAlive(&page)
}

// TestID compares the numbers of many goroutines that live at the same time. Each
// keeps its number while its stack moves, and from thread to thread.
func TestID(t *testing.T) {
	const n = 1000
	var met, all sync.WaitGroup
	var mu sync.Mutex
	seen := map[uintptr]bool{}
	met.Add(n)
	for range n {
		all.Go(func() {
			id := ID()
			mu.Lock()
			if id == 0 || seen[id] {
				t.Errorf("two live goroutines have the number %#x, or it is 0", id)
			}
			seen[id] = true
			mu.Unlock()
			met.Done()
			met.Wait() // all are alive here
			for range 3 {
				runtime.Gosched()
				deep(20, func() {
					if now := ID(); now != id {
						t.Errorf("the number %#x has become %#x", id, now)
					}
				})
			}
		})
	}
	all.Wait()
	if len(seen) != n {
		t.Errorf("%d numbers of %d goroutines", len(seen), n)
	}
}

func BenchmarkID(b *testing.B) {
	for b.Loop() {
		ID()
	}
}
