package pace

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
)

// AccountOptions configure an [Account].
type AccountOptions struct {
	// Name is shown in errors and by [Accounts]. The default is "pace.Account".
	Name string

	// Limit is the largest number of bytes in the account. 0 sets no limit.
	Limit int64

	// Manual means that only the program itself frees these bytes, so no
	// collection can help. They count for limits, and start no collection.
	Manual bool

	// CHeap says that the bytes are part of the C heap: they were allocated by malloc,
	// operator new and the like. Package cmem, in a program that imports it, counts the C heap
	// by itself, and does not count these bytes a second time.
	CHeap bool
}

// An Account counts bytes that a C library has allocated by itself, for Go values
// that free them after they become unreachable. The resources of package own and
// the heaps of package cheap are counted without one.
//
// An Account is made by [NewAccount]. Its methods may be called from any
// goroutine; those of the zero Account panic.
type Account struct {
	o       AccountOptions
	account *account.Account
	live    atomic.Int64 // number of Adds less number of Removes
	bytes   atomic.Int64 // sum of the bytes added and not removed
	closed  atomic.Bool
}

// NewAccount returns an empty account. It panics with a [cheap.MisuseError] if
// the limit is negative.
func NewAccount(o AccountOptions) *Account {
	if o.Limit < 0 {
		panicMisuse("pace", "NewAccount", "AccountOptions.Limit is negative (%d); use 0 for no limit", o.Limit)
	}
	if o.Name == "" {
		o.Name = "pace.Account"
	}
	a := &Account{o: o}
	// A call of Accounts may run before Open returns, so the function that counts
	// does not read a.account.
	a.account = account.Process.Open(account.Options{
		Name: o.Name, Limit: o.Limit, Quick: true, Declared: true, InCHeap: o.CHeap,
		Live: func() (int64, int64) { return a.live.Load(), a.bytes.Load() },
	})
	return a
}

// Add counts n bytes that the caller has allocated, or is about to allocate. If a
// collection is due, Add may start it, and wait for up to 100 ms, or a second with a limit.
//
// At a limit, that of the account or the program's, or while others wait for that, Add
// counts nothing and returns an error that wraps [cheap.ErrLimit] at once. It has a
// collection begin, which may make room for a later Add. [Account.Wait] waits for it.
//
// Add panics with a [cheap.MisuseError] if n is negative.
func (a *Account) Add(n int64) error { return a.add("Add", nil, n) }

// Wait is [Account.Add] that waits for room at a limit: for a
// collection that begins after the call, and up to a second more while releases end (100 ms
// where the limit is about what is counted). If there is no room by then, it counts nothing and
// returns the error of Add; if ctx is done before, that of ctx. After eight
// collections in a row that gave nothing back, it returns the error of Add at once, until
// more is owned or ten times the duration of a collection has passed. More bytes than the
// program's whole limit are refused at once.
//
// The caller must not hold a lock that a release function needs, because Wait waits for
// releases. There is no deadlock, because the wait is bounded, but the releases come too late
// and Wait fails.
func (a *Account) Wait(ctx context.Context, n int64) error { return a.add("Wait", ctx, n) }

// add counts n bytes for a method. Without a ctx it does not wait at a limit.
func (a *Account) add(method string, ctx context.Context, n int64) error {
	a.mustBeMade(method)
	if n < 0 {
		panicMisuse(a.o.Name, method, "%d bytes are negative; pass freed bytes to Remove", n)
	}
	inLine := !a.account.Full(n)
	behind := inLine && account.Process.Contended()
	if behind || !a.account.TryCharge(n) {
		take := func() bool { return !(behind && ctx == nil) && a.account.TryCharge(n) }
		switch err := account.Process.Wait(ctx, n, inLine, take); {
		case err == account.ErrUnpaced:
			return fmt.Errorf("cheap: %s.%s: %d bytes: %w", a.o.Name, method, n, cheap.ErrLimit)
		case ctx != nil && err != nil && err == ctx.Err():
			return err
		case err != nil:
			return fmt.Errorf("cheap: %s.%s: %w", a.o.Name, method, err)
		}
	}
	a.live.Add(1)
	a.bytes.Add(n)
	if !a.o.Manual {
		account.Process.ChargeReclaimable(n)
	}
	account.Process.Notify()
	return nil
}

// Remove subtracts n bytes that one Add has counted. It panics with a
// [cheap.MisuseError] if n is negative, or larger than the sum in the account.
// After the account's Close it does nothing.
func (a *Account) Remove(n int64) {
	a.mustBeMade("Remove")
	if n >= 0 && a.closed.Load() {
		return
	}
	if n < 0 || !a.account.TryUncharge(n) {
		if n >= 0 && a.closed.Load() {
			return // closed between the two checks
		}
		panicMisuse(a.o.Name, "Remove", "%d bytes, of %d that were added; remove the bytes of each Add once", n, a.account.Held())
	}
	a.live.Add(-1)
	a.bytes.Add(-n)
	if !a.o.Manual {
		account.Process.UnchargeReclaimable(n)
	}
}

// Close removes the account and its bytes from the sums and from
// [Accounts]. Add must not be called after Close. A second Close does nothing. The error
// is always nil. There is nothing that a Close could wait for.
func (a *Account) Close() error {
	a.mustBeMade("Close")
	a.closed.Store(true)
	if left := a.account.Close(); !a.o.Manual {
		account.Process.UnchargeReclaimable(left)
	}
	return nil
}

// Held returns the number of bytes added and not removed.
func (a *Account) Held() int64 {
	a.mustBeMade("Held")
	return a.account.Held()
}

// mustBeMade panics if a is not from NewAccount, in the name of a method.
func (a *Account) mustBeMade(method string) {
	if a == nil || a.account == nil {
		panicMisuse("pace.Account", method, "the Account is nil or zero; make it with NewAccount")
	}
}

// Usage describes one account: that of a heap, that of package own, or one made
// by [NewAccount].
type Usage struct {
	Name   string // of the account
	Held   int64  // bytes held: for a heap taken from the system, its records included
	Limit  int64  // the account's own bound on Held, or 0
	Live   int64  // bytes in use: for a heap those in live blocks
	Blocks int64  // number of live blocks, of live resources, or of Adds less Removes
}

// Accounts returns the usage of all accounts, sorted by name, and those of one
// name by Held, the largest first.
func Accounts() []Usage {
	list := account.Process.List()
	all := make([]Usage, len(list))
	for i, u := range list {
		all[i] = Usage{Name: u.Name, Held: u.Held, Limit: u.Limit, Live: u.Live, Blocks: u.Blocks}
	}
	return all
}
