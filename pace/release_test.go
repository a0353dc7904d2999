package pace

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own"
)

// pendingFor has a collection under way that does not end until the test does.
func pendingFor(t *testing.T, p *pacer) {
	t.Helper()
	testwait.Until(t, "the last collection to end", func() bool { p.to(reached); return p.to(begun) })
	account.Process.SetReclaimableAt(0)
	p.yieldAt.Store(0)
	t.Cleanup(func() {
		p.to(completed)
		p.to(drained)
	})
}

// TestSlowDown allocates while a collection is pending: the goroutine yields, or
// waits if there are many auto bytes, but not in a release function, which would wait for itself: a request that meets a
// limit there fails at once. The wait ends though there is no room. TestOneByOne has it end with room.
func TestSlowDown(t *testing.T) {
	bear(t, func(p *patience) { p.bound = time.Millisecond })
	withYields(t, 0)
	p := start(t, Options{})
	a := newAccount(t, AccountOptions{})
	testcall.Must(t, a.Add(mib))
	pendingFor(t, p)
	p.bound.Store(auto() + mib)
	before := ReadStats()
	testcall.Must(t, a.Add(1))
	st := ReadStats()
	if st.Yields != before.Yields+1 || st.Waits != before.Waits {
		t.Errorf("below the bound: %+v", st)
	}
	p.bound.Store(auto())
	testcall.Must(t, a.Add(1))
	st = ReadStats()
	if st.Waits != before.Waits+1 || st.WaitTime <= before.WaitTime {
		t.Errorf("at the bound: %+v", st)
	}
	var queue own.Queue
	full := newAccount(t, AccountOptions{Limit: 100})
	for name, o := range map[string]own.Options{"Close": {}, "Drain": {Run: queue.Run()}} {
		var in, out Stats
		released := false
		o.Release = func(_ any, _ []uintptr) error {
			in = ReadStats()
			testcall.Want(t, a.Add(1))
			out, released = ReadStats(), true
			if err := full.Wait(context.Background(), 101); !errors.Is(err, cheap.ErrLimit) {
				t.Errorf("%s: %v", name, err)
			}
			return nil
		}
		o.Numbers = true
		pool := own.NewPool(o)
		var owner own.Number[int]
		testcall.Must(t, owner.Own(pool, 1, 100))
		owner.Close()
		if queue.Drain(0); !released {
			t.Fatalf("%s: nothing was released", name)
		}
		if out.Waits != in.Waits || out.Yields != in.Yields+1 {
			t.Errorf("%s: in a release function: %+v, before %+v", name, out, in)
		}
		pool.CloseWait(context.Background())
	}
}

// withYields sets how often goroutines yield, for the time of a test. It is called before start.
func withYields(t *testing.T, each time.Duration) {
	was := yieldEach
	yieldEach = each
	t.Cleanup(func() { yieldEach = was })
}

// TestYieldsAreFew allocates much while a collection is pending. Goroutines yield as often as they may in
// all, and not for each allocation.
func TestYieldsAreFew(t *testing.T) {
	withYields(t, time.Hour)
	p := start(t, Options{})
	a := newAccount(t, AccountOptions{})
	pendingFor(t, p)
	p.bound.Store(auto() + mib)
	before := ReadStats().Yields
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				testcall.Want(t, a.Add(1))
			}
		})
	}
	wg.Wait()
	if n := ReadStats().Yields - before; n > 1 {
		t.Errorf("%d yields in 4,000 allocations, and one was allowed", n)
	}
}

// TestOneByOne has two goroutines wait at the bound, and room made for one. The other waits
// until there is room for both.
func TestOneByOne(t *testing.T) {
	bear(t, patient)
	p := start(t, Options{})
	a := newAccount(t, AccountOptions{})
	for range 100 { // this is what a resource has
		account.Process.ChargeReclaimable(mib)
		account.Process.UnchargeReclaimable(mib)
	}
	testcall.Must(t, a.Add(3*mib))
	pendingFor(t, p)
	p.bound.Store(auto())
	var wg sync.WaitGroup
	var passed atomic.Int32
	waiting := func() int {
		p.atBound.mu.Lock()
		defer p.atBound.mu.Unlock()
		return p.atBound.waiters.Len()
	}
	for i := range 2 {
		wg.Go(func() {
			p.waitAtBound()
			passed.Add(1)
		})
		testwait.Until(t, "it to wait", func() bool { return waiting() == i+1 })
	}
	a.Remove(mib / 2)
	testwait.Until(t, "the first to go", func() bool { return passed.Load() == 1 })
	if n := waiting(); n != 1 || !p.full() {
		t.Errorf("with room for one, %d wait still, and there is no more room: %v", n, p.full())
	}
	a.Remove(mib)
	wg.Wait()
	if n := p.admitted.Load(); n != 2 {
		t.Errorf("%d are expected to bring something", n)
	}
	longest.bound = time.Millisecond // nothing more makes room
	p.bound.Store(auto())
	account.Process.SetReclaimableAt(0)
	testcall.Must(t, a.Add(1))
	if n := p.admitted.Load(); n != 2 { // one has come, and has waited
		t.Errorf("%d are expected to bring something, after one has", n)
	}
}

// TestLooseWaits has a drain end without progress. Waits at the bound are short then: nothing
// else ends them here.
func TestLooseWaits(t *testing.T) {
	const n = 30
	bear(t, func(p *patience) { p.bound = time.Hour })
	p := start(t, Options{})
	a := newAccount(t, AccountOptions{})
	testcall.Must(t, a.Add(mib))
	pendingFor(t, p)
	p.bound.Store(auto())
	p.noteStuck(1, time.Hour)
	before := ReadStats().Waits
	for range n {
		testcall.Must(t, a.Add(1))
	}
	if waits := ReadStats().Waits - before; waits != n {
		t.Errorf("%d waits, want %d", waits, n)
	}
	p.noteStuck(0, time.Hour)
	if p.stuck.Load() != 0 {
		t.Error("releases are stuck after a drain that was not")
	}
}

// TestOwnUnderLock owns resources while it holds the lock that the release function
// takes, beyond a limit. Own neither fails nor waits for the releases, which wait for
// the lock.
func TestOwnUnderLock(t *testing.T) {
	const n, size, limit = 3000, 64 << 10, 16 << 20
	bear(t, func(p *patience) { *p = usual })
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
	for i := range n {
		mu.Lock()
		err := new(own.Number[int]).Own(pool, i, size)
		mu.Unlock()
		testcall.Must(t, err)
	}
	testwait.Until(t, "a release", func() bool { return released.Load() > 0 })
	pool.CloseWait(context.Background())
	if released.Load() != n {
		t.Errorf("%d of %d are released", released.Load(), n)
	}
}
