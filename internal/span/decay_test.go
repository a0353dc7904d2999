package span

import (
	"testing"
	"time"
)

// waitIdle waits until nothing is idle.
func waitIdle(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); Idle() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are idle still", Idle())
		}
	}
}

// leaveIdle frees some units that were written to.
func leaveIdle(t *testing.T, units int) {
	t.Helper()
	r := allocRun(t, nil, units, 1)
	r.dirty()
	Free(r.base, r.units)
	Decay()
}

// TestDecay leaves units idle, with several times of decay.
func TestDecay(t *testing.T) {
	defer SetDecay(SetDecay(-1))
	TrimAll()
	leaveIdle(t, 3)
	if got := Idle(); got != 3*UnitSize || decay.armed.Load() {
		t.Errorf("%d bytes are idle; armed: %v", got, decay.armed.Load())
	}
	if old := SetDecay(5 * time.Millisecond); old != -1 { // what is idle already counts
		t.Errorf("it was %v", old)
	}
	waitIdle(t)
	for range 3 {
		leaveIdle(t, 10)
		waitIdle(t)
	}
	// Nothing is armed while nothing is idle.
	for deadline := time.Now().Add(20 * time.Second); decay.armed.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("still armed")
		}
	}
	SetDecay(time.Hour)
	leaveIdle(t, 1)
	if !decay.armed.Load() {
		t.Error("not armed")
	}
	SetDecay(-1)
	if decay.armed.Load() {
		t.Error("armed, although nothing is to be given back")
	}
	SetDecay(time.Hour)
	leaveIdle(t, 1)
	SetDecay(0)
	if got := Idle(); got != 0 || decay.armed.Load() {
		t.Errorf("%d bytes are idle; armed: %v", got, decay.armed.Load())
	}
	leaveIdle(t, 5)
	if got := Idle(); got != 0 {
		t.Errorf("%d bytes are idle", got)
	}
}

// TestOnTick looks whether the function is called.
func TestOnTick(t *testing.T) {
	defer SetDecay(SetDecay(time.Millisecond))
	ticks := make(chan bool, 1)
	defer OnTick(nil)
	OnTick(func() {
		Idle() // no lock is held
		select {
		case ticks <- true:
		default:
		}
	})
	leaveIdle(t, 1)
	select {
	case <-ticks:
	case <-time.After(20 * time.Second):
		t.Error("not called")
	}
	waitIdle(t)
}
