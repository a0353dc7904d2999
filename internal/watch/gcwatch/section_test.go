package gcwatch

import (
	"runtime"
	"sync"
	"testing"
)

// TestSections enters and leaves sections on many goroutines, while others
// begin and end: each sees its own calls only.
func TestSections(t *testing.T) {
	const live, rounds = 500, 20
	var enter func(depth int)
	enter = func(depth int) {
		if depth == 0 {
			return
		}
		m := EnterSection()
		defer m.Leave()
		enter(depth - 1)
		runtime.Gosched()
		if !InSection() {
			t.Error("not in a release after an inner one")
		}
	}
	for range rounds {
		var wg, met sync.WaitGroup
		met.Add(live)
		for i := range live {
			wg.Go(func() {
				if InSection() {
					t.Error("a new goroutine is in a release")
				}
				if i%2 == 0 {
					enter(1 + i%5)
				}
				met.Done()
				met.Wait() // all are alive
				if InSection() {
					t.Error("in a release after the last one")
				}
				if i%3 == 0 {
					EnterSection() // and ends the goroutine in it
					defer sectionOf(GoroutineID()).Leave()
					runtime.Goexit()
				}
			})
		}
		wg.Wait()
	}
	sections.mu.Lock()
	n := sections.n
	sections.mu.Unlock()
	if n > 4*live {
		t.Errorf("%d sections, and at most %d goroutines were in a release at a time", n, live)
	}
}

// BenchmarkSection is what a section costs.
func BenchmarkSection(b *testing.B) {
	for b.Loop() {
		EnterSection().Leave()
	}
}
