package pace

import (
	"context"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own"
)

// numbers is a pool of numbers, whose release does nothing.
func numbers(t *testing.T) *own.Pool {
	p := own.NewPool(own.Options{Numbers: true, Release: func(_ any, _ []uintptr) error { return nil }})
	t.Cleanup(func() { p.CloseWait(context.Background()) })
	return p
}

// most has an account take nearly all that a limit leaves. It returns how many bytes
// are left.
func most(t *testing.T, a *Account, left int64) int64 {
	t.Helper()
	for account.Process.Headroom() > left {
		testcall.Must(t, a.Add(account.Process.Headroom()-left))
	}
	return account.Process.Headroom()
}

// TestReserveInOrder has goroutines wait for room, each for as much as all others. The
// one that came first is served first.
func TestReserveInOrder(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	p := start(t, Options{Limit: 100 * mib})
	a, pool := newAccount(t, AccountOptions{Manual: true}), numbers(t)
	most(t, a, mib)
	pendingFor(t, p) // so that no request is refused
	const n = 6
	var mu sync.Mutex
	var order []int
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			room, err := pool.Reserve(t.Context(), 5*mib)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			room.Close()
		})
		testwait.Until(t, "the next to wait", func() bool {
			p.atLimit.mu.Lock()
			defer p.atLimit.mu.Unlock()
			return p.atLimit.waiters.Len() == i+1
		})
	}
	a.Remove(5 * mib)
	wg.Wait()
	if !slices.IsSorted(order) || len(order) != n {
		t.Errorf("served in the order %v", order)
	}
}

// TestReserveWaitsBehindOthers has a Reserve for which there is room come when another
// one waits that wants more. It waits as well, until a context ends the wait of the first.
func TestReserveWaitsBehindOthers(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	p := start(t, Options{Limit: 100 * mib})
	a, pool := newAccount(t, AccountOptions{Manual: true}), numbers(t)
	most(t, a, 2*mib)
	pendingFor(t, p) // so that no request is refused
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	large, small := make(chan error), make(chan error)
	go func() {
		_, err := pool.Reserve(ctx, 20*mib)
		large <- err
	}()
	testwait.Until(t, "the first to wait", p.atLimit.waiting)
	go func() {
		room, err := pool.Reserve(t.Context(), mib/2)
		if err == nil {
			room.Close()
		}
		small <- err
	}()
	testwait.Until(t, "both to wait", func() bool {
		p.atLimit.mu.Lock()
		defer p.atLimit.mu.Unlock()
		return p.atLimit.waiters.Len() == 2
	})
	cancel(errors.New("the cause"))
	if err := <-large; err != context.Canceled {
		t.Errorf("the first: %v", err)
	}
	if err := <-small; err != nil {
		t.Errorf("the second, when it is the first: %v", err)
	}
	if p.atLimit.waiting() || account.Process.Contended() {
		t.Error("a goroutine waits still")
	}
}

// TestReserveSaysWhy has a release function that does not return, because the goroutine that calls Reserve holds its
// lock; and a pool whose releases wait for a Drain that no goroutine calls. A collection finds the owners dead, and gives
// nothing back.
func TestReserveSaysWhy(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	bear(t, func(p *patience) { *p = usual })
	for says, drain := range map[string]bool{"none ends: does the caller hold a lock": false, "wait until the program calls Queue.Drain": true} {
		p := start(t, Options{Limit: 100 * mib})
		var mu sync.Mutex
		var queue own.Queue
		o := own.Options{Numbers: true, Batch: 1, State: &mu, Release: func(state any, _ []uintptr) error {
			state.(*sync.Mutex).Lock()
			defer state.(*sync.Mutex).Unlock()
			return nil
		}}
		if drain {
			o.Run = queue.Run()
		}
		pool := own.NewPool(o)
		mu.Lock()
		for account.Process.Headroom() > 25*mib {
			testcall.Must(t, new(own.Number[int]).Own(pool, 1, 10*mib))
		}
		before, _ := p.counts()
		_, err := pool.Reserve(t.Context(), 30*mib)
		begun, _ := p.counts()
		mu.Unlock()
		var e *LimitError
		if !errors.As(err, &e) || (e.Stuck == 0) != drain || (e.ToDrain > 0) != drain || !strings.Contains(err.Error(), says) {
			t.Error(err)
		}
		if begun-before > 2 {
			t.Errorf("it took %d collections", begun-before)
		}
		queue.Drain(0)
		testwait.Until(t, "room", func() bool {
			room, err := pool.Reserve(t.Context(), 30*mib)
			room.Close()
			return err == nil
		})
		pool.CloseWait(context.Background())
		queue.Drain(0)
		Stop()
	}
}

// TestForgottenRooms has rooms fill a limit that are forgotten, or still there. Only the first
// make way for another, and the error names the others.
func TestForgottenRooms(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	for _, forget := range []bool{true, false} {
		start(t, Options{Limit: 100 * mib})
		pool := own.NewPool(own.Options{Numbers: true, Release: func(_ any, _ []uintptr) error { return nil }})
		held, rooms := int64(0), make([]*own.Room, 100)
		for i := 0; account.Process.Headroom() > 20*mib; i++ {
			room, err := pool.Reserve(t.Context(), 10*mib)
			testcall.Must(t, err)
			rooms[i] = &room
			held += 10 * mib
		}
		if st := pool.Stats(); st.RoomBytes != held || st.Rooms != held/10/mib {
			t.Errorf("%+v, want rooms of %d bytes", st, held)
		}
		if forget {
			clear(rooms)
		}
		room, err := pool.Reserve(t.Context(), 30*mib)
		var e *LimitError
		switch {
		case forget && err != nil:
			t.Errorf("the rooms are forgotten: %v", err)
		case !forget && (!errors.As(err, &e) || e.Rooms != held || !strings.Contains(err.Error(), "MiB by rooms of Pool.Reserve that have not ended")):
			t.Errorf("%d bytes are reserved: %v", held, err)
		}
		room.Close()
		runtime.KeepAlive(rooms)
		pool.CloseWait(context.Background()) // the error says how many rooms are left
		if n := account.Process.Reserved(); n != 0 {
			t.Errorf("forget=%v: %d bytes are reserved after Destroy", forget, n)
		}
		Stop()
	}
}

// TestRefusedWhileWaiting has requests wait when the collections at a limit turn out to
// be in vain. No other one begins then, so nothing else would end the waits.
func TestRefusedWhileWaiting(t *testing.T) {
	p := start(t, Options{})
	a := newAccount(t, AccountOptions{Limit: 10})
	pendingFor(t, p)
	if err := a.Add(11); !errors.Is(err, cheap.ErrLimit) {
		t.Errorf("Add, which does not wait: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Wait(ctx, 11); err != context.Canceled {
		t.Errorf("Wait with a context that is done: %v", err)
	}
	got := make(chan error)
	go func() { got <- a.Wait(t.Context(), 11) }()
	go func() { got <- p.Wait(t.Context(), 11, false, nil) }() // as a heap does
	testwait.Until(t, "both to wait", func() bool { return account.Process.Waiters() == 2 })
	if account.Process.Contended() || p.atLimit.waiting() {
		t.Error("a goroutine that waits at the limit of an account is in the way of others")
	}
	p.mu.Lock()
	_, p.collector.futileEver = account.Process.Reclaimable()
	p.collector.futileUntil = time.Now().Add(time.Hour)
	p.to(completed)
	p.to(futile)
	p.mu.Unlock()
	for range 2 {
		if err := <-got; !errors.Is(err, cheap.ErrLimit) {
			t.Errorf("the error is %v", err)
		}
	}
	if err := a.Add(11); !errors.Is(err, cheap.ErrLimit) || ReadStats().Cycles != 0 {
		t.Errorf("later: %v; %+v", err, ReadStats())
	}
}

// TestCollectorOffWithLimit forgets many times the limit without Reserve, with
// GOGC=off: the limit has collections start.
func TestCollectorOffWithLimit(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	bear(t, patient)
	const limit = 200 * mib
	start(t, Options{Limit: limit})
	pool := numbers(t)
	high := int64(0)
	for range 2000 {
		testcall.Must(t, new(own.Number[int]).Own(pool, 1, mib))
		high = max(high, account.Process.Held())
	}
	if st := ReadStats(); st.Cycles == 0 || high > 2*limit {
		t.Errorf("%d MiB were held at one time; %+v", high/mib, st)
	}
	t.Logf("%d MiB were held at one time", high/mib)
}

// TestGCPercentIsTheUsers has the program change GOGC all the time, while package
// pace starts, stops and collects. It never changes GOGC.
func TestGCPercentIsTheUsers(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	pool := numbers(t)
	stop := testwait.Loop(1, func() { testcall.Want(t, new(own.Number[int]).Own(pool, 1, 3*mib)) })
	is := 100
	for i := range 12 {
		err := Start(Options{Limit: int64(i%2) * 300 * mib})
		if off := i%2 == 0 && is < 0; off != (err == ErrCollectorOff) || !off && err != nil {
			t.Errorf("Start with GOGC=%d: %v", is, err)
		}
		next := []int{50, -1, 100, 800}[i%4]
		if was := debug.SetGCPercent(next); was != is {
			t.Errorf("GOGC is %d, and the program has set %d", was, is)
		}
		is = next
		SetLimit(int64(i%3) * 200 * mib)
		runtime.Gosched()
		Stop()
	}
	stop()
	if is := debug.SetMemoryLimit(-1); is != math.MaxInt64 {
		t.Errorf("the runtime's limit is %d", is)
	}
}

// TestBoundFalls removes nearly all bytes by hand. The bound follows them, without a
// collection.
func TestBoundFalls(t *testing.T) {
	p := start(t, Options{})
	a := newAccount(t, AccountOptions{})
	for range 20 {
		testcall.Must(t, a.Add(50*mib))
	}
	paced(t, p, a)
	runtime.GC() // that is seen when all bytes are there
	testwait.Until(t, "a bound above 1 GiB", func() bool { return p.bound.Load() > 1<<30 })
	settled(t, p)
	a.Remove(a.Held() - mib)
	testcall.Must(t, a.Add(mib))
	if bound := p.bound.Load(); bound > 400*mib {
		t.Errorf("the bound is %d MiB, with %d there; %+v", bound/mib, auto()/mib, p.collector.baseline)
	}
}

// TestBursts has 500 MiB come at once, stay, and go, again and again.
func TestBursts(t *testing.T) {
	bear(t, patient)
	p := start(t, Options{})
	pool := numbers(t)
	var high int64
	for range 4 {
		live := make([]*own.Number[int], 500)
		for i := range live {
			live[i] = new(own.Number[int])
			testcall.Must(t, live[i].Own(pool, 1, mib))
		}
		runtime.KeepAlive(live)
		high = max(high, auto())
	}
	settled(t, p)
	if st := ReadStats(); high > 1600*mib || st.Cycles > 60 {
		t.Errorf("%d MiB at a time; %+v", high/mib, st)
	}
	t.Logf("%d MiB at a time; %+v", high/mib, ReadStats())
}

// TestRefusalNamesLimit has requests refused that fit by the time of the error: a look has found room meanwhile.
func TestRefusalNamesLimit(t *testing.T) {
	p := start(t, Options{Limit: 64 * mib})
	for _, program := range []bool{true, false} {
		var e *LimitError
		if err := p.refusal(1, 0, program); !errors.As(err, &e) || (e.Limit == 64*mib) != program {
			t.Errorf("the limit of the program: %v, and the error is %v", program, err)
		}
	}
}
