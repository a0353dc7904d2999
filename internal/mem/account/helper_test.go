package account

import (
	"context"
	"testing"
)

// open makes an account that holds nothing when the test ends. A limit of 0 is none.
func open(t *testing.T, l *Ledger, limit, blocks, bytes int64) *Account {
	a := l.Open(Options{Name: t.Name(), Limit: limit, Live: func() (int64, int64) { return blocks, bytes }})
	t.Cleanup(func() { a.Close() })
	return a
}

// heldAt, reclaimableAt and ceiling are bounds of one kind only.
func heldAt(n int64) Bounds { return Bounds{HeldAt: n, ReclaimableAt: NoBound, Ceiling: NoBound} }
func reclaimableAt(n int64) Bounds {
	return Bounds{HeldAt: NoBound, ReclaimableAt: n, Ceiling: NoBound}
}
func ceiling(n int64) Bounds { return Bounds{HeldAt: NoBound, ReclaimableAt: NoBound, Ceiling: n} }

// A pacer is a Pacer of functions. Those that are nil do nothing.
type pacer struct {
	pressure, check func()
	wait            func(ctx context.Context, n int64, inLine bool, take func() bool) error
}

func (p pacer) Pressure() {
	if p.pressure != nil {
		p.pressure()
	}
}

func (p pacer) Check() {
	if p.check != nil {
		p.check()
	}
}

func (p pacer) Reclaim(int64, int, bool) error { return nil }

func (p pacer) Wait(ctx context.Context, n int64, inLine bool, take func() bool) error {
	return p.wait(ctx, n, inLine, take)
}

// mustBalance fails if the sums of a ledger in which nothing runs are not those of its accounts.
func mustBalance(t *testing.T, l *Ledger) {
	t.Helper()
	var held, declared, inC int64
	for _, a := range l.All() {
		n := a.Held()
		held += n
		if a.o.Declared {
			declared += n
		}
		if a.o.InCHeap {
			inC += n
		}
	}
	if l.Held() != held || l.HeldDeclared() != declared || l.heldInCHeap.Load() != inC {
		t.Errorf("the ledger has %d, declared %d, in C %d; its accounts %d, %d, %d",
			l.Held(), l.HeldDeclared(), l.heldInCHeap.Load(), held, declared, inC)
	}
}
