package span

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// waitIdle waits until nothing is idle.
func waitIdle(t *testing.T) {
	t.Helper()
	testwait.Until(t, "nothing is idle", func() bool { return Idle() == 0 })
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
	testwait.Until(t, "no timer is armed", func() bool { return !decay.armed.Load() })
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

// TestDecayCurve frees units at random times, in a time that the test makes: half of the
// decay passes with each tick. What is freed between two ticks is idle at both, and has
// left memory at the next one. What is used again meanwhile stays.
func TestDecayCurve(t *testing.T) {
	defer SetDecay(SetDecay(-1))
	TrimAll()
	SetDecay(24 * time.Hour) // so no timer ticks
	r := rand.New(rand.NewPCG(1, 7))
	var live, young, old []run // handed out; freed since the last tick; freed before
	idle := func() (n uintptr) {
		for _, r := range append(append([]run{}, young...), old...) {
			n += uintptr(r.units) * UnitSize
		}
		return n
	}
	for tickNumber := range 300 {
		for range r.IntN(6) {
			switch r.IntN(3) {
			case 0:
				live = append(live, allocRun(t, live, 1+r.IntN(8), 1))
				live[len(live)-1].dirty()
				// It may have taken idle units.
				young, old = without(young, live[len(live)-1]), without(old, live[len(live)-1])
			default:
				if len(live) > 0 {
					i := r.IntN(len(live))
					Free(live[i].base, live[i].units)
					for u := range live[i].units {
						young = append(young, run{live[i].base + uintptr(u)*UnitSize, 1})
					}
					live = append(live[:i], live[i+1:]...)
					Decay()
				}
			}
		}
		if got, want := Idle(), idle(); got != want {
			t.Fatalf("before tick %d: %d bytes are idle, want %d", tickNumber, got, want)
		}
		if idle() > 0 && !decay.armed.Load() {
			t.Fatalf("tick %d: memory is idle and no timer is armed", tickNumber)
		}
		tick(decay.serial)
		gone := old
		young, old = nil, young
		if got, want := Idle(), idle(); got != want {
			t.Fatalf("after tick %d: %d bytes are idle, want %d", tickNumber, got, want)
		}
		for _, r := range gone {
			if !osmem.DecommitRevokes && !r.zero() {
				t.Fatalf("after tick %d: the memory at %#x has contents, although it was idle for two ticks", tickNumber, r.base)
			}
		}
		for _, r := range old {
			r.mustBeDirty(t)
		}
	}
	for _, r := range live {
		r.mustBeDirty(t)
		Free(r.base, r.units)
	}
	TrimAll()
}

// mustBeDirty looks whether r has what dirty has written.
func (r run) mustBeDirty(t *testing.T) {
	t.Helper()
	for a := r.base; a < r.end(); a += UnitSize {
		if *(*byte)(osmem.Pointer(a + 100)) != 1 || *(*byte)(osmem.Pointer(a + UnitSize - 1)) != 1 {
			t.Fatalf("the unit at %#x has lost its contents", a)
		}
	}
}

// without returns the runs, of one unit each, that are not in taken.
func without(units []run, taken run) (rest []run) {
	for _, u := range units {
		if u.base < taken.base || u.base >= taken.end() {
			rest = append(rest, u)
		}
	}
	return rest
}

// A holder counts the ticks.
type holder struct {
	ticks atomic.Int64
	in    func() // called in a tick, or nil
}

func (h *holder) Tick() {
	Idle() // no lock is held
	h.ticks.Add(1)
	if h.in != nil {
		h.in()
	}
}

// TestHolder looks whether the holder is told of ticks.
func TestHolder(t *testing.T) {
	defer SetDecay(SetDecay(time.Millisecond))
	var h holder
	defer SetHolder(nil)
	SetHolder(&h)
	leaveIdle(t, 1)
	testwait.Until(t, "there is a tick", func() bool { return h.ticks.Load() > 0 })
	waitIdle(t)
}

// TestStaleTick runs a tick that SetDecay has come before: the timer has gone off, and its
// goroutine has not run yet, or it is in the holder.
func TestStaleTick(t *testing.T) {
	defer SetDecay(SetDecay(time.Hour))
	var h holder
	defer SetHolder(nil)
	SetHolder(&h)
	leaveIdle(t, 1)
	stale := decay.serial
	SetDecay(-1)
	tick(stale)
	tick(stale)
	if n, idle := h.ticks.Load(), Idle(); n != 0 || idle == 0 || decay.armed.Load() {
		t.Errorf("%d ticks, %d bytes are idle, armed: %v", n, idle, decay.armed.Load())
	}
	h.in = func() { SetDecay(time.Hour) }
	tick(decay.serial)
	if Age(); Idle() == 0 {
		t.Error("a tick that is stale has aged the units")
	}
	TrimAll()
}
