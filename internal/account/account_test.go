package account

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// open makes an account that is closed when the test ends. A limit of 0 is none.
func open(t *testing.T, limit, blocks, bytes int64) *Account {
	a := Open(t.Name(), limit, func() (int64, int64) { return blocks, bytes })
	t.Cleanup(func() { a.Close() })
	return a
}

// paced puts p to work for the time of a test.
func paced(t *testing.T, p Pace) {
	SetPace(&p)
	t.Cleanup(func() { SetPace(nil) })
}

func TestTake(t *testing.T) {
	before := Held()
	a, b, huge := open(t, 150, 1, 10), open(t, 0, 2, 20), open(t, 1<<62, 0, 0)
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
			t.Errorf("Take(%d) = %v, held %d", row.n, ok, row.a.Held())
		}
	}
	if sum := Held() - before; sum != 150+7+1<<40 {
		t.Errorf("the sum is %d", sum)
	}
	a.Uncharge(50)
	huge.Uncharge(7)
	b.Uncharge(1 << 40)
	if sum := Held() - before; sum != 100 || a.Held() != 100 || b.Held() != 0 {
		t.Errorf("the sum is %d", sum)
	}
	if u := Read(); u.Live < 30 || u.Blocks < 3 || u.Held < 100 {
		t.Errorf("Read = %+v", u)
	}
	a.Close()
	a.Close()
	if sum := Held() - before; sum != 0 {
		t.Errorf("the sum is %d after Close", sum)
	}
}

// TestPut counts beyond every bound, which is never refused.
func TestPut(t *testing.T) {
	a := open(t, 0, 0, 0)
	before := Held()
	paced(t, Pace{})
	SetBounds(math.MaxInt64, math.MaxInt64, before+10)
	full := open(t, 5, 0, 0)
	if full.Charge(7); full.Held() != 7 || full.TryCharge(1) {
		t.Errorf("held %d beyond the limit, or more was taken", full.Held())
	}
	full.Uncharge(7)
	a.Charge(100)
	if a.Held() != 100 || Held() != before+100 {
		t.Errorf("held %d, the sum grew by %d", a.Held(), Held()-before)
	}
	if a.TryCharge(1) {
		t.Error("what exceeds the bound on the sum was taken")
	}
	if !a.TryCharge(0) || a.Held() != 100 {
		t.Errorf("nothing was refused, or held is %d", a.Held())
	}
	a.Uncharge(91)
	if !a.TryCharge(1) || a.TryCharge(1) {
		t.Error("the bound is not where it is")
	}
}

// TestPressure sets each bound and takes memory up to it.
func TestPressure(t *testing.T) {
	a, full := open(t, 0, 0, 0), open(t, 1, 0, 0)
	now, _ := Reclaimable()
	t.Cleanup(func() {
		left, _ := Reclaimable()
		UnchargeReclaimable(left - now)
	})
	for _, kind := range []struct {
		name       string
		take, give func(n int64)
		from       func(n int64) // sets the bound n above what there is
	}{
		{"Take", func(n int64) { a.TryCharge(n) }, a.Uncharge, func(n int64) { SetBounds(Held()+n, math.MaxInt64, math.MaxInt64) }},
		{"Put", a.Charge, a.Uncharge, func(n int64) { SetBounds(Held()+n, math.MaxInt64, math.MaxInt64) }},
		{"ChargeReclaimable", ChargeReclaimable, UnchargeReclaimable, func(n int64) {
			now, _ := Reclaimable()
			SetBounds(math.MaxInt64, now+n, math.MaxInt64)
		}},
	} {
		calls := 0
		paced(t, Pace{Pressure: func() {
			calls++
			Read() // allowed: no lock is held
		}})
		Notify() // what was before does not count against this test
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
			if Notify(); calls != row.calls {
				t.Errorf("%s: after %d: %d calls, want %d", kind.name, row.take, calls, row.calls)
			}
			if Notify(); calls != row.calls { // nothing new
				t.Errorf("%s: after %d and nothing new: %d calls, want %d", kind.name, row.take, calls, row.calls)
			}
		}
		full.TryCharge(100) // refused, so nothing grows
		if Notify(); calls != 3 {
			t.Errorf("%s: %d calls after a Take that was refused", kind.name, calls)
		}
		SetPace(nil)
		kind.take(1)
		if Notify(); calls != 3 {
			t.Errorf("%s: %d calls after the end", kind.name, calls)
		}
	}
}

// TestUnpaced asks for room while package pace is not started.
func TestUnpaced(t *testing.T) {
	if err := Reclaim(1, 0, true); err != ErrUnpaced {
		t.Errorf("Reclaim = %v", err)
	}
}

// TestAuto counts what a collection could give back, and all that ever could.
func TestAuto(t *testing.T) {
	now, ever := Reclaimable()
	ChargeReclaimable(100)
	UnchargeReclaimable(30)
	ChargeReclaimable(5)
	n, e := Reclaimable()
	if n != now+75 || e != ever+105 {
		t.Errorf("%d now, %d ever", n-now, e-ever)
	}
	UnchargeReclaimable(75)
	if n, e = Reclaimable(); n != now || e != ever+105 {
		t.Errorf("%d now, %d ever, in the end", n-now, e-ever)
	}
}

// TestReleases sets the hooks of package own.
func TestReleases(t *testing.T) {
	defer SetReleases(queued, toDrain, releasing)
	if Queued() != 0 || ToDrain() != 0 || Releasing() {
		t.Errorf("before SetReleases: %d, %d, %v", Queued(), ToDrain(), Releasing())
	}
	SetReleases(func() int64 { return 7 }, func() int64 { return 9 }, func() bool { return true })
	if Queued() != 7 || ToDrain() != 9 || !Releasing() {
		t.Errorf("%d, %d, %v", Queued(), ToDrain(), Releasing())
	}
}

// TestIdle sets the hooks of the root package.
func TestIdle(t *testing.T) {
	defer SetIdle(idle, trim)
	Trim(0)
	if Idle() != 0 {
		t.Errorf("Idle = %d before SetIdle", Idle())
	}
	n := int64(7)
	SetIdle(func() int64 { return n }, func(keep int64) { n = keep })
	if Idle() != 7 {
		t.Errorf("Idle = %d", Idle())
	}
	if Trim(0); Idle() != 0 {
		t.Errorf("Idle = %d after Trim", Idle())
	}
}

// TestList reads accounts that others read while some open and close.
func TestList(t *testing.T) {
	for _, u := range []struct {
		name        string
		limit, held int64
	}{{"TestList b", 0, 5}, {"TestList a", 0, 1}, {"TestList b", 99, 9}, {"TestList c", 0, 0}} {
		a := Open(u.name, u.limit, func() (int64, int64) { return 1, u.held / 2 })
		t.Cleanup(func() { a.Close() })
		a.Charge(u.held)
	}
	list := slices.DeleteFunc(List(), func(u Usage) bool { return u.Name < "TestList" || u.Name > "TestList z" })
	want := []Usage{
		{Name: "TestList a", Held: 1, Live: 0, Blocks: 1},
		{Name: "TestList b", Held: 9, Limit: 99, Live: 4, Blocks: 1},
		{Name: "TestList b", Held: 5, Live: 2, Blocks: 1},
		{Name: "TestList c", Blocks: 1},
	}
	if !slices.Equal(list, want) {
		t.Errorf("%+v, want %+v", list, want)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				a := Open("TestList", 0, func() (int64, int64) { return 0, 0 })
				a.Charge(1)
				if i := slices.IndexFunc(List(), func(u Usage) bool { return u.Name == "TestList" }); i < 0 {
					t.Error("an account is not in the list")
				}
				a.Close()
			}
		})
	}
	wg.Wait()
	if slices.ContainsFunc(List(), func(u Usage) bool { return u.Name == "TestList" }) {
		t.Error("an account is in the list that was closed")
	}
}

// TestTakeThatFits takes what fits, while other goroutines ask for what never does.
// They must not be in the way.
func TestTakeThatFits(t *testing.T) {
	for _, where := range []string{"account", "sum"} {
		const room = 1000
		limit := int64(0)
		paced(t, Pace{})
		if where == "account" {
			limit = room
		} else {
			SetBounds(math.MaxInt64, math.MaxInt64, Held()+room)
		}
		a := open(t, limit, 0, 0)
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
	before, auto := Held(), func() int64 { n, _ := Reclaimable(); return n }
	autoBefore := auto()
	paced(t, Pace{Pressure: func() {}, Reclaim: func(int64, int, bool) error { return ErrUnpaced }})
	SetBounds(before+most/2, autoBefore+most/2, before+most)
	var wg sync.WaitGroup
	accounts := []*Account{open(t, 0, 0, 0), open(t, 0, 0, 0), open(t, 0, 0, 0)}
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
				ChargeReclaimable(n)
				Notify()
				UnchargeReclaimable(n)
				a.Uncharge(n)
			}
		})
	}
	wg.Wait()
	for _, a := range accounts {
		if a.Held() != 0 {
			t.Errorf("held %d", a.Held())
		}
	}
	if Held() != before || auto() != autoBefore {
		t.Errorf("the sum drifted by %d, what can be given back by %d", Held()-before, auto()-autoBefore)
	}
	if !accounts[0].TryCharge(most) || accounts[1].TryCharge(1) {
		t.Error("the bound is not where it was")
	}
}

// TestHammerTake takes and gives from many goroutines. The limit holds at every
// moment, and the counts are exact in the end.
func TestHammerTake(t *testing.T) {
	const limit = 1000
	a := open(t, limit, 0, 0)
	before := Held()
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
	if a.Held() != 0 || Held() != before {
		t.Errorf("held %d, the sum changed by %d", a.Held(), Held()-before)
	}
	if !a.TryCharge(limit) {
		t.Error("all was given back, and the limit cannot be taken")
	}
}

// TestTakeHuge takes so much of an account without a limit that the sum would overflow.
// Held never shows such a sum.
func TestTakeHuge(t *testing.T) {
	const most = math.MaxInt64 / 4 * 3
	a := open(t, 0, 0, 0)
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

// TestTakeBelowZero takes from an account after more was given back than was taken, as
// when a heap is destroyed beside other calls. Others must not be refused for it.
func TestTakeBelowZero(t *testing.T) {
	before := total.Load()
	total.Store(-1000)
	defer total.Store(before)
	a := Open("test", 0, nil)
	defer a.Close()
	a.Charge(-100)
	if !a.TryCharge(1) {
		t.Error("refused")
	}
	a.Uncharge(-99)
}

// TestTryUncharge gives back what is held, and not a byte more.
func TestTryUncharge(t *testing.T) {
	a := open(t, 0, 0, 0)
	a.Charge(10)
	before := Held()
	if a.TryUncharge(11) || a.Held() != 10 || Held() != before {
		t.Errorf("a byte more than is held: %d are held, %d of %d in all", a.Held(), Held(), before)
	}
	if !a.TryUncharge(10) || a.Held() != 0 || Held() != before-10 {
		t.Errorf("all: %d are held, %d of %d in all", a.Held(), Held(), before)
	}
}
