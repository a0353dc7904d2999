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

// TestDrainWaitsForCleanups has a cleanup of the runtime that does not return until the test says so.
func TestDrainWaitsForCleanups(t *testing.T) {
	goOn, made := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(made)
		runtime.AddCleanup(new([16]byte), func(int) { <-goOn }, 0)
	}()
	<-made
	runtime.GC()
	var r reader
	if _, whole := drain(&r, true, patience{drain: 50 * time.Millisecond, stuck: time.Hour}); whole {
		t.Error("the drain is over, and the cleanup has not returned")
	}
	close(goOn)
	if race.Build {
		return // the end of the sweep may not be reported
	}
	testwait.Until(t, "the end of the drain", func() bool {
		_, whole := drain(&r, true, longestMetered)
		return whole
	})
}

// TestFollow has little, and then so much come during a collection of the program that the next one is due.
func TestFollow(t *testing.T) {
	p := start(t, Options{})
	account.Process.ChargeReclaimable(mib)
	p.collected()
	p.mu.Lock()
	if n := p.collector.baseline.reclaimable; n < mib {
		t.Errorf("%d bytes are reclaimable after the collection", n)
	}
	p.mu.Unlock()
	account.Process.UnchargeReclaimable(mib)
	testwait.Until(t, "a collection of the program", func() bool { return p.to(externalGC) })
	for range 4 {
		account.Process.ChargeReclaimable(64 * mib)
		defer account.Process.UnchargeReclaimable(64 * mib)
	}
	p.admitted.Store(1)
	p.tasks.Add(1)
	p.follow(0, 0)
	if begun, _ := p.counts(); begun == 0 || p.admitted.Load() > 0 {
		t.Errorf("%d collections have begun; %d goroutines are admitted", begun, p.admitted.Load())
	}
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

// TestNotInVain ends collections at a limit. Those that have freed bytes are not in vain, even if others have taken as
// many meanwhile. Those that a request has demanded, and that have freed none, are in the end, if all releases have run.
func TestNotInVain(t *testing.T) {
	held := account.Process.Held()
	for _, row := range []struct {
		demanded, done         bool
		freed, held            int64
		vain, barren, doubtful bool
	}{
		{true, true, mib, held, false, false, false},
		{true, false, mib, held, false, false, false},
		{true, true, 0, held + 1, false, true, false},
		{true, true, 0, held, true, true, false},
		{true, false, 0, held, false, false, true},
		{false, true, 0, held, false, true, false},
	} {
		p, last, begin := new(pacer), drained, time.Now().Add(-time.Hour)
		p.notBefore.Store(1)
		for range 2 * mostFutile {
			p.demanded = row.demanded
			last = p.endOf(row.done, row.freed, row.held, begin)
		}
		late := p.collector.futileUntil.After(time.Now().Add(time.Hour))
		if (last == futile) != row.vain || late != row.vain || p.barren.Load() != row.barren || p.doubtful != row.doubtful {
			t.Errorf("%+v: %s, barren %v, doubtful %v", row, eventNames[last], p.barren.Load(), p.doubtful)
		}
		if p.demanded || (p.notBeforeScarce.Load() == 1) != row.barren {
			t.Errorf("%+v: demanded %v, the next one not before %d", row, p.demanded, p.notBeforeScarce.Load())
		}
	}
}

// TestMark drops objects, and has them found by a collection that begins after that, also beside others.
func TestMark(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	var r reader
	started := 0
	for i := range 100 {
		if i == 50 {
			defer testwait.Loop(1, runtime.GC)()
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

// forced returns how many collections runtime.GC has done.
func forced() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumForcedGC
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
		account.Process.ChargeReclaimable(mib)
		account.Process.UnchargeReclaimable(mib)
		account.Process.Queued.Add(stuck)
		for len(account.Process.Wakeups()) > 0 {
			<-account.Process.Wakeups()
		}
		p.mu.Lock()
		p.gauge.excess, p.demanded = 64, stuck > 0
		p.admitted.Store(1)
		p.bound.Store(0)
		largest, before := account.Process.LargestCharge(), forced()
		p.to(reached)
		p.launch(true)
		p.mu.Unlock()
		settled(t, p)
		account.Process.Queued.Add(-stuck)
		if p.mu.Lock(); p.doubtful != (stuck > 0) || p.barren.Load() != (stuck == 0) || p.stuck.Load() != stuck {
			t.Errorf("%d stuck: doubtful %v, barren %v, %d stuck", stuck, p.doubtful, p.barren.Load(), p.stuck.Load())
		}
		if forced() == before {
			t.Error("demanded, or in doubt, and the sweep was not over for certain")
		}
		if n := p.admitted.Load(); n != 0 || p.bound.Load() == 0 || p.gauge.excess != 63 || account.Process.LargestCharge() >= largest {
			t.Errorf("admitted %d, bound %d, excess %d, largest %d of %d", n, p.bound.Load(), p.gauge.excess, account.Process.LargestCharge(), largest)
		}
		if len(account.Process.Wakeups()) == 0 {
			t.Error("nobody was woken")
		}
		p.mu.Unlock()
		longest.drain, longest.stuck = time.Hour, time.Hour // nothing collects now
	}
}
