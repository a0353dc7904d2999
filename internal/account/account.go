// Package account is where bytes outside the Go heap are counted.
//
// An [Account] belongs to whoever holds memory of the system's: a heap, a pool
// of resources. Held is changed in slow paths only, when a span is taken or
// given back; what is live within is known to the holder, who has a way to
// count it when it is asked. A sum over all accounts can be read at any time.
//
// Beside that, whoever releases automatically counts the bytes that a collection
// could give back, wherever they are held: see [TakeAuto].
//
// Package pace sets what is in [Pace]; the others only ask.
package account

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Usage is what an account says about itself at one moment.
type Usage struct {
	Name   string // of the holder; "" where several are added up
	Held   int64  // bytes taken from the system, metadata included
	Limit  int64  // the holder's own bound on Held, 0 if there is none
	Live   int64  // bytes in blocks that have been handed out
	Blocks int64  // how many such blocks there are
}

// An Account counts the bytes of one holder. It is made by Open. Its methods
// may be called from any goroutine.
type Account struct {
	name  string
	limit int64
	held  atomic.Int64
	live  func() (blocks, bytes int64)
}

var (
	mu    sync.Mutex
	all   = map[*Account]bool{}
	total atomic.Int64

	// What a collection could give back: now, and all that ever could.
	auto, everAuto atomic.Int64

	ceiling atomic.Int64 // of total
	heldAt  atomic.Int64 // at these, Pace.Pressure is called
	autoAt  atomic.Int64
	pressed atomic.Bool // one of them was reached and Notify has not run yet

	pace atomic.Pointer[Pace]

	queued    func() int64     // releases that wait for own's workers or run there
	releasing func() bool      // the goroutine is in a release function
	idle      func() int64     // bytes that no account holds and that are still resident
	trim      func(keep int64) // gives these back, but for so many
)

func init() { unpaced() }

func unpaced() {
	ceiling.Store(math.MaxInt64)
	heldAt.Store(math.MaxInt64)
	autoAt.Store(math.MaxInt64)
}

// Open makes an account with a name for people, and a limit for them to read, 0
// if there is none. live counts what is handed out; it is called when somebody
// reads, never while the account's own methods run.
func Open(name string, limit int64, live func() (blocks, bytes int64)) *Account {
	a := &Account{name: name, limit: limit, live: live}
	mu.Lock()
	defer mu.Unlock()
	all[a] = true
	return a
}

// Close takes the account out of the sum. What it still holds is forgotten, and
// returned.
func (a *Account) Close() (left int64) {
	mu.Lock()
	defer mu.Unlock()
	delete(all, a)
	left = a.held.Swap(0)
	total.Add(-left)
	return left
}

// Take counts n more bytes, unless that would exceed limit, where limit is not
// 0, or the bound on the sum of all. It reports whether it did. It may be called
// under any lock; Notify has to be called some time later.
func (a *Account) Take(n, limit int64) bool {
	for {
		held := a.held.Load()
		if limit != 0 && n > limit-held {
			return false
		}
		if a.held.CompareAndSwap(held, held+n) {
			break
		}
	}
	for {
		sum := total.Load()
		if n > 0 && n > ceiling.Load()-sum {
			a.held.Add(-n)
			return false
		}
		if total.CompareAndSwap(sum, sum+n) {
			if sum+n >= heldAt.Load() {
				pressed.Store(true)
			}
			return true
		}
	}
}

// Put is Take of what is there already, and cannot be refused.
func (a *Account) Put(n int64) {
	a.held.Add(n)
	if total.Add(n) >= heldAt.Load() {
		pressed.Store(true)
	}
}

// Give counts n bytes less.
func (a *Account) Give(n int64) {
	a.held.Add(-n)
	total.Add(-n)
}

// TryGive is Give, unless the account does not hold as many.
func (a *Account) TryGive(n int64) bool {
	for {
		held := a.held.Load()
		if n > held {
			return false
		}
		if a.held.CompareAndSwap(held, held-n) {
			total.Add(-n)
			return true
		}
	}
}

// Held returns the bytes taken and not given back.
func (a *Account) Held() int64 { return a.held.Load() }

// Held returns the sum over all accounts.
func Held() int64 { return total.Load() }

// TakeAuto counts n bytes, held in some account, that a collection could give
// back from now on: what they belong to is released when it is found
// unreachable. Notify has to be called some time later.
func TakeAuto(n int64) {
	everAuto.Add(n)
	if auto.Add(n) >= autoAt.Load() {
		pressed.Store(true)
	}
}

// GiveAuto counts n such bytes less.
func GiveAuto(n int64) { auto.Add(-n) }

// Auto returns these bytes, and how many were ever taken: the difference between
// two readings of the second is what was taken in between, given back or not.
func Auto() (now, ever int64) {
	now = auto.Load()
	return now, everAuto.Load()
}

// Notify calls Pace.Pressure if something was taken since the last call that
// reached a bound. The caller holds no lock.
func Notify() {
	if !pressed.Load() || !pressed.Swap(false) {
		return
	}
	if p := pace.Load(); p != nil {
		p.Pressure()
	}
}

// Reclaim is called, with no lock held, by one whose Take of n bytes was
// refused, for the first time (try 0) and so on. A nil error says that it may try
// once more. It returns [ErrUnpaced] where nobody can help.
func Reclaim(n int64, try int) error {
	if p := pace.Load(); p != nil {
		return p.Reclaim(n, try)
	}
	return ErrUnpaced
}

// ErrUnpaced says that package pace is not at work.
var ErrUnpaced = errors.New("cheap: nobody reclaims")

// Admit asks whether n bytes that are there already may be counted, under the
// bound on the sum of all, and reclaims if not. The caller holds no lock.
func Admit(n int64) error {
	for try := 0; n > ceiling.Load()-total.Load(); try++ {
		if err := Reclaim(n, try); err != nil {
			return err
		}
	}
	return nil
}

// Room returns how many more bytes are within the bound on the sum of all.
func Room() int64 { return ceiling.Load() - total.Load() }

// Pace is what package pace does for those who count.
type Pace struct {
	Pressure func()                       // a bound was reached; see SetBounds
	Reclaim  func(n int64, try int) error // see Reclaim
}

// SetPace puts p to work, or nobody if it is nil, with no bounds.
func SetPace(p *Pace) {
	pace.Store(p)
	unpaced()
}

// SetBounds has Pressure called, by Notify, by whoever takes something, as long
// as all accounts together hold heldFrom bytes or more, or autoFrom of them may
// be given back by a collection; and Take refuse what would bring the sum above
// most. math.MaxInt64 sets no bound.
func SetBounds(heldFrom, autoFrom, most int64) {
	heldAt.Store(heldFrom)
	autoAt.Store(autoFrom)
	ceiling.Store(most)
}

// SetAutoFrom changes one of the bounds: autoFrom.
func SetAutoFrom(n int64) { autoAt.Store(n) }

// SetReleases is called by package own when it is initialized. queued returns
// how many releases wait for its workers or run there; releasing whether the
// goroutine that calls it is in a release function.
func SetReleases(waiting func() int64, within func() bool) { queued, releasing = waiting, within }

// Queued returns how many releases are still to be done by workers.
func Queued() int64 {
	if queued == nil {
		return 0
	}
	return queued()
}

// Releasing reports whether the goroutine is in a release function, where it
// must not wait for others.
func Releasing() bool { return releasing != nil && releasing() }

// SetIdle is called by the root package when it is initialized. bytes returns
// what is resident and nobody holds, release gives all but keep bytes of it back
// to the system.
func SetIdle(bytes func() int64, release func(keep int64)) { idle, trim = bytes, release }

// Idle returns bytes that are resident and that no account holds.
func Idle() int64 {
	if idle == nil {
		return 0
	}
	return idle()
}

// Trim gives what is idle back to the system, but for keep bytes.
func Trim(keep int64) {
	if trim != nil {
		trim(keep)
	}
}

// List reads all accounts, by name, then the largest first.
func List() []Usage {
	mu.Lock()
	open := make([]*Account, 0, len(all))
	for a := range all {
		open = append(open, a)
	}
	mu.Unlock()
	list := make([]Usage, 0, len(open))
	for _, a := range open {
		blocks, bytes := a.live()
		list = append(list, Usage{Name: a.name, Held: a.held.Load(), Limit: a.limit, Live: bytes, Blocks: blocks})
	}
	slices.SortFunc(list, func(x, y Usage) int {
		if c := strings.Compare(x.Name, y.Name); c != 0 {
			return c
		}
		return cmp.Compare(y.Held, x.Held)
	})
	return list
}

// Read adds up all accounts.
func Read() (sum Usage) {
	for _, u := range List() {
		sum.Held += u.Held
		sum.Live += u.Live
		sum.Blocks += u.Blocks
	}
	return sum
}
