package gcwatch

import (
	"runtime"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestGoroutineID compares the numbers of many goroutines that live at the same time. Each
// keeps its number while its stack moves, and from thread to thread.
func TestGoroutineID(t *testing.T) {
	const n = 1000
	var met, all sync.WaitGroup
	var mu sync.Mutex
	seen := map[uintptr]bool{}
	met.Add(n)
	for range n {
		all.Go(func() {
			id := GoroutineID()
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
				testcall.Deep(20, func() {
					if now := GoroutineID(); now != id {
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

func BenchmarkGoroutineID(b *testing.B) {
	for b.Loop() {
		GoroutineID()
	}
}
