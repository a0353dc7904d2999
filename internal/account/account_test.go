package account

import (
	"sync"
	"testing"
)

// open makes an account that is closed when the test ends.
func open(t *testing.T, blocks, bytes int64) *Account {
	a := Open(func() (int64, int64) { return blocks, bytes })
	t.Cleanup(a.Close)
	return a
}

func TestTake(t *testing.T) {
	before := Held()
	a, b := open(t, 1, 10), open(t, 2, 20)
	for _, row := range []struct {
		a        *Account
		n, limit int64
		ok       bool
		held     int64
	}{
		{a, 100, 0, true, 100},
		{a, 50, 150, true, 150},
		{a, 1, 150, false, 150},
		{a, 0, 150, true, 150},
		{a, 1 << 62, 1 << 62, false, 150},
		{a, 1, 100, false, 150},
		{b, 1 << 40, 0, true, 1 << 40},
	} {
		if ok := row.a.Take(row.n, row.limit); ok != row.ok || row.a.Held() != row.held {
			t.Errorf("Take(%d, %d) = %v, held %d", row.n, row.limit, ok, row.a.Held())
		}
	}
	if sum := Held() - before; sum != 150+1<<40 {
		t.Errorf("the sum is %d", sum)
	}
	a.Give(50)
	b.Give(1 << 40)
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

// TestPressure sets a bound and takes memory up to it.
func TestPressure(t *testing.T) {
	a := open(t, 0, 0)
	start := Held()
	var calls int
	var last int64
	SetPressure(start+1000, func(held int64) {
		calls++
		last = held
		Read() // allowed: no lock is held
	})
	defer SetPressure(0, nil)
	Notify() // what was before does not count against this test
	calls = 0
	for _, row := range []struct {
		take  int64
		calls int
	}{{500, 0}, {499, 0}, {1, 1}, {1, 2}, {-900, 2}, {10, 2}, {900, 3}} {
		if row.take > 0 {
			a.Take(row.take, 0)
		} else {
			a.Give(-row.take)
		}
		if Notify(); calls != row.calls {
			t.Errorf("after %d: %d calls, want %d", row.take, calls, row.calls)
		}
		Notify() // nothing new
		if calls != row.calls || calls > 0 && last < start+1000 {
			t.Errorf("after %d: %d calls, the last with %d", row.take, calls, last)
		}
	}
	a.Take(100, 1) // refused, so nothing grows
	if Notify(); calls != 3 {
		t.Errorf("%d calls after a Take that was refused", calls)
	}
	SetPressure(0, nil)
	a.Take(1, 0)
	if Notify(); calls != 3 {
		t.Errorf("%d calls after the end", calls)
	}
}

// TestHammerTake takes and gives from many goroutines. The limit holds at every
// moment, and the counts are exact in the end.
func TestHammerTake(t *testing.T) {
	a := open(t, 0, 0)
	before := Held()
	const limit = 1000
	var wg sync.WaitGroup
	for g := range int64(8) {
		wg.Go(func() {
			for i := range int64(20_000) {
				n := (g*31+i)%400 + 1
				if a.Take(n, limit) {
					if held := a.Held(); held > limit {
						t.Errorf("held %d", held)
						return
					}
					a.Give(n)
				}
				a.Take(limit+1, limit) // must not be in the others' way
			}
		})
	}
	wg.Wait()
	if a.Held() != 0 || Held() != before {
		t.Errorf("held %d, the sum changed by %d", a.Held(), Held()-before)
	}
	if !a.Take(limit, limit) {
		t.Error("all was given back, and the limit cannot be taken")
	}
}
