package pace

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cheapgo/cheap"
)

// TestStopServesHeaps has a heap wait for room when Stop removes the limit. It gets its
// block.
func TestStopServesHeaps(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	for range 10 {
		p := start(t, Options{Limit: 100 * mib})
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
		wait(t, "a collection for the heap", func() bool { n, _ := p.counts(); return n > before })
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
	wait(t, "the heap to stand in line", p.atLimit.waiting)
	a.Remove(20 * mib)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestAddWaitsInLine has Account.Add come behind a Reserve that waits for more.
func TestAddWaitsInLine(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	p := start(t, Options{Limit: 200 * mib})
	a := newAccount(t, AccountOptions{Manual: true})
	b := newAccount(t, AccountOptions{Manual: true})
	most(t, a, mib)
	pool := numbers(t)
	got := reserve(t, p, pool, 20*mib)
	a.Remove(mib)
	if err := b.Add(mib); err == nil && p.atLimit.waiting() {
		t.Error("Account.Add is served before a Reserve that waits in line")
	}
	<-got
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
		_, err := pool.Reserve(t.Context(), 1<<30)
		got <- err
	}()
	wait(t, "a collection for it", func() bool { n, _ := p.counts(); return n > before })
	if p.atLimit.waiting() {
		t.Error("it stands in line")
	}
	if <-got == nil {
		t.Error("it is served")
	}
}

// TestNotInVainWhereOthersAreServed has room come each millisecond, by hand, at the limit.
// Collections find nothing, and requests are served nevertheless.
func TestNotInVainWhereOthersAreServed(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	start(t, Options{Limit: 200 * mib})
	a := newAccount(t, AccountOptions{Manual: true})
	most(t, a, 35*mib)
	pool := numbers(t)
	var wg sync.WaitGroup
	var served, refused atomic.Int64
	begin := time.Now()
	for range 8 {
		wg.Go(func() {
			for time.Since(begin) < time.Second {
				r, err := pool.Reserve(t.Context(), 10*mib)
				if err == nil {
					served.Add(1)
					time.Sleep(time.Millisecond)
					r.Release()
					continue
				}
				refused.Add(1)
				time.Sleep(time.Millisecond)
			}
		})
	}
	wg.Wait()
	t.Logf("%d served, %d refused", served.Load(), refused.Load())
	if refused.Load() > served.Load()/4 {
		t.Errorf("%d requests are refused, and %d served, though room comes all the time", refused.Load(), served.Load())
	}
}

// TestLastVainCollection has others find that collections are in vain while a heap waits for
// the last of them. Room has come by then, so the heap gets its block.
func TestLastVainCollection(t *testing.T) {
	setMemoryLimit(t, math.MaxInt64)
	p := start(t, Options{})
	h, _ := cheap.NewHeap(cheap.HeapOptions{Limit: 32 * mib})
	defer h.Destroy()
	for range 10 {
		first, err := h.TryMalloc(20 * mib)
		if err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		p.vainCount = mostVain - 1
		p.mu.Unlock()
		wait(t, "requests not to be refused", func() bool { return !p.inVain() })
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
		wait(t, "a collection for the heap", func() bool { n, _ := p.counts(); return n > before })
		o.Add(40 * mib) // elsewhere, so that no less is held at the end
		h.Free(first)
		if err := <-got; err != nil {
			t.Errorf("refused although there is room: %v", err)
		}
		o.Close()
	}
}
