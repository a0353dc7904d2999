package account

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
)

// The bounds that package pace sets.
var (
	ceiling       atomic.Int64 // the most that all accounts together may hold
	heldAt        atomic.Int64 // Pace.Pressure is called when they hold as much,
	reclaimableAt atomic.Int64 // or when a collection could give back as much
	pressed       atomic.Bool  // one of these was reached, and Notify has not run yet

	reclaimableBelow atomic.Int64 // likewise, when it could give back less

	pace atomic.Pointer[Pace]
)

func init() { SetPace(nil) }

// Pace is what package pace does for the packages that count.
type Pace struct {
	Pressure func()                                 // a bound was reached: see SetBounds
	Look     func()                                 // likewise, for a goroutine that must not wait
	Reclaim  func(n int64, try int, own bool) error // see Reclaim

	Wait func(ctx context.Context, n int64, inLine bool, take func() bool) error // see Wait
}

// SetPace sets the hooks of package pace, or unsets them if p is nil. There are no
// bounds then, until SetBounds.
func SetPace(p *Pace) {
	pace.Store(p)
	SetBounds(math.MaxInt64, math.MaxInt64, math.MaxInt64)
	SetReclaimableBelow(0)
	SetScale(1)
	watchCHeap(p != nil)
}

// SetBounds sets three bounds, each in bytes; math.MaxInt64 is none. Whenever
// something is taken while all accounts together hold at least heldFrom, or while
// a collection could give back at least reclaimableFrom, the next [Notify] calls
// Pace.Pressure. TryCharge refuses to bring the sum of all accounts above most.
func SetBounds(heldFrom, reclaimableFrom, most int64) {
	heldAt.Store(heldFrom)
	reclaimableAt.Store(reclaimableFrom)
	ceiling.Store(most)
}

// SetReclaimableFrom changes one of the bounds: reclaimableFrom.
func SetReclaimableFrom(n int64) { reclaimableAt.Store(n) }

// SetReclaimableBelow has the next [Notify] call Pace.Pressure as well after something was
// given back, if a collection could give back less than n bytes then. 0 is no bound.
func SetReclaimableBelow(n int64) { reclaimableBelow.Store(n) }

// scale is how many bytes there are for one that the program has declared.
var scale atomic.Int64

// SetScale sets it; 0 and 1 are the same.
func SetScale(n int64) { scale.Store(n) }

// Scale returns how many bytes there are for each that the program has declared, as far as package
// pace knows, or 1 if that is less.
func Scale() int64 { return max(scale.Load(), 1) }

// Notify calls Pace.Pressure if a bound was reached since the last call. The
// caller holds no lock.
func Notify() {
	if !pressed.Load() || !pressed.Swap(false) {
		return
	}
	if p := pace.Load(); p != nil {
		p.Pressure()
	}
}

// Look is [Notify] for a goroutine that must not wait: what it has counted, others have taken.
func Look() {
	if !pressed.Load() || !pressed.Swap(false) {
		return
	}
	if p := pace.Load(); p != nil && p.Look != nil {
		p.Look()
	}
}

// Reclaim asks package pace to make room for n bytes that TryCharge refused. try is 0
// when it is called for the first time, and counts up. own says that the account's own
// limit refused, and not the bound on the sum. A nil error says that TryCharge
// may be tried once more. Without package pace the error is [ErrUnpaced]. The
// caller holds no lock.
func Reclaim(n int64, try int, own bool) error {
	if p := pace.Load(); p != nil {
		return p.Reclaim(n, try, own)
	}
	return ErrUnpaced
}

// Wait is Reclaim and TryCharge in one: it asks package pace to make room for n bytes, and
// calls take until that reports true. If inLine is set, the goroutine waits for the bound
// on the sum of all accounts. Those are served in the order in which they came. A
// goroutine that waits for another bound is in the way of no other. Without package pace
// the error is [ErrUnpaced]. It is the error of ctx if that is done before. The caller
// holds no lock.
func Wait(ctx context.Context, n int64, inLine bool, take func() bool) error {
	p := pace.Load()
	if p == nil {
		if take() {
			return nil
		}
		return ErrUnpaced
	}
	if inLine {
		atLimit.Add(1)
		defer atLimit.Add(-1)
	}
	return p.Wait(ctx, n, inLine, take)
}

// expecting is the number of goroutines that wait for releases.
var expecting atomic.Int32

// Expect adds n goroutines that wait for releases.
func Expect(n int32) { expecting.Add(n) }

// Expected returns how many goroutines wait for releases.
func Expected() int { return int(expecting.Load()) }

// atLimit is the number of goroutines that are in Wait, in line.
var atLimit atomic.Int32

// Waiting reports whether goroutines are in [Wait], in line. A goroutine that comes later has to
// call Wait as well, or it is served before them.
func Waiting() bool { return atLimit.Load() > 0 }

// Kicked gets a value after a release, while goroutines wait. It has room for one, so
// some releases send nothing. It is made here, outside of all bubbles of
// testing/synctest.
var Kicked = make(chan struct{}, 1)

// Kick sends a value to Kicked. It does not block.
func Kick() {
	select {
	case Kicked <- struct{}{}:
	default:
	}
}

// ErrUnpaced says that package pace has not been started.
var ErrUnpaced = errors.New("cheap: package pace has not been started")

// Limited reports whether there is a bound on the sum of all accounts.
func Limited() bool { return ceiling.Load() != math.MaxInt64 }

// Room returns how many more bytes the bound on the sum of all accounts leaves.
func Room() int64 { return ceiling.Load() - total.Load() }

// The hooks of package own and of the root package, which set them when they are
// initialized.
var (
	queued    = func() int64 { return 0 }
	toDrain   = func() int64 { return 0 }
	releasing = func() bool { return false }

	idle = func() int64 { return 0 }
	trim = func(keep int64) {}
)

// SetReleases sets the hooks of package own. waiting returns how many releases
// wait for own's workers or run there. draining returns how many wait for a Drain that
// the program calls, or run in one. within reports whether the goroutine that calls it is
// in a release function.
func SetReleases(waiting, draining func() int64, within func() bool) {
	queued, toDrain, releasing = waiting, draining, within
}

// Queued returns how many releases the workers of package own have still to do.
func Queued() int64 { return queued() }

// ToDrain returns how many releases the program has still to do, by Drain of a pool.
func ToDrain() int64 { return toDrain() }

// Releasing reports whether the goroutine is in a release function. It must not
// wait for other releases then.
func Releasing() bool { return releasing() }

// SetIdle sets the hooks of the root package. bytes returns how many bytes are
// resident and in no account. release returns them to the system, except keep
// bytes.
func SetIdle(bytes func() int64, release func(keep int64)) { idle, trim = bytes, release }

// Idle returns how many bytes are resident and in no account.
func Idle() int64 { return idle() }

// Trim returns these bytes to the system, except keep bytes.
func Trim(keep int64) { trim(keep) }
