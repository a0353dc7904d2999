package account

import (
	"context"
	"errors"
	"math"
	"testing"
)

// TestUnpaced asks for room while package pace is not started.
func TestUnpaced(t *testing.T) {
	l := New()
	if err := l.Reclaim(1, 0, true); err != ErrUnpaced {
		t.Errorf("Reclaim = %v", err)
	}
	tries := 0
	take := func() bool { tries++; return tries > 1 }
	if err := l.Wait(t.Context(), 5, true, take); err != ErrUnpaced || tries != 1 {
		t.Errorf("Wait = %v, after %d tries", err, tries)
	}
	if err := l.Wait(t.Context(), 5, true, take); err != nil {
		t.Errorf("with room Wait = %v", err)
	}
	l.SetPacer(pacer{})
	if err := l.Reclaim(1, 0, true); err != nil {
		t.Errorf("with a Pacer Reclaim = %v", err)
	}
	l.SetScale(7)
	l.SetPacer(nil)
	if err := l.Reclaim(1, 0, true); err != ErrUnpaced || l.Scale() != 1 {
		t.Errorf("after SetPacer(nil) Reclaim = %v, and the scale is %d", err, l.Scale())
	}
}

// TestWait calls the Pacer with what Wait got.
func TestWait(t *testing.T) {
	l := New()
	refused := errors.New("refused")
	var line bool
	l.SetPacer(pacer{wait: func(ctx context.Context, n int64, inLine bool, take func() bool) error {
		if ctx != t.Context() || n != 5 || inLine != line || !take() {
			t.Errorf("the Pacer got %v, %d and %v", ctx, n, inLine)
		}
		if l.Contended() != inLine {
			t.Errorf("a goroutine is in line: %v", l.Contended())
		}
		return refused
	}})
	for _, line = range []bool{true, false} {
		if err := l.Wait(t.Context(), 5, line, func() bool { return true }); err != refused {
			t.Errorf("in line %v: %v", line, err)
		}
	}
	if l.Contended() {
		t.Error("a goroutine is in Wait after it")
	}
}

// TestWakeups has releases send a value while a goroutine waits, and never block.
func TestWakeups(t *testing.T) {
	l := New()
	woken := func() bool {
		select {
		case <-l.Wakeups():
			return true
		default:
			return false
		}
	}
	l.ChargeReclaimable(100)
	if l.UnchargeReclaimable(10); woken() {
		t.Error("a value without a goroutine that waits")
	}
	l.AddWaiters(1)
	for range 3 {
		l.UnchargeReclaimable(10)
	}
	if !woken() || woken() {
		t.Error("not one value after three releases")
	}
	l.AddWaiters(-1)
	if l.UnchargeReclaimable(60); woken() {
		t.Error("a value after the wait")
	}
}

// TestMeanCharge follows the sizes that are charged.
func TestMeanCharge(t *testing.T) {
	l := New()
	for _, want := range []int64{1 << 20, 1 << 10} {
		for range 100 {
			l.ChargeReclaimable(want)
			l.UnchargeReclaimable(want)
		}
		if got := l.MeanCharge(); math.Abs(float64(got-want)) > 0.1*float64(want) {
			t.Errorf("the mean is %d, want %d", got, want)
		}
	}
	if l.LargestCharge() != 1<<20 {
		t.Errorf("the largest is %d", l.LargestCharge())
	}
	if l.FadeLargestCharge(); l.LargestCharge() != 3<<18 {
		t.Errorf("the largest is %d, when a quarter is forgotten", l.LargestCharge())
	}
}

// TestReclaimableBelow sets a lower bound, and gives back what is above it and below.
func TestReclaimableBelow(t *testing.T) {
	l, calls := New(), 0
	p := pacer{pressure: func() { calls++ }}
	l.SetPacer(p)
	l.ChargeReclaimable(100)
	l.SetBounds(Bounds{HeldAt: NoBound, ReclaimableAt: NoBound, ReclaimableBelow: 50, Ceiling: NoBound})
	for _, row := range []struct {
		give  int64
		calls int
	}{{50, 0}, {1, 1}, {9, 2}} {
		l.UnchargeReclaimable(row.give)
		if l.Notify(); calls != row.calls {
			t.Errorf("after %d were given back: %d calls, want %d", row.give, calls, row.calls)
		}
	}
	l.SetPacer(nil)
	l.SetPacer(p)
	l.UnchargeReclaimable(40)
	if l.Notify(); calls != 2 {
		t.Errorf("%d calls with no bound", calls)
	}
}
