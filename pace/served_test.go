package pace

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own"
)

// TestStopServesHeaps has a heap wait for room when Stop removes the limit. It gets its
// block.
func TestStopServesHeaps(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	for range 10 {
		p := start(t, Options{Limit: 100 * mib, MaxGCShare: 1})
		a := NewAccount(AccountOptions{Manual: true})
		most(t, a, mib)
		h, _ := cheap.NewHeap(cheap.HeapOptions{})
		before, _ := p.counts()
		got := make(chan error)
		go func() {
			b, err := h.TryMalloc(20 * mib)
			if err == nil {
				h.Free(b)
			}
			got <- err
		}()
		testwait.Until(t, "a collection for the heap", func() bool { n, _ := p.counts(); return n > before })
		Stop()
		if err := <-got; err != nil {
			t.Errorf("refused although Stop has removed the limit: %v", err)
		}
		a.Close()
		h.Destroy()
	}
}

// TestSmallAtTheLimit asks a heap for a block that is smaller than the room that is left,
// and whose span is larger. It waits in line, as others do.
func TestSmallAtTheLimit(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	p := start(t, Options{Limit: 100 * mib})
	a := newAccount(t, AccountOptions{Manual: true})
	h, _ := cheap.NewHeap(cheap.HeapOptions{})
	defer h.Destroy()
	most(t, a, 2000)
	got := make(chan error)
	go func() {
		b, err := h.TryMalloc(100)
		if err == nil {
			h.Free(b)
		}
		got <- err
	}()
	testwait.Until(t, "the heap to stand in line", p.atLimit.waiting)
	a.Remove(20 * mib)
	testcall.Want(t, <-got)
}

// TestWaitsInLine has Account.Wait come behind a Reserve that waits for more.
func TestWaitsInLine(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	bear(t, func(p *patience) { p.limit = time.Hour })
	p := start(t, Options{Limit: 200 * mib})
	a := newAccount(t, AccountOptions{Manual: true})
	b := newAccount(t, AccountOptions{Manual: true})
	most(t, a, mib)
	pool := numbers(t)
	got := reserve(t, p, pool, 20*mib)
	a.Remove(mib)
	if err := b.Add(mib); !errors.Is(err, cheap.ErrLimit) {
		t.Errorf("Add before a Reserve that waits in line: %v", err)
	}
	added := make(chan error, 1)
	go func() { added <- b.Wait(t.Context(), mib) }()
	testwait.Until(t, "Wait to stand in line", func() bool {
		p.atLimit.mu.Lock()
		defer p.atLimit.mu.Unlock()
		return p.atLimit.waiters.Len() == 2 || len(added) > 0
	})
	if len(added) > 0 {
		t.Error("Account.Wait is served before a Reserve that waits in line")
	}
	a.Remove(20 * mib)
	testcall.Want(t, errors.Join(<-got, <-added))
}

// TestTooLargeStandsInNoLine asks for more than there will ever be room for. The request
// does not stand in line.
func TestTooLargeStandsInNoLine(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	p := start(t, Options{Limit: 200 * mib})
	pool := numbers(t)
	got := make(chan error)
	before, _ := p.counts()
	go func() {
		_, err := pool.Reserve(t.Context(), 200*mib) // what the Go heap needs is a part of the limit
		got <- err
	}()
	testwait.Until(t, "a collection for it", func() bool { n, _ := p.counts(); return n > before })
	if p.atLimit.waiting() {
		t.Error("it stands in line")
	}
	if <-got == nil {
		t.Error("it is served")
	}
}

// TestBeyondTheLimit asks for more than the whole limit, in each way. No collection begins for
// that, and nothing waits.
func TestBeyondTheLimit(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	const limit = 200 * mib
	p := start(t, Options{Limit: limit})
	pool, a := numbers(t), newAccount(t, AccountOptions{})
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	testcall.Must(t, err)
	defer h.Destroy()
	settled(t, p)
	before, _ := p.counts()
	for range 20 {
		for name, ask := range map[string]func() error{
			"Reserve":   func() error { _, err := pool.Reserve(t.Context(), limit+1); return err },
			"Add":       func() error { return a.Add(limit + 1) },
			"TryMalloc": func() error { _, err := h.TryMalloc(limit + 1); return err },
		} {
			err := ask()
			var e *LimitError
			if !errors.Is(err, cheap.ErrLimit) || !errors.As(err, &e) || !strings.Contains(err.Error(), "exceed the whole limit of 200.0 MiB, so no collection was tried:") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := new(own.Number[int]).Own(pool, 1, 1); err != nil { // so that requests are not refused as in vain
			t.Fatal(err)
		}
	}
	if n, _ := p.counts(); n != before {
		t.Errorf("%d collections began", n-before)
	}
}

// TestNotInVainWhereOthersAreServed has room come by hand, at the limit, again and again.
// Collections find nothing, and more of them in a row than are in vain. Requests are served
// nevertheless.
func TestNotInVainWhereOthersAreServed(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	bear(t, func(p *patience) { p.limit = time.Hour })
	p := start(t, Options{Limit: 200 * mib, MaxGCShare: 1})
	a := newAccount(t, AccountOptions{Manual: true})
	pool := numbers(t)
	for range mostFutile {
		most(t, a, mib)
		_, before := p.counts()
		got := reserve(t, p, pool, 10*mib)
		testwait.Until(t, "two collections to find nothing", func() bool { _, ended := p.counts(); return ended >= before+2 })
		a.Remove(20 * mib)
		testcall.Must(t, <-got)
	}
	if st := ReadStats(); st.Refusals != 0 || p.state() == refused {
		t.Errorf("in state %s; %+v", stateNames[p.state()], st)
	}
}

// TestLastVainCollection has others find that collections are in vain while a heap waits for
// the last of them. Room has come by then, so the heap gets its block.
func TestLastVainCollection(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	p := start(t, Options{MaxGCShare: 1})
	h, _ := cheap.NewHeap(cheap.HeapOptions{Limit: 32 * mib})
	defer h.Destroy()
	for range 5 {
		first, err := h.TryMalloc(20 * mib)
		testcall.Must(t, err)
		p.mu.Lock()
		p.futileCount = mostFutile - 1
		p.mu.Unlock()
		testwait.Until(t, "requests not to be refused", func() bool { return !p.futile() })
		before, _ := p.counts()
		got := make(chan error)
		o := newAccount(t, AccountOptions{Manual: true})
		go func() {
			b, err := h.TryMalloc(20 * mib)
			if err == nil {
				h.Free(b)
			}
			got <- err
		}()
		testwait.Until(t, "a collection for the heap", func() bool { n, _ := p.counts(); return n > before })
		o.Add(40 * mib) // elsewhere, so that no less is held at the end
		h.Free(first)
		if err := <-got; err != nil {
			t.Errorf("refused although there is room: %v", err)
		}
		o.Close()
	}
}
