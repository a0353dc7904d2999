package sample

import (
	"math"
	"testing"
)

// TestRates draws picks of two rates, as a cache does, and compares how often a block was
// picked for what with the probabilities.
func TestRates(t *testing.T) {
	const size, n = 64, 400_000
	for _, r := range []Rates{{0, 100}, {6400, 0}, {6400, 100}, {640, 1000}, {1, 50}, {6400, 1}, {1, 1}} {
		wantProfile, wantGuard := 0.0, 0.0
		if r.Bytes != 0 {
			wantProfile = probability(size, r.Bytes)
		}
		if r.Guard != 0 {
			wantGuard = probability(1, r.Guard)
		}
		profiles, guards, both := 0, 0, 0
		for at := r.Distance(size); at < n; at += 1 + r.Distance(size) {
			p := r.Due(size)
			if !p.Profile && !p.Guard {
				t.Fatalf("%+v: a block that is due is picked for nothing", r)
			}
			count(&profiles, p.Profile)
			count(&guards, p.Guard)
			count(&both, p.Profile && p.Guard)
		}
		near(t, r, "profile", profiles, n, wantProfile)
		near(t, r, "guard", guards, n, wantGuard)
		near(t, r, "both", both, n, wantProfile*wantGuard)
		profiles, guards = 0, 0
		for range n {
			p := r.Draw(size)
			count(&profiles, p.Profile)
			count(&guards, p.Guard)
		}
		near(t, r, "profile of Draw", profiles, n, wantProfile)
		near(t, r, "guard of Draw", guards, n, wantGuard)
	}
	if d, p := (Rates{}).Distance(size), (Rates{}).Due(size); d != Never || p != (Pick{}) {
		t.Errorf("with rates of 0 the distance is %d, and the pick %+v", d, p)
	}
}

func count(n *int, is bool) {
	if is {
		*n++
	}
}

// near allows six standard deviations.
func near(t *testing.T, r Rates, what string, got, of int, p float64) {
	t.Helper()
	want := p * float64(of)
	if math.Abs(float64(got)-want) > 6*math.Sqrt(want*(1-p))+1 {
		t.Errorf("%+v: %s: %d of %d blocks, want about %.0f", r, what, got, of, want)
	}
}

// A counter counts the changes of rates.
type counter int

func (c *counter) RatesChanged() { *c++ }

func TestSetGuardRate(t *testing.T) {
	var calls counter
	was := heaps.Load()
	SetHeaps(&calls)
	t.Cleanup(func() { SetGuardRate(0); heaps.Store(was) })
	if old := SetGuardRate(7); old != 0 || GuardRate() != 7 || calls != 1 {
		t.Errorf("the old rate is %d, the new one %d, calls %d", old, GuardRate(), calls)
	}
	if old := SetGuardRate(-1); old != 7 || GuardRate() != 0 || calls != 2 {
		t.Errorf("the old rate is %d, the new one %d, calls %d", old, GuardRate(), calls)
	}
}
