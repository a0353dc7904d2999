package account

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func TestTryCharge(t *testing.T) {
	l := New()
	a, b, huge := open(t, l, 150, 1, 10), open(t, l, 0, 2, 20), open(t, l, 1<<62, 0, 0)
	if a.Limit() != 150 || b.Limit() != 0 {
		t.Errorf("the limits are %d and %d", a.Limit(), b.Limit())
	}
	for _, row := range []struct {
		a    *Account
		n    int64
		ok   bool
		held int64
	}{
		{a, 100, true, 100},
		{a, 51, false, 100},
		{a, 50, true, 150},
		{a, 1, false, 150},
		{a, 0, true, 150},
		{a, 1 << 62, false, 150},
		{huge, 7, true, 7},
		{huge, 1 << 62, false, 7},
		{b, 1 << 40, true, 1 << 40},
	} {
		if ok := row.a.TryCharge(row.n); ok != row.ok || row.a.Held() != row.held {
			t.Errorf("TryCharge(%d) = %v, held %d", row.n, ok, row.a.Held())
		}
	}
	if sum := l.Held(); sum != 150+7+1<<40 {
		t.Errorf("the sum is %d", sum)
	}
	a.Uncharge(50)
	huge.Uncharge(7)
	b.Uncharge(1 << 40)
	if sum := l.Held(); sum != 100 || a.Held() != 100 || b.Held() != 0 {
		t.Errorf("the sum is %d", sum)
	}
	mustBalance(t, l)
	if left := a.Close(); left != 100 {
		t.Errorf("Close returned %d", left)
	}
	if left := a.Close(); left != 0 {
		t.Errorf("the second Close returned %d", left)
	}
	if sum := l.Held(); sum != 0 {
		t.Errorf("the sum is %d after Close", sum)
	}
	mustBalance(t, l)
}

// TestCharge counts beyond every bound, which is never refused.
func TestCharge(t *testing.T) {
	l := New()
	a := open(t, l, 0, 0, 0)
	l.SetBounds(ceiling(10))
	full := open(t, l, 5, 0, 0)
	if full.Charge(7); full.Held() != 7 || full.TryCharge(1) {
		t.Errorf("held %d beyond the limit, or more was taken", full.Held())
	}
	full.Uncharge(7)
	a.Charge(100)
	if a.Held() != 100 || l.Held() != 100 {
		t.Errorf("held %d, the sum is %d", a.Held(), l.Held())
	}
	if a.TryCharge(1) {
		t.Error("what exceeds the bound on the sum was taken")
	}
	if !a.TryCharge(0) || a.Held() != 100 {
		t.Errorf("nothing was refused, or held is %d", a.Held())
	}
	a.Uncharge(91)
	if !a.TryCharge(1) || a.TryCharge(1) || a.Shortfall() != 1 {
		t.Errorf("the bound is not where it is, or %d bytes are missing", a.Shortfall())
	}
	a.o.Limit = 20
	if a.TryCharge(11) || a.Shortfall() != 0 {
		t.Errorf("beyond the account's own limit: %d bytes are missing under the bound", a.Shortfall())
	}
}

// TestPressure sets each bound and takes memory up to it.
func TestPressure(t *testing.T) {
	l := New()
	a, full := open(t, l, 0, 0, 0), open(t, l, 1, 0, 0)
	for _, kind := range []struct {
		name       string
		take, give func(n int64)
		from       func(n int64) // sets the bound n above what there is
	}{
		{"TryCharge", func(n int64) { a.TryCharge(n) }, a.Uncharge, func(n int64) { l.SetBounds(heldAt(l.Held() + n)) }},
		{"Charge", a.Charge, a.Uncharge, func(n int64) { l.SetBounds(heldAt(l.Held() + n)) }},
		{"ChargeReclaimable", l.ChargeReclaimable, l.UnchargeReclaimable, func(n int64) {
			now, _ := l.Reclaimable()
			l.SetBounds(reclaimableAt(now + n))
		}},
	} {
		calls := 0
		l.SetPacer(pacer{pressure: func() {
			calls++
			l.List() // allowed: no lock is held
		}})
		l.Notify() // what was before does not count against this test
		calls = 0
		kind.from(1000)
		for _, row := range []struct {
			take  int64
			calls int
		}{{500, 0}, {499, 0}, {1, 1}, {1, 2}, {-900, 2}, {10, 2}, {900, 3}} {
			if row.take > 0 {
				kind.take(row.take)
			} else {
				kind.give(-row.take)
			}
			if l.Notify(); calls != row.calls {
				t.Errorf("%s: after %d: %d calls, want %d", kind.name, row.take, calls, row.calls)
			}
			if l.Notify(); calls != row.calls { // nothing new
				t.Errorf("%s: after %d and nothing new: %d calls, want %d", kind.name, row.take, calls, row.calls)
			}
		}
		full.TryCharge(100) // refused, so nothing grows
		if l.Notify(); calls != 3 {
			t.Errorf("%s: %d calls after a TryCharge that was refused", kind.name, calls)
		}
		l.SetPacer(nil)
		kind.take(1)
		if l.Notify(); calls != 3 {
			t.Errorf("%s: %d calls after the end", kind.name, calls)
		}
	}
}

// TestReclaimable counts what a collection could give back, and all that ever could.
func TestReclaimable(t *testing.T) {
	l := New()
	now, ever := l.Reclaimable()
	l.ChargeReclaimable(100)
	l.UnchargeReclaimable(30)
	l.ChargeReclaimable(5)
	n, e := l.Reclaimable()
	if n != now+75 || e != ever+105 {
		t.Errorf("%d now, %d ever", n-now, e-ever)
	}
	l.UnchargeReclaimable(75)
	if n, e = l.Reclaimable(); n != now || e != ever+105 {
		t.Errorf("%d now, %d ever, in the end", n-now, e-ever)
	}
}

// TestList reads accounts that others read while some open and close.
func TestList(t *testing.T) {
	l := New()
	for _, u := range []struct {
		name        string
		limit, held int64
	}{{"TestList b", 0, 5}, {"TestList a", 0, 1}, {"TestList b", 99, 9}, {"TestList c", 0, 0}} {
		a := l.Open(Options{Name: u.name, Limit: u.limit, Live: func() (int64, int64) { return 1, u.held / 2 }})
		t.Cleanup(func() { a.Close() })
		a.Charge(u.held)
	}
	list := l.List()
	want := []Usage{
		{Name: "TestList a", Held: 1, Live: 0, Blocks: 1},
		{Name: "TestList b", Held: 9, Limit: 99, Live: 4, Blocks: 1},
		{Name: "TestList b", Held: 5, Live: 2, Blocks: 1},
		{Name: "TestList c", Blocks: 1},
	}
	if !slices.Equal(list, want) {
		t.Errorf("%+v, want %+v", list, want)
	}
	largest := []Usage{{Name: "TestList b", Held: 9, Limit: 99}, {Name: "TestList b", Held: 5}, {Name: "TestList a", Held: 1}}
	for n := 1; n < 5; n++ {
		if got, want := l.Largest(n), largest[:min(n, 3)]; !slices.Equal(got, want) {
			t.Errorf("the largest %d are %+v, want %+v", n, got, want)
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				a := l.Open(Options{Name: "TestList", Live: func() (int64, int64) { return 0, 0 }})
				a.Charge(1)
				if i := slices.IndexFunc(l.List(), func(u Usage) bool { return u.Name == "TestList" }); i < 0 {
					t.Error("an account is not in the list")
				}
				a.Close()
			}
		})
	}
	wg.Wait()
	if slices.ContainsFunc(l.List(), func(u Usage) bool { return u.Name == "TestList" }) {
		t.Error("an account is in the list that was closed")
	}
}

// TestTryChargeThatFits charges what fits, while other goroutines ask for what never does.
// They must not be in the way.
func TestTryChargeThatFits(t *testing.T) {
	for _, where := range []string{"account", "sum"} {
		const room = 1000
		l := New()
		limit := int64(0)
		if where == "account" {
			limit = room
		} else {
			l.SetBounds(ceiling(l.Held() + room))
		}
		a := open(t, l, limit, 0, 0)
		var done atomic.Bool
		var begun, wg sync.WaitGroup
		for range 3 {
			begun.Add(1)
			wg.Go(func() {
				begun.Done()
				for !done.Load() {
					if a.TryCharge(room + 1) {
						t.Errorf("%s: more than there is was taken", where)
						a.Uncharge(room + 1)
					}
				}
			})
		}
		begun.Wait()
		refused := 0
		for range 100_000 {
			if a.TryCharge(1) {
				a.Uncharge(1)
			} else {
				refused++
			}
		}
		done.Store(true)
		wg.Wait()
		if refused > 0 {
			t.Errorf("limit of the %s: %d takes were refused that fit", where, refused)
		}
	}
}

// TestHammerSum takes under the bound on the sum, with several accounts: nothing
// drifts, and the bound can be taken exactly in the end.
func TestHammerSum(t *testing.T) {
	const most, goroutines = 4000, 16
	l := New()
	calls := atomic.Int64{}
	l.SetPacer(pacer{pressure: func() { calls.Add(1) }})
	l.SetBounds(Bounds{HeldAt: most / 2, ReclaimableAt: most / 2, ReclaimableBelow: most / 4, Ceiling: most})
	accounts := []*Account{
		l.Open(Options{}), l.Open(Options{Declared: true}), l.Open(Options{Declared: true, InCHeap: true, Limit: most / 2}),
	}
	var wg sync.WaitGroup
	for g := range int64(goroutines) {
		wg.Go(func() {
			a := accounts[g%3]
			for i := range int64(20_000) {
				n := (g*31+i)%400 + 1
				switch {
				case i%7 == 0:
					a.Charge(n)
				case !a.TryCharge(n):
					continue
				}
				l.ChargeReclaimable(n)
				l.Notify()
				l.UnchargeReclaimable(n)
				if i%2 == 0 || !a.TryUncharge(n) {
					a.Uncharge(n)
				}
			}
		})
	}
	wg.Wait()
	for _, a := range accounts {
		if a.Held() != 0 {
			t.Errorf("held %d", a.Held())
		}
	}
	mustBalance(t, l)
	if n, ever := l.Reclaimable(); n != 0 || ever <= 0 || calls.Load() == 0 {
		t.Errorf("%d of %d could be given back, and the Pacer was called %d times", n, ever, calls.Load())
	}
	if !accounts[0].TryCharge(most) || accounts[1].TryCharge(1) {
		t.Error("the bound is not where it was")
	}
}

// TestHammerTryCharge charges and gives from many goroutines. The limit holds at every
// moment, and the counts are exact in the end.
func TestHammerTryCharge(t *testing.T) {
	l := New()
	const limit = 1000
	a := open(t, l, limit, 0, 0)
	before := l.Held()
	var wg sync.WaitGroup
	for g := range int64(8) {
		wg.Go(func() {
			for i := range int64(20_000) {
				n := (g*31+i)%400 + 1
				if a.TryCharge(n) {
					if held := a.Held(); held > limit {
						t.Errorf("held %d", held)
						return
					}
					a.Uncharge(n)
				}
				a.TryCharge(limit + 1) // must not be in the way of the others
			}
		})
	}
	wg.Wait()
	if a.Held() != 0 || l.Held() != before {
		t.Errorf("held %d, the sum changed by %d", a.Held(), l.Held()-before)
	}
	if !a.TryCharge(limit) {
		t.Error("all was given back, and the limit cannot be taken")
	}
}

// TestTryChargeHuge charges so much of an account without a limit that the sum would overflow.
// Held never shows such a sum.
func TestTryChargeHuge(t *testing.T) {
	l := New()
	const most = math.MaxInt64 / 4 * 3
	a := open(t, l, 0, 0, 0)
	if !a.TryCharge(most) {
		t.Fatal("refused")
	}
	var least int64
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 100_000 {
			if a.TryCharge(most) {
				t.Error("not refused")
			}
		}
		done.Store(true)
	})
	for !done.Load() {
		least = min(least, a.Held())
	}
	wg.Wait()
	if least < 0 || a.Held() != most {
		t.Errorf("held %d, and once %d", a.Held(), least)
	}
	a.Uncharge(most)
}

// TestTryChargeBelowZero charges an account after more was given back than was taken, as
// when a heap is destroyed beside other calls. Others must not be refused for it.
func TestTryChargeBelowZero(t *testing.T) {
	l := New()
	l.held.Store(-1000)
	a := open(t, l, 0, 0, 0)
	a.Charge(-100)
	if !a.TryCharge(1) {
		t.Error("refused")
	}
	a.Uncharge(-99)
}

// TestTryUncharge gives back what is held, and not a byte more.
func TestTryUncharge(t *testing.T) {
	l := New()
	a := open(t, l, 0, 0, 0)
	a.Charge(10)
	before := l.Held()
	if a.TryUncharge(11) || a.Held() != 10 || l.Held() != before {
		t.Errorf("a byte more than is held: %d are held, %d of %d in all", a.Held(), l.Held(), before)
	}
	if !a.TryUncharge(10) || a.Held() != 0 || l.Held() != before-10 {
		t.Errorf("all: %d are held, %d of %d in all", a.Held(), l.Held(), before)
	}
	const many = 3_000_000
	a.Charge(many)
	var begun, given atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for begun.Add(1); begun.Load() < 2; { // so that both run at the same time
			}
			for a.TryUncharge(1) {
				given.Add(1)
			}
		})
	}
	wg.Wait()
	if n := given.Load(); n != many || a.Held() != 0 {
		t.Errorf("%d bytes of %d were given back, and %d are held", n, many, a.Held())
	}
}
