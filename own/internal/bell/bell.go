// Package bell wakes goroutines that wait for a change.
package bell

import "sync/atomic"

// A Bell wakes goroutines that wait for something to change. The zero value is ready. A
// goroutine that waits calls Listen, checks whether what it waits for is there, and if not
// receives from the channel. A goroutine that changes something calls Ring after the
// change. So no change is missed.
//
// Only goroutines outside of all bubbles of testing/synctest call Listen: the channel of one
// that is in a bubble must not be closed by others.
type Bell struct{ rung atomic.Pointer[chan struct{}] }

// Listen returns a channel that the next Ring closes.
func (b *Bell) Listen() <-chan struct{} {
	for {
		if c := b.rung.Load(); c != nil {
			return *c
		}
		if c := make(chan struct{}); b.rung.CompareAndSwap(nil, &c) {
			return c
		}
	}
}

// Ring wakes all who listen. It does not block, and is cheap if nobody does.
func (b *Bell) Ring() {
	if b.rung.Load() == nil {
		return
	}
	if c := b.rung.Swap(nil); c != nil {
		close(*c)
	}
}
