package pace

import (
	"fmt"
	"sync/atomic"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/account"
)

// AccountOptions describe an account.
type AccountOptions struct {
	Name  string // for people; see [Accounts]
	Limit int64  // bytes; 0 sets no limit

	// Manual says that what is added is given back by the program alone, so that
	// no collection can help: it counts against limits and starts none.
	Manual bool
}

// An Account counts bytes that a C library has allocated by itself, for Go values
// that release them when they are unreachable. What package own releases and
// what a Heap holds is counted without one.
//
// An account is made by [NewAccount]. Its methods, and [Add] and [Remove], may be
// called from any goroutine.
type Account struct {
	o       AccountOptions
	account *account.Account
	live    atomic.Int64 // how many times more was added than removed
	bytes   atomic.Int64 // what was
	closed  atomic.Bool
}

// NewAccount returns an account. A negative limit panics.
func NewAccount(o AccountOptions) *Account {
	if o.Limit < 0 {
		panic(fmt.Sprintf("cheap: pace.NewAccount: the limit %d is negative", o.Limit))
	}
	if o.Name == "" {
		o.Name = "pace.Account"
	}
	a := &Account{o: o}
	// Who reads all accounts may come before it is stored here.
	a.account = account.Open(o.Name, o.Limit, func() (int64, int64) { return a.live.Load(), a.bytes.Load() })
	return a
}

// Add counts n bytes that the caller has, or is about to have. It may start a
// collection, and wait a little if many have come since; see the package.
//
// At a limit, the account's or that of all, it waits for up to two collections,
// and returns an error that wraps [cheap.ErrLimit] if they do not help. Then
// nothing was counted. It must not be called with a lock held that a release
// function takes: not for fear of a deadlock, but because the release, and with
// it the room, then comes too late. A negative n panics.
func Add(a *Account, n int64) error {
	if n < 0 {
		panic(fmt.Sprintf("cheap: pace.Add: %d bytes are negative; what is given back goes to Remove", n))
	}
	for try := 0; !a.account.Take(n, a.o.Limit); try++ {
		if err := account.Reclaim(n, try); err == account.ErrUnpaced {
			return fmt.Errorf("cheap: pace.Add: account %s: %d bytes: %w", a.o.Name, n, cheap.ErrLimit)
		} else if err != nil {
			return fmt.Errorf("cheap: pace.Add: account %s: %w", a.o.Name, err)
		}
	}
	a.live.Add(1)
	a.bytes.Add(n)
	if !a.o.Manual {
		account.TakeAuto(n)
	}
	account.Notify()
	return nil
}

// Remove counts n bytes less, which one Add has counted. To remove more than was
// added panics. Of an account that is closed it does nothing.
func Remove(a *Account, n int64) {
	if n >= 0 && a.closed.Load() {
		return
	}
	if n < 0 || !a.account.TryGive(n) {
		if n >= 0 && a.closed.Load() {
			return // just now
		}
		panic(fmt.Sprintf("cheap: pace.Remove: account %s: %d bytes, of %d that were added", a.o.Name, n, a.account.Held()))
	}
	a.live.Add(-1)
	a.bytes.Add(-n)
	if !a.o.Manual {
		account.GiveAuto(n)
	}
}

// Close takes the account out of the sums. What was added and not removed is
// forgotten, and nothing may be added any more.
func (a *Account) Close() {
	a.closed.Store(true)
	if left := a.account.Close(); !a.o.Manual {
		account.GiveAuto(left)
	}
}

// Held returns the bytes added and not removed.
func (a *Account) Held() int64 { return a.account.Held() }

// Usage is what an account, a heap's or another, says about itself.
type Usage = account.Usage

// Accounts reads all accounts there are, of heaps, of owners and of [NewAccount],
// ordered by name and then by size.
func Accounts() []Usage { return account.List() }
