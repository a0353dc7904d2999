// Package testwait has tests wait for what is to happen, until shortly before the deadline
// of the test binary: a machine that is late is no failure, and what never happens is one.
//
// Only tests import it.
package testwait

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// spare is how long before the deadline a test gives up, so that it can say what it has
// waited for.
const spare = 5 * time.Second

// Deadline returns when t is to give up. ok is false if its test binary has no deadline, or
// t does not know it.
func Deadline(t testing.TB) (at time.Time, ok bool) {
	d, knows := t.(interface{ Deadline() (time.Time, bool) })
	if !knows {
		return time.Time{}, false
	}
	if at, ok = d.Deadline(); ok {
		at = at.Add(-spare)
	}
	return at, ok
}

// Until calls f until it returns true. At the deadline it fails the test, and says that it
// has waited for what.
func Until(t testing.TB, what string, f func() bool) {
	t.Helper()
	at, limited := Deadline(t)
	for pause := 10 * time.Microsecond; !f(); pause = min(2*pause, time.Millisecond) {
		time.Sleep(pause)
		if limited && time.Now().After(at) {
			t.Fatalf("still waiting until %s", what)
		}
	}
}

// Loop has n goroutines call f again and again, until stop is called, which waits for them.
func Loop(n int, f func()) (stop func()) {
	var wg sync.WaitGroup
	var over atomic.Bool
	for range n {
		wg.Go(func() {
			for !over.Load() {
				f()
			}
		})
	}
	return func() {
		over.Store(true)
		wg.Wait()
	}
}

// Beside waits until done returns true, as Until does, while n goroutines call f again and again,
// on as many Ps. An error of f fails the test.
func Beside(t testing.TB, n int, f func() error, done func() bool) {
	t.Helper()
	var wg sync.WaitGroup
	var stop atomic.Bool
	for range n {
		wg.Go(func() {
			for !stop.Load() {
				if err := f(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	Until(t, "the goroutines have done enough", done)
	stop.Store(true)
	wg.Wait()
}

// Return calls f on another goroutine and waits until it returns. At the deadline it fails
// the test, and says that what does not return.
func Return(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	var gaveUp <-chan time.Time
	if at, limited := Deadline(t); limited {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		gaveUp = timer.C
	}
	select {
	case <-done:
	case <-gaveUp:
		t.Fatalf("%s does not return", what)
	}
}

// Collect runs a collection, and waits until the runtime has called all cleanups and
// finalizers that this one and those before it have queued. What a cleanup has started on
// another goroutine may go on.
//
// The runtime loses cleanups while GOMAXPROCS is lowered, and one that blocks keeps others.
// Collect fails the test after that.
func Collect(t testing.TB) {
	t.Helper()
	runtime.GC()
	Until(t, "the runtime has called the cleanups and finalizers that are queued", func() bool { return Queued() == 0 })
}

// Queued returns how many cleanups and finalizers are queued, or being called.
func Queued() int {
	s := []metrics.Sample{
		{Name: "/gc/cleanups/queued:cleanups"}, {Name: "/gc/cleanups/executed:cleanups"},
		{Name: "/gc/finalizers/queued:finalizers"}, {Name: "/gc/finalizers/executed:finalizers"},
	}
	metrics.Read(s)
	return int(s[0].Value.Uint64() - s[1].Value.Uint64() + s[2].Value.Uint64() - s[3].Value.Uint64())
}
