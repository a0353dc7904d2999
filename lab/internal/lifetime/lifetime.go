//go:build cgo && unix

package lifetime

import (
	"fmt"

	"github.com/cheapgo/cheap/internal/test/cside"
)

// A Lifetime is a way for Go objects to own something, ready to run. It is for one
// goroutine. Only one Lifetime at a time may run, because they share the counts of
// C.
type Lifetime struct {
	// Run makes n objects, one after the other, and drops them. It panics if there
	// is no memory.
	Run func(n int)

	// Left returns how many resources of objects are not released, in any unit. It
	// returns 0 when all are released.
	Left func() int

	// Released returns how many objects have been released since some moment
	// before the Lifetime was opened. It is nil if they are not counted.
	Released func() int

	// Peak returns the most bytes that were live since its last call. It is nil if
	// C counts them.
	Peak func() int64

	// Close releases what the Lifetime itself holds. Left must be 0.
	Close func() error

	blocks bool // each object has a block of C, which Run makes
	ahead  bool // others are made in advance

	before   cside.Counts // when Begin was called
	released int
}

// A Way opens a Lifetime.
type Way func() (*Lifetime, error)

// Begin begins a round. Check uses what is counted from here on.
func (l *Lifetime) Begin() {
	l.before = cside.Count()
	if l.Released != nil {
		l.released = l.Released()
	}
}

// Done returns how many objects have been released in the round.
func (l *Lifetime) Done() int {
	if l.Released == nil {
		return 0
	}
	return l.Released() - l.released
}

// Check returns an error unless n objects have been made and released in the round,
// as far as they are counted. Left must be 0.
func (l *Lifetime) Check(n int) error {
	if l.Released != nil && l.Done() != n {
		return fmt.Errorf("%d of %d objects were released", l.Done(), n)
	}
	if !l.blocks {
		return nil
	}
	now := cside.Count()
	created, destroyed := now.Created-l.before.Created, now.Destroyed-l.before.Destroyed
	if !l.ahead && (created != uint64(n) || destroyed != uint64(n)) || destroyed < uint64(n) {
		return fmt.Errorf("made %d blocks in C and destroyed %d, for %d objects", created, destroyed, n)
	}
	return nil
}

// CheckKept returns an error unless n objects have been made in the round and none
// was released. It is for rounds with the collector off.
func (l *Lifetime) CheckKept(n int) error {
	if done := l.Done(); done > 0 {
		return fmt.Errorf("%d of %d objects were released", done, n)
	}
	if created := cside.Count().Created - l.before.Created; l.blocks && created != uint64(n) {
		return fmt.Errorf("made %d blocks in C for %d objects", created, n)
	}
	if l.Left() == 0 {
		return fmt.Errorf("none of %d objects is left", n)
	}
	return nil
}

// Settle runs collections until Left is 0. It gives up after a minute.
func (l *Lifetime) Settle() error {
	dropAll()
	return Collect(l.Left)
}

// dropAll drops the objects that were made to escape last.
func dropAll() {
	Sink, ownedSink, goSink, memorySink, groupSink = nil, nil, nil, nil, nil
}

// Live returns how many blocks of C are live.
func Live() int {
	c := cside.Count()
	return int(c.Created - c.Destroyed)
}

// destroyed returns how many blocks of C have been destroyed.
func destroyed() int { return int(cside.Count().Destroyed) }

// onBlocks makes a Lifetime of objects with a block of C each.
func onBlocks(run func(n int)) *Lifetime {
	return &Lifetime{Run: run, Left: Live, Released: destroyed, Close: nothing, blocks: true}
}

func nothing() error { return nil }
