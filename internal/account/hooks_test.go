package account

import (
	"context"
	"errors"
	"math"
	"testing"
)

// TestWait calls the hook with what Wait got, and without the hook takes once.
func TestWait(t *testing.T) {
	SetPace(nil)
	tries := 0
	take := func() bool { tries++; return tries > 1 }
	if err := Wait(t.Context(), 5, true, take); err != ErrUnpaced || tries != 1 {
		t.Errorf("without a hook: %v, after %d tries", err, tries)
	}
	if err := Wait(t.Context(), 5, true, take); err != nil {
		t.Errorf("without a hook, with room: %v", err)
	}
	refused := errors.New("refused")
	paced(t, Pace{Wait: func(ctx context.Context, n int64, inLine bool, take func() bool) error {
		if ctx != t.Context() || n != 5 || !take() {
			t.Errorf("the hook got %v and %d", ctx, n)
		}
		if Waiting() != inLine {
			t.Errorf("a goroutine is in line: %v", Waiting())
		}
		return refused
	}})
	if err := Wait(t.Context(), 5, true, take); err != refused {
		t.Errorf("with a hook: %v", err)
	}
	if err := Wait(t.Context(), 5, false, take); err != refused {
		t.Errorf("with a hook, and not in line: %v", err)
	}
	if Waiting() {
		t.Error("a goroutine is in Wait after it")
	}
}

// TestKicked has releases send a value while a goroutine waits, and never block.
func TestKicked(t *testing.T) {
	kicked := func() bool {
		select {
		case <-Kicked:
			return true
		default:
			return false
		}
	}
	kicked()
	ChargeReclaimable(100)
	if UnchargeReclaimable(10); kicked() {
		t.Error("a value without a goroutine that waits")
	}
	Expect(1)
	for range 3 {
		UnchargeReclaimable(10)
	}
	if !kicked() || kicked() {
		t.Error("not one value after three releases")
	}
	Expect(-1)
	if UnchargeReclaimable(60); kicked() {
		t.Error("a value after the wait")
	}
}

// TestSize follows the sizes that are taken.
func TestSize(t *testing.T) {
	for _, want := range []int64{1 << 20, 1 << 10} {
		for range 100 {
			ChargeReclaimable(want)
			UnchargeReclaimable(want)
		}
		if got := MeanCharge(); math.Abs(float64(got-want)) > 0.1*float64(want) {
			t.Errorf("the size is %d, want %d", got, want)
		}
	}
}

// TestAutoBelow sets a lower bound, and gives back what is above it and below.
func TestAutoBelow(t *testing.T) {
	calls := 0
	paced(t, Pace{Pressure: func() { calls++ }})
	ChargeReclaimable(100)
	now, _ := Reclaimable()
	Notify()
	calls = 0
	SetReclaimableBelow(now - 50)
	for _, row := range []struct {
		give  int64
		calls int
	}{{50, 0}, {1, 1}, {9, 2}} {
		UnchargeReclaimable(row.give)
		if Notify(); calls != row.calls {
			t.Errorf("after %d were given back: %d calls, want %d", row.give, calls, row.calls)
		}
	}
	SetPace(nil)
	paced(t, Pace{Pressure: func() { calls++ }})
	UnchargeReclaimable(40)
	if Notify(); calls != 2 {
		t.Errorf("%d calls with no bound", calls)
	}
}
