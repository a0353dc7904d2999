package goroutine

import (
	"runtime"
	"sync"
	"testing"
)

// TestMarks enters and leaves sections on many goroutines, while others
// begin and end: each sees its own calls only.
func TestMarks(t *testing.T) {
	const live, rounds = 500, 20
	var enter func(depth int)
	enter = func(depth int) {
		if depth == 0 {
			return
		}
		m := Enter()
		defer m.Leave()
		enter(depth - 1)
		runtime.Gosched()
		if !Entered() {
			t.Error("not in a release after an inner one")
		}
	}
	for range rounds {
		var wg, met sync.WaitGroup
		met.Add(live)
		for i := range live {
			wg.Go(func() {
				if Entered() {
					t.Error("a new goroutine is in a release")
				}
				if i%2 == 0 {
					enter(1 + i%5)
				}
				met.Done()
				met.Wait() // all are alive
				if Entered() {
					t.Error("in a release after the last one")
				}
				if i%3 == 0 {
					Enter() // and ends the goroutine in it
					defer sectionOf(ID()).Leave()
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
		t.Errorf("%d marks, and at most %d goroutines were in a release at a time", n, live)
	}
}

// BenchmarkMark is what a section costs.
func BenchmarkMark(b *testing.B) {
	for b.Loop() {
		Enter().Leave()
	}
}
