package account

import (
	"context"
	"errors"
)

// A Pacer is package pace while it is started. The goroutine that calls a method
// holds no lock.
type Pacer interface {
	// Pressure is called by a goroutine that has charged bytes, after a bound was reached. It may
	// wait for releases.
	Pressure()

	// Check is Pressure for a goroutine that must not wait, because others have charged the bytes.
	Check()

	// Reclaim and Wait are described at the methods of Ledger.
	Reclaim(n int64, try int, own bool) error
	Wait(ctx context.Context, n int64, inLine bool, take func() bool) error
}

// SetPacer sets the Pacer, or unsets it if p is nil. There are no bounds then, until SetBounds. A
// goroutine that was about to call the Pacer before may do so a little later.
func (l *Ledger) SetPacer(p Pacer) {
	l.switchOver.Lock()
	defer l.switchOver.Unlock()
	if p == nil {
		l.pacer.Store(nil)
	} else {
		l.pacer.Store(&p)
	}
	l.SetBounds(Bounds{NoBound, NoBound, 0, NoBound})
	l.SetScale(1)
	l.roomy.Store(false)
	l.tellCHeap()
}

// SetRoomy says whether there is so much room that nobody needs to give way to releases: package pace knows it.
func (l *Ledger) SetRoomy(yes bool) { l.roomy.Store(yes) }

// Roomy reports what SetRoomy has said last.
func (l *Ledger) Roomy() bool { return l.roomy.Load() }

// Notify calls Pacer.Pressure if a bound was reached since the last call of Notify or Check. The
// caller holds no lock.
func (l *Ledger) Notify() {
	if !l.pressed.Load() || !l.pressed.Swap(false) {
		return
	}
	if p := l.pacer.Load(); p != nil {
		(*p).Pressure()
	}
}

// Check is Notify for a goroutine that must not wait, because other goroutines have charged the
// bytes.
func (l *Ledger) Check() {
	if !l.pressed.Load() || !l.pressed.Swap(false) {
		return
	}
	if p := l.pacer.Load(); p != nil {
		(*p).Check()
	}
}

// Reclaim asks package pace to make room for n bytes that TryCharge refused. try is 0
// when it is called for the first time, and counts up. own says that the account's own
// limit refused, and not the Ceiling. A nil error says that TryCharge
// may be tried once more. Without package pace the error is [ErrUnpaced]. The
// caller holds no lock.
func (l *Ledger) Reclaim(n int64, try int, own bool) error {
	if p := l.pacer.Load(); p != nil {
		return (*p).Reclaim(n, try, own)
	}
	return ErrUnpaced
}

// Wait is Reclaim and TryCharge in one: it asks package pace to make room for n bytes, and
// calls take until that reports true. If inLine is set, the goroutine waits for the Ceiling.
// Goroutines in line are served in the order in which they came. A goroutine that waits for
// another bound delays no other. Without package pace the error is [ErrUnpaced]. It is the
// error of ctx if that is done before. If ctx is nil, Wait does not wait: take is called, and a
// collection begins, which may make room for a later call. The caller holds no lock.
func (l *Ledger) Wait(ctx context.Context, n int64, inLine bool, take func() bool) error {
	p := l.pacer.Load()
	if p == nil {
		if take() {
			return nil
		}
		return ErrUnpaced
	}
	if inLine && ctx != nil {
		l.atCeiling.Add(1)
		defer l.atCeiling.Add(-1)
	}
	return (*p).Wait(ctx, n, inLine, take)
}

// ErrUnpaced says that package pace has not been started.
var ErrUnpaced = errors.New("cheap: package pace has not been started")

// Contended reports whether goroutines are in [Ledger.Wait], in line. A goroutine that comes later has to
// call Wait as well, or it is served before them.
func (l *Ledger) Contended() bool { return l.atCeiling.Load() > 0 }

// AddWaiters adds n goroutines that wait for releases.
func (l *Ledger) AddWaiters(n int32) { l.waiters.Add(n) }

// Waiters returns how many goroutines wait for releases.
func (l *Ledger) Waiters() int { return int(l.waiters.Load()) }

// Wakeups gets a value after a release, while goroutines wait. It has room for one, so some
// releases send nothing: a goroutine that waits also checks by itself from time to time.
func (l *Ledger) Wakeups() <-chan struct{} { return l.wakeups }

// Wake sends a value to Wakeups. It does not block.
func (l *Ledger) Wake() {
	select {
	case l.wakeups <- struct{}{}:
	default:
	}
}
