// Package account counts the bytes outside the Go heap.
//
// An [Account] counts what one holder has taken from the system: a heap, the
// resources of all pools, a C library that package pace is told of. Only slow paths
// change it, those that take a span or give one back. The holder knows how many of
// these bytes are in use, and counts them on request. A [Ledger] is the sum over
// all accounts, which can be read at any time.
//
// The package imports nothing of the module. It is below all packages that count,
// and below package pace, which sets bounds. It calls packages above by three
// interfaces. Each is implemented by one package, and set in one place:
//
//	[Pacer]   package pace, in Start and Stop
//	[CHeap]   package cmem, when it is initialized
//	[Malloc]  package libc, when it is initialized
//
// A program may have none of these packages, and a plugin may bring one late. So the
// Ledger checks at each call.
package account

import (
	"math"
	"sync"
	"sync/atomic"
)

// A Ledger is the sum over accounts, with bounds. [Process] is the Ledger of the process; others
// are for tests. Its methods may be called from any goroutine. The methods in this file, and those
// of accounts, may be called under any lock, and do not block.
//
// While no method runs:
//
//	held         = sum of a.held over the open accounts a
//	heldDeclared = sum of a.held over those with Options.Declared
//	heldInCHeap  = sum of a.held over those with Options.InCHeap
//	reserved     = sum of the n of all Reserve <= held
//	reclaimable  = everReclaimable - sum of the n of all UnchargeReclaimable
//	cHeap.held   = max(0, bytes in use in the C heap - heldInCHeap)  when Refresh has run last
//
// A TryCharge that reports true leaves
//
//	a.held <= a.limit   and   held <= Bounds.Ceiling
//
// and Charge, which cannot be refused, may exceed both. A call that leaves
//
//	held        >= Bounds.HeldAt             (TryCharge, Charge)
//	reclaimable >= Bounds.ReclaimableAt      (ChargeReclaimable, Refresh)
//	reclaimable <  Bounds.ReclaimableBelow   (UnchargeReclaimable, Refresh)
//
// sets pressed. The first Notify or Check after that clears it, and calls the Pacer.
type Ledger struct {
	// Read at each charge, written by package pace.
	ceiling, heldAt, reclaimableAt, reclaimableBelow atomic.Int64 // see Bounds
	scale                                            atomic.Int64 // see SetScale
	pacer                                            atomic.Pointer[Pacer]
	malloc                                           atomic.Pointer[Malloc]
	arenasBounded, givesBack                         atomic.Bool
	roomy                                            atomic.Bool // see SetRoomy
	pressed                                          atomic.Bool // a bound was reached, and neither Notify nor Check has run since

	_ [128]byte // what is written at each charge is in other cache lines

	held, heldDeclared, heldInCHeap, reserved atomic.Int64

	reclaimable, everReclaimable atomic.Int64
	meanCharge                   atomic.Int64 // see MeanCharge
	largestCharge                atomic.Int64 // see LargestCharge

	// Releases that wait or run. Package own writes them. Queued are the batches and parents that
	// its workers release, and the entries that the thread of their pool releases. ToDrain are the entries
	// that the program releases, by Drain of a queue.
	Queued, ToDrain atomic.Int64

	waiters    atomic.Int32 // goroutines that wait for releases
	atCeiling  atomic.Int32 // goroutines in Wait, in line
	wakeups    chan struct{}
	switchOver sync.Mutex // held while a Pacer comes or goes, and while the CHeap is told so

	mu     sync.Mutex
	open   map[*Account]bool // under mu
	opened uint64            // number of accounts that were ever opened; under mu

	cHeap cHeap
}

// Process is the Ledger of the process.
var Process Ledger

// It is made here, outside of all bubbles of testing/synctest: a channel belongs to the bubble in which
// it was made.
func init() { Process.init() }

// New returns an empty Ledger.
func New() *Ledger {
	l := new(Ledger)
	l.init()
	return l
}

func (l *Ledger) init() {
	l.wakeups = make(chan struct{}, 1)
	l.open = map[*Account]bool{}
	l.SetBounds(Bounds{NoBound, NoBound, 0, NoBound})
}

// Bounds are in bytes.
type Bounds struct {
	// The next Notify calls the Pacer after a charge that leaves held >= HeldAt or reclaimable >=
	// ReclaimableAt, and after bytes were given back that leave reclaimable < ReclaimableBelow.
	HeldAt, ReclaimableAt, ReclaimableBelow int64

	// Ceiling is the most that all accounts together may hold. TryCharge refuses what is beyond it.
	Ceiling int64
}

// NoBound stands for no bound, in a field that is a maximum.
const NoBound = math.MaxInt64

// SetBounds sets all bounds, one after the other.
func (l *Ledger) SetBounds(b Bounds) {
	l.heldAt.Store(b.HeldAt)
	l.reclaimableAt.Store(b.ReclaimableAt)
	l.reclaimableBelow.Store(b.ReclaimableBelow)
	l.ceiling.Store(b.Ceiling)
}

// SetReclaimableAt changes Bounds.ReclaimableAt.
func (l *Ledger) SetReclaimableAt(n int64) { l.reclaimableAt.Store(n) }

// Limited reports whether there is a Ceiling.
func (l *Ledger) Limited() bool { return l.ceiling.Load() != NoBound }

// Headroom returns how many more bytes the Ceiling leaves.
func (l *Ledger) Headroom() int64 { return l.ceiling.Load() - l.held.Load() }

// Held returns the sum over all accounts.
func (l *Ledger) Held() int64 { return l.held.Load() }

// HeldDeclared returns the sum over the accounts with Options.Declared.
func (l *Ledger) HeldDeclared() int64 { return l.heldDeclared.Load() }

// add adds n to the sums of which the account is a part.
func (l *Ledger) add(a *Account, n int64) (held int64) {
	l.addParts(a, n)
	return l.held.Add(n)
}

// addParts adds n to the sums over some accounts only.
func (l *Ledger) addParts(a *Account, n int64) {
	if a.o.InCHeap {
		l.heldInCHeap.Add(n)
	}
	if a.o.Declared {
		l.heldDeclared.Add(n)
	}
}

// Reserve adds n, which may be negative, to the number of held bytes that are for resources
// about to be made.
func (l *Ledger) Reserve(n int64) { l.reserved.Add(n) }

// Reserved returns the number of held bytes that are for resources about to be made.
func (l *Ledger) Reserved() int64 { return l.reserved.Load() }

// ChargeReclaimable counts n bytes, held in some account, that a collection could give
// back from now on, because their owner is released when it becomes unreachable.
// The caller calls [Ledger.Notify] some time later, when it holds no lock.
func (l *Ledger) ChargeReclaimable(n int64) {
	mean := l.meanCharge.Load()
	l.meanCharge.Store(mean + (n-mean)/8) // of two changes at the same time one may be lost
	if n > l.largestCharge.Load() {
		l.largestCharge.Store(n) // of two changes at the same time one may be lost
	}
	l.addReclaimable(n)
}

func (l *Ledger) addReclaimable(n int64) {
	l.everReclaimable.Add(n)
	if l.reclaimable.Add(n) >= l.reclaimableAt.Load() {
		l.pressed.Store(true)
	}
}

// UnchargeReclaimable subtracts n such bytes.
func (l *Ledger) UnchargeReclaimable(n int64) {
	if l.reclaimable.Add(-n) < l.reclaimableBelow.Load() {
		l.pressed.Store(true)
	}
	if l.waiters.Load() > 0 {
		l.Wake()
	}
}

// Reclaimable returns how many such bytes there are, and how many were ever charged. The
// difference between two readings of ever is what was charged in between, whether
// or not it was given back.
func (l *Ledger) Reclaimable() (now, ever int64) {
	now = l.reclaimable.Load()
	return now, l.everReclaimable.Load()
}

// MeanCharge returns roughly the mean number of bytes of the last calls of ChargeReclaimable.
func (l *Ledger) MeanCharge() int64 { return l.meanCharge.Load() }

// LargestCharge returns roughly the largest number of bytes of the last calls of
// ChargeReclaimable.
func (l *Ledger) LargestCharge() int64 { return l.largestCharge.Load() }

// FadeLargestCharge has LargestCharge forget a quarter.
func (l *Ledger) FadeLargestCharge() {
	n := l.largestCharge.Load()
	l.largestCharge.CompareAndSwap(n, n-n/4)
}

// SetScale sets the ratio of the bytes in use to the bytes that the program has declared, as
// package pace knows it. A ratio below 1 counts as 1.
func (l *Ledger) SetScale(n int64) { l.scale.Store(n) }

// Scale returns the ratio.
func (l *Ledger) Scale() int64 { return max(l.scale.Load(), 1) }
