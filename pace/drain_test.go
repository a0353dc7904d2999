package pace

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// TestDrainWaitsForWalk drops objects whose functions do not return until the test says so. A
// drain is not over before all of them have.
func TestDrainWaitsForWalk(t *testing.T) {
	const n = 200
	bear(t, func(p *patience) { p.drain, p.stuck = time.Hour, time.Hour })
	calls, goOn := new(atomic.Int64), make(chan struct{})
	made := make(chan struct{})
	go func() {
		defer close(made)
		for range n {
			gcwatch.AddCleanup(new([16]byte), func(calls *atomic.Int64) {
				<-goOn
				calls.Add(1)
			}, calls)
		}
	}()
	<-made
	runtime.GC()
	over := make(chan int64)
	go func() {
		var r reader
		if _, whole := drain(&r, true, longest); !whole {
			t.Error("the drain has given up")
		}
		over <- calls.Load()
	}()
	testwait.Until(t, "the walk to begin", gcwatch.Walking)
	select {
	case <-over:
		t.Fatal("the drain is over, and no function has returned")
	default:
	}
	close(goOn)
	testwait.Until(t, "the end of the drain", func() bool {
		select {
		case got := <-over:
			if got != n {
				t.Errorf("the drain is over after %d calls of %d", got, n)
			}
			return true
		default:
			runtime.GC() // in case that the end of the sweep is not reported
			return false
		}
	})
}

// TestStillness has a drain look while no release ends, on a machine that is not busy and on one that is.
func TestStillness(t *testing.T) {
	const d = 200 * time.Millisecond
	for _, row := range []struct {
		each time.Duration // from look to look
		want int           // the first look at which the drain gives up
	}{{time.Millisecond, 201}, {2 * time.Millisecond, 101}, {20 * time.Millisecond, 101}, {d, 101}} {
		begin := time.Now()
		s, looks := stillness{since: begin}, 1
		for !s.longer(d, begin.Add(time.Duration(looks)*row.each)) {
			looks++
		}
		if looks != row.want {
			t.Errorf("a look each %v: %d, want %d", row.each, looks, row.want)
		}
	}
}

// TestNotInVain ends collections for requests at a limit. Those that have freed bytes are
// not in vain, even if others have taken as many meanwhile, and those that have freed none
// are, in the end.
func TestNotInVain(t *testing.T) {
	p := new(pacer)
	held := account.Process.Held()
	for _, row := range []struct {
		freed, held int64
		vain        bool
	}{
		{mib, held, false},
		{0, held + 1, false},
		{0, held, true},
	} {
		last := drained
		for range 2 * mostFutile {
			last = p.endOf(true, row.freed, row.held, time.Now())
		}
		if (last == futile) != row.vain {
			t.Errorf("%d bytes freed, %d more held before: %s", row.freed, row.held-held, eventNames[last])
		}
	}
	for range 2 * mostFutile {
		if e := p.endOf(false, 0, held, time.Now()); e != drained {
			t.Errorf("a collection that no request wanted: %s", eventNames[e])
		}
	}
}

// TestMark drops objects, and has them found by a collection that begins after that, also beside others.
func TestMark(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	var r reader
	var over atomic.Bool
	var others sync.WaitGroup
	started := 0
	for i := range 100 {
		if i == 50 {
			others.Go(func() {
				for !over.Load() {
					runtime.GC()
				}
			})
		}
		var object weak.Pointer[[32]byte]
		var dropped sync.WaitGroup
		dropped.Go(func() { object = weak.Make(new([32]byte)) })
		dropped.Wait()
		if swept, _ := mark(&r, false); !swept {
			started++
		}
		if object.Value() != nil {
			t.Fatalf("step %d: an object that was dropped before is there", i)
		}
	}
	over.Store(true)
	others.Wait()
	if started == 0 && !race.Build {
		t.Error("no collection was started without runtime.GC")
	}
}

// TestClockIsSet has the wall clock set during a collection. What its sweep has taken is no less than nothing, and no
// more than the collection.
func TestClockIsSet(t *testing.T) {
	begin := time.Now().Add(-time.Second)
	for set, want := range map[time.Duration]time.Duration{-time.Hour: 0, time.Hour: time.Second} {
		mark := time.Now().Round(0).Add(-set)
		if d := sinceMark(mark, begin); d < want || d > want+time.Since(begin)-time.Second {
			t.Errorf("set by %v: %v", set, d)
		}
	}
}

// TestDoubt has a collection find nothing while a release is stuck, and then another one. The first may have missed
// something.
func TestDoubt(t *testing.T) {
	bear(t, func(p *patience) { p.stuck = 10 * time.Millisecond })
	p := start(t, Options{})
	for _, stuck := range []int64{1, 0} {
		if stuck == 0 && race.Build {
			return // the end of the sweep may not be reported, and nothing else ends the wait then
		}
		account.Process.Queued.Add(stuck)
		p.mu.Lock()
		p.to(reached)
		p.launch(true)
		p.mu.Unlock()
		settled(t, p)
		account.Process.Queued.Add(-stuck)
		if p.mu.Lock(); p.doubtful != (stuck > 0) || p.barren.Load() != (stuck == 0) {
			t.Errorf("%d stuck: doubtful %v, barren %v", stuck, p.doubtful, p.barren.Load())
		}
		p.mu.Unlock()
		longest.drain, longest.stuck = time.Hour, time.Hour // nothing collects now
	}
}
