// Package account counts the bytes outside the Go heap.
//
// An [Account] counts what one holder has taken from the system: a heap, the
// resources of all pools, a C library that package pace is told of. Only slow
// paths change it, those that take a span or give one back. How much of that is
// in use is known to the holder, which counts it when it is asked. The sum over
// all accounts can be read at any time.
//
// Besides, the packages that release automatically count the bytes that a
// collection could give back, in whichever account they are held: see [ChargeReclaimable].
//
// The package imports nothing of the module, and packages that must not import
// each other meet here: package pace sets bounds and is called when one is
// reached, package own says what it is releasing, the root package says what is
// idle. These hooks are in hooks.go.
package account

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Usage is what an account counts at one moment.
type Usage struct {
	Name   string // of the holder; "" for a sum of several
	Held   int64  // bytes taken from the system, metadata included
	Limit  int64  // the holder's own bound on Held, 0 if there is none
	Live   int64  // bytes in blocks that have been handed out
	Blocks int64  // number of these blocks
}

// An Account counts the bytes of one holder. [Open] makes it. Its methods may be
// called from any goroutine, and under any lock.
type Account struct {
	number    uint64 // accounts are numbered in the order in which they are opened
	name      string
	limit     int64
	held      atomic.Int64
	shortfall atomic.Int64 // bytes of the last TryCharge that the bound on the sum refused; 0 if the own limit did
	live      func() (blocks, bytes int64)
	quick     bool // live waits for no lock
	inC       bool // see InCHeap
	declared  bool // see Declared
}

var (
	mu     sync.Mutex
	all    = map[*Account]bool{} // those that are open; under mu
	opened uint64                // how many were ever opened; under mu
	total  atomic.Int64          // the sum of what they hold

	inCHeap atomic.Int64 // the part of total that is in the C heap, and not in its account

	declaredTotal atomic.Int64 // the part of total that is in accounts that are Declared

	rooms atomic.Int64 // the part of total that is held for what is about to be made

	// What a collection could give back: now, and all that ever could.
	reclaimable, everReclaimable atomic.Int64
	meanCharge                   atomic.Int64 // of what is taken so, roughly
	largestCharge                atomic.Int64 // of what was taken so at once, since the last Fade
)

// Open returns an account. The name is for people to read. limit bounds what the
// account may hold, in bytes; 0 is no bound. live counts what is handed out. It is
// called by [List] and [Read] only, with no lock of this package held.
func Open(name string, limit int64, live func() (blocks, bytes int64)) *Account {
	return register(&Account{name: name, limit: limit, live: live})
}

// OpenQuick is Open with a function that waits for no lock.
func OpenQuick(name string, limit int64, live func() (blocks, bytes int64)) *Account {
	return register(&Account{name: name, limit: limit, live: live, quick: true})
}

func register(a *Account) *Account {
	mu.Lock()
	defer mu.Unlock()
	opened++
	a.number = opened
	all[a] = true
	return a
}

// Close takes the account out of the sum. It returns the bytes that were still
// held, and forgets them.
func (a *Account) Close() (left int64) {
	mu.Lock()
	defer mu.Unlock()
	delete(all, a)
	left = a.held.Swap(0)
	a.sum(-left)
	return left
}

// TryCharge adds n bytes, unless the account's limit or the bound on the sum of all
// accounts would be exceeded. It reports whether it did. The caller calls
// [Notify] some time later, when it holds no lock.
func (a *Account) TryCharge(n int64) bool {
	limit := a.limit
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
	for {
		sum := total.Load()
		if n > 0 && sum > ceiling.Load()-n {
			a.held.Add(-n)
			a.shortfall.Store(n)
			return false
		}
		if total.CompareAndSwap(sum, sum+n) {
			a.part(n)
			if sum+n >= heldAt.Load() {
				pressed.Store(true)
			}
			return true
		}
	}
}

// Shortfall returns how many bytes the last TryCharge wanted that the bound on the sum of all
// accounts refused, or 0 if the account's own limit did.
func (a *Account) Shortfall() int64 { return a.shortfall.Load() }

// Charge is TryCharge for bytes that exist already. It cannot be refused.
func (a *Account) Charge(n int64) {
	a.held.Add(n)
	if a.sum(n) >= heldAt.Load() {
		pressed.Store(true)
	}
}

// Uncharge subtracts n bytes.
func (a *Account) Uncharge(n int64) {
	a.held.Add(-n)
	a.sum(-n)
}

// sum adds n to the sum of all accounts, and returns it.
func (a *Account) sum(n int64) int64 {
	a.part(n)
	return total.Add(n)
}

// part adds n to the sums of some accounts only.
func (a *Account) part(n int64) {
	if a.inC {
		inCHeap.Add(n)
	}
	if a.declared {
		declaredTotal.Add(n)
	}
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
			a.sum(-n)
			return true
		}
	}
}

// Held returns the bytes that were taken and not given back.
func (a *Account) Held() int64 { return a.held.Load() }

// Name returns the name that Open was told.
func (a *Account) Name() string { return a.name }

// Full reports whether n bytes exceed the bound that Open was told.
func (a *Account) Full(n int64) bool { return a.limit != 0 && n > a.limit-a.held.Load() }

// Limit returns the bound that Open was told, 0 if there is none.
func (a *Account) Limit() int64 { return a.limit }

// Held returns the sum over all accounts.
func Held() int64 { return total.Load() }

// Declared says that the account counts what the program has said of memory that others have, which may
// be wrong. The other accounts count what their holders have from the system. It is called
// before anything is taken.
func (a *Account) Declared() { a.declared = true }

// HeldDeclared returns the sum over all accounts that are Declared.
func HeldDeclared() int64 { return declaredTotal.Load() }

// AddRoom says that n of the bytes that are held are for what is about to be made, or, if n
// is negative, that -n of them are so no longer.
func AddRoom(n int64) { rooms.Add(n) }

// Rooms returns how many of the bytes that are held are for what is about to be made.
func Rooms() int64 { return rooms.Load() }

// ChargeReclaimable counts n bytes, held in some account, that a collection could give
// back from now on, because their owner is released when it becomes unreachable.
// The caller calls [Notify] some time later, when it holds no lock.
func ChargeReclaimable(n int64) {
	is := meanCharge.Load()
	meanCharge.Store(is + (n-is)/8) // of two at a time one may be lost
	if n > largestCharge.Load() {
		largestCharge.Store(n) // likewise
	}
	addReclaimable(n)
}

func addReclaimable(n int64) {
	everReclaimable.Add(n)
	if reclaimable.Add(n) >= reclaimableAt.Load() {
		pressed.Store(true)
	}
}

// UnchargeReclaimable subtracts n such bytes.
func UnchargeReclaimable(n int64) {
	if reclaimable.Add(-n) < reclaimableBelow.Load() {
		pressed.Store(true)
	}
	if expecting.Load() > 0 {
		Kick()
	}
}

// MeanCharge returns how many bytes ChargeReclaimable was called with lately, in the mean.
func MeanCharge() int64 { return meanCharge.Load() }

// LargestCharge returns the most bytes that ChargeReclaimable was called with lately.
func LargestCharge() int64 { return largestCharge.Load() }

// FadeLargestCharge has LargestCharge forget a quarter.
func FadeLargestCharge() {
	n := largestCharge.Load()
	largestCharge.CompareAndSwap(n, n-n/4)
}

// Reclaimable returns how many such bytes there are, and how many were ever taken. The
// difference between two readings of ever is what was taken in between, whether
// or not it was given back.
func Reclaimable() (now, ever int64) {
	now = reclaimable.Load()
	return now, everReclaimable.Load()
}

// List reads all accounts. They are sorted by name, then by Held, the largest
// first.
func List() []Usage {
	Refresh()
	open := All()
	list := make([]Usage, 0, len(open))
	for _, a := range open {
		blocks, bytes := a.live()
		list = append(list, Usage{Name: a.name, Held: a.held.Load(), Limit: a.limit, Live: bytes, Blocks: blocks})
	}
	slices.SortFunc(list, func(x, y Usage) int {
		return cmp.Or(strings.Compare(x.Name, y.Name), cmp.Compare(y.Held, x.Held))
	})
	return list
}

// Largest returns the n accounts that hold the most, the largest first. Live and Blocks are
// not counted, so it takes some nanoseconds for each account.
func Largest(n int) []Usage {
	mu.Lock()
	defer mu.Unlock()
	var top []Usage
	for a := range all {
		u := Usage{Name: a.name, Held: a.held.Load(), Limit: a.limit}
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

// All returns the open accounts, those opened first at the front.
func All() []*Account {
	mu.Lock()
	open := make([]*Account, 0, len(all))
	for a := range all {
		open = append(open, a)
	}
	mu.Unlock()
	slices.SortFunc(open, func(x, y *Account) int { return cmp.Compare(x.number, y.number) })
	return open
}

// Number returns the number of the account.
func (a *Account) Number() uint64 { return a.number }

// TryLive counts what is handed out, or returns false if that may wait for a lock.
func (a *Account) TryLive() (blocks, bytes int64, ok bool) {
	if !a.quick {
		return 0, 0, false
	}
	blocks, bytes = a.live()
	return blocks, bytes, true
}

// Read returns the sum over all accounts.
func Read() (sum Usage) {
	for _, u := range List() {
		sum.Held += u.Held
		sum.Live += u.Live
		sum.Blocks += u.Blocks
	}
	return sum
}
