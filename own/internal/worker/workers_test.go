package worker

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// passed is the time that has passed. In these tests none does by itself, so what the timer
// does before that, it does in vain.
var passed atomic.Int64

func init() {
	begin := time.Now()
	Now = func() time.Time { return begin.Add(time.Duration(passed.Load())) }
}

// A follower does what package own does at the end of a walk.
type follower struct{ AfterWalk }

func (follower) Swept() {}

func init() { gcwatch.Follow(follower{}) }

func pass(d time.Duration) { passed.Add(int64(d)) }

// A blocker has a kind whose release function waits until the test ends it.
type blocker struct {
	spec  batch.Spec
	began chan struct{}
	leave chan struct{}
}

func newBlocker(workers int) *blocker {
	b := &blocker{began: make(chan struct{}, 100), leave: make(chan struct{})}
	b.spec.Name, b.spec.Releaser = "blocker", NewDispatcher(workers, false)
	b.spec.Release = func(_ any, _ []uintptr) error {
		b.began <- struct{}{}
		<-b.leave
		return nil
	}
	return b
}

// kill queues n dead batches of one resource.
func (b *blocker) kill(n int) {
	for range n {
		l := batch.New(&b.spec, nil, nil, 1, batch.OneSentinel)
		l.SealStock()
		b.spec.Releaser.Dead(batch.JobOf(l, batch.All))
	}
}

// mustEnd waits until no worker is left.
func mustEnd(t *testing.T) {
	t.Helper()
	testwait.Until(t, "all workers have ended", func() bool { return CurrentState() == State{} && Idle() })
}

// shared returns how many shared workers are not stuck, and whether the timer is
// armed.
func shared() (busy int, armed bool) {
	work.mu.Lock()
	defer work.mu.Unlock()
	return work.busy, work.armed
}

// TestTimerOnlyWhileAPoolWaits blocks all shared workers. The timer is armed while
// batches wait, and starts others. It is not armed when none waits.
func TestTimerOnlyWhileAPoolWaits(t *testing.T) {
	slow, quick := newBlocker(0), newBlocker(0)
	slow.kill(20)
	for range fewBusy() {
		<-slow.began
	}
	if _, armed := shared(); !armed {
		t.Error("batches wait, and the timer is not armed")
	}
	close(quick.leave)
	quick.kill(1)
	pass(StuckAfter - 1)
	replaceStuck()
	if s := CurrentState(); s.Workers != int64(fewBusy()) {
		t.Errorf("%+v, and no worker is stuck yet", s)
	}
	pass(1)
	replaceStuck()
	<-quick.began
	close(slow.leave)
	mustEnd(t)
	if busy, armed := shared(); busy != 0 || armed {
		t.Errorf("%d workers are busy, the timer is armed: %v", busy, armed)
	}
}

// TestStuckPoolsDelayOthersLittle has hundreds of pools wait whose releases block, and behind
// them one whose releases do not. The timer looks once after StuckAfter, and then each pool
// that waits has a worker.
func TestStuckPoolsDelayOthersLittle(t *testing.T) {
	const pools = 300
	slow := make([]*blocker, pools)
	for i := range slow {
		slow[i] = newBlocker(0)
		slow[i].kill(2)
	}
	quick := newBlocker(0)
	close(quick.leave)
	for range 3 {
		quick.kill(1)
		pass(StuckAfter)
		replaceStuck()
		<-quick.began
		if s := CurrentState(); s.Workers < pools {
			t.Errorf("%+v, of %d pools that wait", s, pools)
		}
		// Else the pool has a worker when the next one is queued, and its turn is later.
		testwait.Until(t, "the pool has no worker", func() bool {
			work.mu.Lock()
			defer work.mu.Unlock()
			return quick.spec.Releaser.(*Dispatcher).running == 0
		})
	}
	for _, b := range slow {
		close(b.leave)
	}
	mustEnd(t)
}

// TestIdleAfterAWalk has a walk find nothing to release. Who waits until nothing is released is
// woken when it is over.
func TestIdleAfterAWalk(t *testing.T) {
	var walks atomic.Bool
	leave, dropped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(dropped)
		gcwatch.AddCleanup(new([4]*int), func(leave *chan struct{}) { walks.Store(true); <-*leave }, &leave)
	}()
	<-dropped
	testwait.Until(t, "the walk", func() bool { runtime.GC(); return walks.Load() })
	idle := BecameIdle()
	if Idle() {
		t.Error("Idle reports true during a walk")
	}
	close(leave)
	testwait.Return(t, "the wait", func() { <-idle })
	mustEnd(t)
}

// TestOwnWorkersAreNotShared blocks the workers of a pool that has its own. The
// shared ones and the timer are not concerned.
func TestOwnWorkersAreNotShared(t *testing.T) {
	b := newBlocker(3)
	b.kill(20)
	for range 3 {
		<-b.began
	}
	pass(StuckAfter)
	replaceStuck()
	busy, armed := shared()
	if s := CurrentState(); s.Workers != 3 || s.Batches != 17 || busy != 0 || armed {
		t.Errorf("%+v, %d shared workers are busy, the timer is armed: %v", s, busy, armed)
	}
	close(b.leave)
	mustEnd(t)
}

// kill queues n dead batches of a kind, of size resources each, at ascending addresses
// from at on, the last batch first.
func kill(k *batch.Spec, n int, size uint32, at uintptr) {
	batches := make([]*batch.Batch, n)
	for i := range batches {
		b := batch.New(k, nil, nil, size, batch.OneSentinel)
		words := make([]uintptr, size)
		for j := range words {
			words[j] = at
			at += 64
		}
		b.Fill(words)
		b.SealStock()
		batches[i] = b
	}
	for _, b := range slices.Backward(batches) {
		k.Releaser.Dead(batch.JobOf(b, batch.All))
	}
}

// bundles sets how many resources workers of a pool release in a call.
func (d *Dispatcher) bundles(n int) {
	work.mu.Lock()
	defer work.mu.Unlock()
	d.bundle = n
}

// TestBundles has many dead batches wait for a worker. It releases them in few calls, in
// the order of their addresses.
func TestBundles(t *testing.T) {
	slow := newBlocker(0)
	slow.kill(fewBusy())
	for range fewBusy() {
		<-slow.began
	}
	var mu sync.Mutex
	var calls [][]uintptr
	call := NewDispatcher(0, false)
	k := batch.Spec{Name: "bundles", Releaser: call, Release: func(_ any, words []uintptr) error {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, slices.Clone(words))
		return nil
	}}
	call.bundles(1000)
	const n, size = 40, 100
	kill(&k, n, size, 1<<20)
	close(slow.leave)
	mustEnd(t)
	total := 0
	for i, words := range calls {
		total += len(words)
		if !slices.IsSorted(words) {
			t.Errorf("call %d has its resources in another order than that of their addresses", i)
		}
		if len(words) > mostBundle {
			t.Errorf("call %d has %d resources", i, len(words))
		}
	}
	if total != n*size || len(calls[0]) != 1000 || len(calls) > n/8 {
		t.Errorf("%d resources are released in %d calls, %d in the first; want %d, and 1000", total, len(calls), len(calls[0]), n*size)
	}
	if call.entries != 0 {
		t.Errorf("%d resources are counted as queued, and none is", call.entries)
	}
}

// TestSlowBundles has a release function that takes long for each resource. So the calls
// have few, and with one that is quick again more.
func TestSlowBundles(t *testing.T) {
	var mu sync.Mutex
	most, total := 0, 0
	call := NewDispatcher(1, false)
	k := batch.Spec{Name: "slow", Releaser: call, Release: func(_ any, words []uintptr) error {
		mu.Lock()
		most, total = max(most, len(words)), total+len(words)
		mu.Unlock()
		pass(time.Duration(len(words)) * aBit * 3 / 4)
		return nil
	}}
	kill(&k, 30, 2, 1<<20)
	mustEnd(t)
	if total != 60 || most != 2 {
		t.Errorf("a call has up to %d resources, of %d; want 2, of 60", most, total)
	}
	if call.bundle != 1 {
		t.Errorf("a bundle may have %d resources", call.bundle)
	}
	k.Release = func(any, []uintptr) error { return nil }
	kill(&k, 1, 1000, 1<<20)
	mustEnd(t)
	if call.bundle != mostBundle {
		t.Errorf("a bundle may have %d resources after a release that took no time", call.bundle)
	}
}

// TestFewBehindAStuckWorker has a release that does not return. A pool whose releases were
// quick before gets another worker for the few that are queued behind it.
func TestFewBehindAStuckWorker(t *testing.T) {
	call := NewDispatcher(0, false)
	leave := make(chan struct{})
	began := make(chan int, 10)
	k := batch.Spec{Name: "stuck", Releaser: call, Release: func(_ any, words []uintptr) error {
		began <- len(words)
		if len(words) == 2 {
			<-leave
		}
		return nil
	}}
	call.bundles(1000)
	kill(&k, 1, 2, 1<<20)
	<-began
	kill(&k, 2, 3, 1<<21)
	pass(StuckAfter - 1)
	replaceStuck()
	if s := CurrentState(); s.Workers != 1 || s.Batches != 2 {
		t.Errorf("%+v, and the worker is not stuck yet", s)
	}
	pass(1)
	replaceStuck()
	if n := <-began; n != 6 {
		t.Errorf("a call has %d resources, want 6", n)
	}
	close(leave)
	mustEnd(t)
}
