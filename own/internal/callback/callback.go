// Package callback has the table behind the numbers that C holds for Go values.
//
// A number is the user data of a C function. It leads to a Go value through a weak pointer, so
// C keeps nothing reachable:
//
//	C: number --> slot of the table ..> cell --> target: the value, its owner
//	                              weak   ^         |
//	                                     +---------+
//	Go: own.Callback --> target ---------+
//
// The value may refer to whatever has the own.Callback. That is a cycle of the Go heap, which
// the collector frees as a whole.
//
// # Concurrency
//
// A call of C takes no lock: it loads the weak pointer of the slot, makes it strong, loads the
// target, and compares the target's number with that of C. All else is done under the lock of the
// table. A target is never changed. A slot and its cell serve again when their callback has
// ended, with another number. So a call that has loaded the cell before that finds a target
// with another number, or none.
//
// The sequence of a call and an end of the owner is decided by the state of the owner's entry,
// see package batch: the call is a Use. When the collector has found the owner unreachable, then
// the cell, which refers to it, was unreachable in the same collection, and the weak pointer is nil
// before a release begins.
package callback

import (
	"sync/atomic"

	"github.com/cheapgo/cheap/own/internal/batch"
)

// A Kind is what the callbacks of one exported function have in common.
type Kind struct {
	Name  string
	ended atomic.Int64 // calls that found no target
}

// Ended returns the number of calls that found their callback ended.
func (k *Kind) Ended() int64 { return k.ended.Load() }

// A Target is what a number leads to. It is not changed after it is stored.
type Target struct {
	Value any

	cell   *Cell
	kind   *Kind
	number uintptr
	ref    batch.Ref // the owner; zero if there is none
}

// Number returns the number for C.
func (t *Target) Number() uintptr { return t.number }

// A Cell is what the weak pointer of a slot points to. Only targets refer to it, and its slot
// while the callback is held, or while the cell waits to be used again.
type Cell struct {
	// nil if the callback has ended. Stored under table.mu. No target is a part of the cell: it would
	// keep its value reachable while the cell waits, or serves another callback.
	target atomic.Pointer[Target]
	slot   uint32

	// To make a weak pointer, the runtime walks over the weak pointers of the same span of
	// memory. That is shorter for larger objects: a cell has 128 bytes with 64-bit pointers.
	_ [112]byte
}

// Begin begins a call of C with a number of the kind. It returns nil if the callback has ended.
// Else the owner is in use, and what the target refers to is reachable, until End. It panics
// for a number that no callback of the kind can have.
func (k *Kind) Begin(number uintptr) *Target {
	s := table.slotOf(number)
	if s == nil {
		k.panicNumber(number)
	}
	if t := s.live(number); t != nil {
		if t.kind != k {
			k.panicKind(t)
		}
		if t.enter() {
			return t
		}
	}
	k.ended.Add(1)
	return nil
}

// live returns the target of the number in slot s, or nil.
func (s *slot) live(number uintptr) *Target {
	w := s.weak.load()
	c := w.Value()
	if c == nil {
		return nil
	}
	if t := c.target.Load(); t != nil && t.number == number {
		return t
	}
	return nil
}

// enter begins a Use of the owner. It returns false if the owner is closed.
func (t *Target) enter() bool {
	s := t.ref.Sentinel()
	switch {
	case s == nil:
		return true
	case s.Batch.Spec.Unshared:
		return s.Peek(t.ref.Index)
	}
	return s.Enter(t.ref.Index, "Call")
}

// End ends what Begin has begun. It must be deferred, because the function between the two may
// panic or end its goroutine, and because until then the call that is deferred keeps t and what that
// refers to: the cell, the value, the sentinel.
func (t *Target) End() {
	if s := t.ref.Sentinel(); s != nil && !s.Batch.Spec.Unshared {
		s.Exit(t.ref.Index)
	}
}

// over reports whether the callback ends because its owner is closed.
func (t *Target) over() bool { return t.ref.Sentinel() != nil && t.ref.Vacant() }

//go:noinline
func (k *Kind) panicNumber(number uintptr) {
	batch.PanicMisuse(k.Name, "Call", "%#x is no number of a callback; pass to C what Callback.Set returned, as the function's user data", number)
}

//go:noinline
func (k *Kind) panicKind(t *Target) {
	batch.PanicMisuse(k.Name, "Call", "the number is that of a callback of %s; each exported function has Callbacks of its own", t.kind.Name)
}
