package account

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync/atomic"
)

// Options configure an [Account].
type Options struct {
	Name  string // for people to read
	Limit int64  // the most that the account may hold, in bytes; 0 is no bound

	// Live counts what is handed out. It is called by List and TryLive only, with no lock of this
	// package held. Quick says that it waits for no lock.
	Live  func() (blocks, bytes int64)
	Quick bool

	// InCHeap says that the bytes are part of the C heap.
	InCHeap bool

	// Declared says that the account counts memory of others, as the program has declared it. These
	// numbers may be wrong. The other accounts count what their holders have from the system.
	Declared bool
}

// An Account counts the bytes of one holder. [Ledger.Open] makes it. Its methods may be
// called from any goroutine, and under any lock.
type Account struct {
	o         Options
	ledger    *Ledger
	number    uint64 // accounts are numbered in the order in which they are opened
	held      atomic.Int64
	shortfall atomic.Int64 // see Shortfall
}

// Open returns an account, whose bytes are part of the sums of the ledger.
func (l *Ledger) Open(o Options) *Account {
	a := &Account{o: o, ledger: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened++
	a.number = l.opened
	l.open[a] = true
	return a
}

// Close takes the account out of the sums. It returns the bytes that were still
// held, and forgets them. Nothing is charged after it.
func (a *Account) Close() (left int64) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	delete(a.ledger.open, a)
	left = a.held.Swap(0)
	a.ledger.add(a, -left)
	return left
}

// TryCharge adds n bytes, unless the account's limit or the ledger's Ceiling
// would be exceeded. It reports whether it did. The caller calls
// [Ledger.Notify] some time later, when it holds no lock.
func (a *Account) TryCharge(n int64) bool {
	limit := a.o.Limit
	if limit == 0 {
		limit = math.MaxInt64 // Held does not overflow
	}
	for {
		held := a.held.Load()
		if n > 0 && held > limit-n { // does not overflow, even if held is below 0
			a.shortfall.Store(0)
			return false
		}
		if a.held.CompareAndSwap(held, held+n) {
			break
		}
	}
	l := a.ledger
	for {
		sum := l.held.Load()
		if n > 0 && sum > l.ceiling.Load()-n {
			a.held.Add(-n)
			a.shortfall.Store(n)
			return false
		}
		if l.held.CompareAndSwap(sum, sum+n) {
			l.addParts(a, n)
			if sum+n >= l.heldAt.Load() {
				l.pressed.Store(true)
			}
			return true
		}
	}
}

// Shortfall returns the n of the last TryCharge that was refused, if the Ceiling refused it,
// or 0 if the account's own limit did.
func (a *Account) Shortfall() int64 { return a.shortfall.Load() }

// Charge is TryCharge for bytes that exist already. It cannot be refused.
func (a *Account) Charge(n int64) {
	a.held.Add(n)
	if a.ledger.add(a, n) >= a.ledger.heldAt.Load() {
		a.ledger.pressed.Store(true)
	}
}

// Uncharge subtracts n bytes.
func (a *Account) Uncharge(n int64) {
	a.held.Add(-n)
	a.ledger.add(a, -n)
}

// TryUncharge is Uncharge if the account holds at least n bytes. It reports whether it
// does.
func (a *Account) TryUncharge(n int64) bool {
	for {
		held := a.held.Load()
		if n > held {
			return false
		}
		if a.held.CompareAndSwap(held, held-n) {
			a.ledger.add(a, -n)
			return true
		}
	}
}

// Held returns the bytes that the account counts.
func (a *Account) Held() int64 { return a.held.Load() }

// Full reports whether n more bytes would exceed Options.Limit.
func (a *Account) Full(n int64) bool { return a.o.Limit != 0 && n > a.o.Limit-a.held.Load() }

// Name returns Options.Name.
func (a *Account) Name() string { return a.o.Name }

// Limit returns Options.Limit.
func (a *Account) Limit() int64 { return a.o.Limit }

// Number returns the number of the account.
func (a *Account) Number() uint64 { return a.number }

// TryLive counts what is handed out, or returns false if that may wait for a lock.
func (a *Account) TryLive() (blocks, bytes int64, ok bool) {
	if !a.o.Quick {
		return 0, 0, false
	}
	blocks, bytes = a.o.Live()
	return blocks, bytes, true
}

// Usage is what an account counts at one moment.
type Usage struct {
	Name   string // of the holder
	Held   int64  // bytes taken from the system, metadata included
	Limit  int64  // the holder's own bound on Held, 0 if there is none
	Live   int64  // bytes in blocks that have been handed out
	Blocks int64  // number of these blocks
}

// All returns the open accounts, those opened first at the front.
func (l *Ledger) All() []*Account {
	l.mu.Lock()
	open := make([]*Account, 0, len(l.open))
	for a := range l.open {
		open = append(open, a)
	}
	l.mu.Unlock()
	slices.SortFunc(open, func(x, y *Account) int { return cmp.Compare(x.number, y.number) })
	return open
}

// List reads all accounts. They are sorted by name, then by Held, the largest
// first.
func (l *Ledger) List() []Usage {
	l.Refresh()
	open := l.All()
	list := make([]Usage, 0, len(open))
	for _, a := range open {
		blocks, bytes := a.o.Live()
		list = append(list, Usage{Name: a.o.Name, Held: a.held.Load(), Limit: a.o.Limit, Live: bytes, Blocks: blocks})
	}
	slices.SortFunc(list, func(x, y Usage) int {
		return cmp.Or(strings.Compare(x.Name, y.Name), cmp.Compare(y.Held, x.Held))
	})
	return list
}

// Largest returns the n accounts that hold the most, the largest first. Live and Blocks are
// not counted, so it takes some nanoseconds for each account.
func (l *Ledger) Largest(n int) []Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	var top []Usage
	for a := range l.open {
		u := Usage{Name: a.o.Name, Held: a.held.Load(), Limit: a.o.Limit}
		if u.Held <= 0 || len(top) == n && u.Held <= top[n-1].Held {
			continue
		}
		at := len(top)
		for at > 0 && top[at-1].Held < u.Held {
			at--
		}
		top = slices.Insert(top, at, u)
		top = top[:min(n, len(top))]
	}
	return top
}
