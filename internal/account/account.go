// Package account is where bytes outside the Go heap are counted.
//
// An [Account] belongs to whoever holds memory of the system's: a heap, a pool
// of resources. Held is changed in slow paths only, when a span is taken or
// given back; what is live within is known to the holder, who has a way to
// count it when it is asked. A sum over all accounts can be read at any time,
// and one function can ask to be called when it grows.
package account

import (
	"sync"
	"sync/atomic"
)

// Usage is what an account says about itself at one moment.
type Usage struct {
	Held   int64 // bytes taken from the system, metadata included
	Live   int64 // bytes in blocks that have been handed out
	Blocks int64 // how many such blocks there are
}

// An Account counts the bytes of one holder. It is made by Open. Its methods
// may be called from any goroutine.
type Account struct {
	held atomic.Int64
	live func() (blocks, bytes int64)
}

var (
	mu    sync.Mutex
	all   = map[*Account]bool{}
	total atomic.Int64

	pressureAt atomic.Int64
	pressure   atomic.Pointer[func(held int64)]
	pressed    atomic.Bool // the bound was reached and Notify has not run yet
)

// Open makes an account. live counts what is handed out; it is called when
// somebody reads, never while the account's own methods run.
func Open(live func() (blocks, bytes int64)) *Account {
	a := &Account{live: live}
	mu.Lock()
	defer mu.Unlock()
	all[a] = true
	return a
}

// Close takes the account out of the sum. What it still holds is forgotten.
func (a *Account) Close() {
	mu.Lock()
	defer mu.Unlock()
	delete(all, a)
	total.Add(-a.held.Swap(0))
}

// Take counts n more bytes, unless that would exceed limit, where limit is not
// 0. It reports whether it did. It may be called under any lock; Notify has to
// be called some time later.
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
	if total.Add(n) >= pressureAt.Load() && pressure.Load() != nil {
		pressed.Store(true)
	}
	return true
}

// Notify calls the function that SetPressure asked for, if something was taken
// since the last call that reached its bound. The caller holds no lock.
func Notify() {
	if !pressed.Load() || !pressed.Swap(false) {
		return
	}
	if f := pressure.Load(); f != nil {
		(*f)(total.Load())
	}
}

// Give counts n bytes less.
func (a *Account) Give(n int64) {
	a.held.Add(-n)
	total.Add(-n)
}

// Held returns the bytes taken and not given back.
func (a *Account) Held() int64 { return a.held.Load() }

// Held returns the sum over all accounts.
func Held() int64 { return total.Load() }

// Read adds up all accounts.
func Read() Usage {
	mu.Lock()
	open := make([]*Account, 0, len(all))
	for a := range all {
		open = append(open, a)
	}
	mu.Unlock()
	var u Usage
	for _, a := range open {
		blocks, bytes := a.live()
		u.Held += a.held.Load()
		u.Live += bytes
		u.Blocks += blocks
	}
	return u
}

// SetPressure has f called, with the sum over all accounts, whenever that grows
// and is at or above at. It is called by Notify, in whatever goroutine takes
// memory, with no lock held, and must return soon. A nil f ends it.
func SetPressure(at int64, f func(held int64)) {
	pressureAt.Store(at)
	if f == nil {
		pressure.Store(nil)
		return
	}
	pressure.Store(&f)
}
