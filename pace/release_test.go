package pace

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/own"
)

// pendingFor has a collection under way that does not end until the test does.
func pendingFor(t *testing.T, p *pacer) {
	t.Helper()
	wait(t, "the last collection to end", func() bool { p.to(reached); return p.to(begun) })
	account.SetAutoFrom(0)
	t.Cleanup(func() {
		p.to(marked)
		p.to(drained)
	})
}

// TestSlowDown allocates while a collection is pending: the goroutine yields, or
// waits if there are many auto bytes, but not in a release function.
func TestSlowDown(t *testing.T) {
	p := start(t, Options{})
	a := newAccount(t, AccountOptions{})
	if err := a.Add(mib); err != nil {
		t.Fatal(err)
	}
	pendingFor(t, p)
	p.bound.Store(auto() + mib)
	before := ReadStats()
	if err := a.Add(1); err != nil {
		t.Fatal(err)
	}
	st := ReadStats()
	if st.Yields != before.Yields+1 || st.Waits != before.Waits {
		t.Errorf("below the bound: %+v", st)
	}
	p.bound.Store(auto())
	begin := time.Now()
	if err := a.Add(1); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	st = ReadStats()
	if st.Waits != before.Waits+1 || took < longestWait || st.WaitTime < longestWait {
		t.Errorf("at the bound: %v, %+v", took, st)
	}
	for name, o := range map[string]own.Options{"Close": {}, "Drain": {Drain: true}} {
		var in, out Stats
		released := false
		o.Release = func(_ any, _ []uintptr) error {
			in = ReadStats()
			if err := a.Add(1); err != nil {
				t.Error(err)
			}
			out, released = ReadStats(), true
			return nil
		}
		o.Numbers = true
		pool := own.NewPool(o)
		var owner own.Number[int]
		if err := owner.Own(pool, 1, 100); err != nil {
			t.Fatal(err)
		}
		owner.Close()
		if pool.Drain(0); !released {
			t.Fatalf("%s: nothing was released", name)
		}
		if out.Waits != in.Waits || out.Yields != in.Yields+1 {
			t.Errorf("%s: in a release function: %+v, before %+v", name, out, in)
		}
		pool.Destroy(context.Background())
	}
}

// TestOneByOne has two goroutines wait at the bound, and room made for one: the other
// goes when its time is up.
func TestOneByOne(t *testing.T) {
	p := start(t, Options{})
	a := newAccount(t, AccountOptions{})
	for range 100 { // this is what a resource has
		account.TakeAuto(mib)
		account.GiveAuto(mib)
	}
	if err := a.Add(mib); err != nil {
		t.Fatal(err)
	}
	pendingFor(t, p)
	p.bound.Store(auto())
	took := make([]time.Duration, 2)
	var wg sync.WaitGroup
	var passed atomic.Int32
	for i := range took {
		wg.Go(func() {
			begin := time.Now()
			p.waitAtBound()
			took[i] = time.Since(begin)
			passed.Add(1)
		})
		wait(t, "it to wait, or its time to be up", func() bool {
			p.atBound.mu.Lock()
			defer p.atBound.mu.Unlock()
			return p.atBound.turns.Len()+int(passed.Load()) == i+1
		})
	}
	a.Remove(mib / 2)
	wg.Wait()
	if took[1] < longestWait {
		t.Errorf("the first went after %v, and the second after %v, with room for one", took[0], took[1])
	}
	if n := p.promised.Load(); n != 2 {
		t.Errorf("%d are expected to bring something", n)
	}
	account.SetAutoFrom(0)
	if err := a.Add(1); err != nil {
		t.Fatal(err)
	}
	if n := p.promised.Load(); n != 2 { // one has come, and has waited
		t.Errorf("%d are expected to bring something, after one has", n)
	}
}

// TestNoPassingALook has a goroutine hold the lock of the pacer, as one that has lost
// its processor does, while no collection is under way. Beyond the bound a goroutine
// that takes memory waits until the bounds are known, but not in a release function.
func TestNoPassingALook(t *testing.T) {
	p := start(t, Options{})
	a := newAccount(t, AccountOptions{})
	p.mu.Lock()
	p.bound.Store(auto() + mib)
	account.SetAutoFrom(0)
	if err := a.Add(mib / 2); err != nil { // below the bound it does not
		t.Fatal(err)
	}
	pool := own.NewPool(own.Options{Numbers: true, Release: func(_ any, _ []uintptr) error { return a.Add(mib) }})
	var owner own.Number[int]
	if err := owner.Own(pool, 1, 100); err != nil {
		t.Fatal(err)
	}
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := a.Add(mib); err != nil {
			t.Error(err)
		}
		done.Store(true)
	})
	time.Sleep(20 * time.Millisecond)
	if done.Load() {
		t.Error("a goroutine has passed the bound unseen")
	}
	p.mu.Unlock()
	wg.Wait()
	pool.Destroy(context.Background())
}

// TestLooseWaits has a drain end without progress. Waits at the bound are short then.
func TestLooseWaits(t *testing.T) {
	const n = 30
	p := start(t, Options{})
	a := newAccount(t, AccountOptions{})
	if err := a.Add(mib); err != nil {
		t.Fatal(err)
	}
	pendingFor(t, p)
	p.bound.Store(auto())
	p.noteStuck(1, time.Hour)
	before, begin := ReadStats().Waits, time.Now()
	for range n {
		if err := a.Add(1); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begin); took > n*longestWait*9/10 {
		t.Errorf("%d waits took %v", n, took)
	}
	if waits := ReadStats().Waits - before; waits != n {
		t.Errorf("%d waits, want %d", waits, n)
	}
	p.noteStuck(0, time.Hour)
	if p.stuck.Load() != 0 {
		t.Error("releases are stuck after a drain that was not")
	}
}

// TestLimitInRelease meets a limit in a release function, which must fail at once:
// a release function that waits for releases would wait for itself.
func TestLimitInRelease(t *testing.T) {
	start(t, Options{})
	a := newAccount(t, AccountOptions{Limit: 100})
	for name, drain := range map[string]bool{"Close": false, "Drain": true} {
		var err error
		var cycles int64
		pool := own.NewPool(own.Options{Numbers: true, Drain: drain, Release: func(_ any, _ []uintptr) error {
			before := ReadStats().Cycles
			err = a.Add(101)
			cycles = ReadStats().Cycles - before
			return nil
		}})
		var owner own.Number[int]
		if err := owner.Own(pool, 1, 100); err != nil {
			t.Fatal(err)
		}
		owner.Close()
		pool.Drain(0)
		if !errors.Is(err, cheap.ErrLimit) || cycles != 0 {
			t.Errorf("%s: %v, after %d collections", name, err, cycles)
		}
		pool.Destroy(context.Background())
	}
}

// TestOwnUnderLock owns resources while it holds the lock that the release function
// takes, beyond a limit. Own neither fails nor waits for the releases, which wait for
// the lock.
func TestOwnUnderLock(t *testing.T) {
	const n, size, limit = 3000, 64 << 10, 16 << 20
	start(t, Options{Limit: limit})
	var mu sync.Mutex
	var released atomic.Int64
	pool := own.NewPool(own.Options{Numbers: true, State: &mu, Release: func(state any, r []uintptr) error {
		mu := state.(*sync.Mutex)
		mu.Lock()
		defer mu.Unlock()
		released.Add(int64(len(r)))
		return nil
	}})
	var slowest time.Duration
	for i := range n {
		mu.Lock()
		begin := time.Now()
		err := new(own.Number[int]).Own(pool, i, size)
		slowest = max(slowest, time.Since(begin))
		mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the slowest Own took %v; %d are released", slowest, released.Load())
	if released.Load() == 0 {
		t.Error("nothing was released")
	}
	if slowest > 5*time.Second {
		t.Errorf("an Own took %v", slowest)
	}
	pool.Destroy(context.Background())
	if released.Load() != n {
		t.Errorf("%d of %d are released", released.Load(), n)
	}
}
