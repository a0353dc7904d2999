package worker

import (
	"testing"
	"time"

	"github.com/cheapgo/cheap/own/internal/ledger"
)

// A blocker has a kind whose release function waits until the test ends it.
type blocker struct {
	kind  ledger.Kind
	began chan struct{}
	leave chan struct{}
}

func newBlocker(workers int) *blocker {
	b := &blocker{began: make(chan struct{}, 100), leave: make(chan struct{})}
	b.kind.Name, b.kind.Sink = "blocker", NewCall(workers)
	b.kind.Release = func(_ any, _ []uintptr) error {
		b.began <- struct{}{}
		<-b.leave
		return nil
	}
	return b
}

// kill queues n dead batches of one resource.
func (b *blocker) kill(n int) {
	for range n {
		l := ledger.New(&b.kind, nil, nil, 1, ledger.OneToken)
		l.SealStock()
		b.kind.Sink.Dead(l, ledger.All)
	}
}

func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %s; %+v", what, Look())
		}
	}
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
	begin := time.Now()
	<-quick.began
	if took := time.Since(begin); took > 10*StuckAfter {
		t.Errorf("a pool waited for %v", took)
	}
	close(slow.leave)
	wait(t, "all workers to end", func() bool { return Look() == State{} && Idle() })
	if busy, armed := shared(); busy != 0 || armed {
		t.Errorf("%d workers are busy, the timer is armed: %v", busy, armed)
	}
}

// TestOwnWorkersAreNotShared blocks the workers of a pool that has its own. The
// shared ones and the timer are not concerned.
func TestOwnWorkersAreNotShared(t *testing.T) {
	b := newBlocker(3)
	b.kill(20)
	for range 3 {
		<-b.began
	}
	time.Sleep(2 * StuckAfter)
	busy, armed := shared()
	if s := Look(); s.Workers != 3 || s.Batches != 17 || busy != 0 || armed {
		t.Errorf("%+v, %d shared workers are busy, the timer is armed: %v", s, busy, armed)
	}
	close(b.leave)
	wait(t, "all workers to end", func() bool { return Look() == State{} && Idle() })
}
