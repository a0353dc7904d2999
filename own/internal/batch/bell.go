package batch

import "sync/atomic"

// A Bell wakes goroutines that wait for something to change. The zero value is ready. A
// goroutine that waits calls Listen, looks whether what it waits for is there, and if not
// receives from the channel. Who changes something calls Ring after that. So no change is
// missed.
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

// Changed rings when Left may have changed for a batch that Announce was called for, or a
// release was queued or has left a queue.
var Changed Bell

// Announce has Changed ring from now on when entries of the batch, which is sealed, are
// released, or come out of use.
func (b *Batch) Announce() { b.gone.Or(goneAnnounced) }

// Ended reports whether each entry of a sealed batch is released or disowned.
func (b *Batch) Ended() bool {
	owners, _ := b.Gone()
	return owners == int(b.n)
}

// over is called when the last entry of a sealed batch may be gone, or others are told. gone
// is the state after an entry.
func (b *Batch) over(gone uint64) {
	if owners, _ := split(gone); owners == int(b.n) {
		b.end()
	}
	if gone&goneAnnounced != 0 {
		Changed.Ring()
	}
}

// announce rings Changed if Announce was called.
func (b *Batch) announce() {
	if b.gone.Load()&goneAnnounced != 0 {
		Changed.Ring()
	}
}

// Await returns a channel that is closed when an entry is released that Close has left to
// others. The caller is in no bubble of testing/synctest.
func (t *Sentinel) Await(i uint32) <-chan struct{} {
	b := t.Batch
	b.mu.Lock()
	defer b.mu.Unlock()
	c := make(chan struct{})
	if t.State(i)&Gone != 0 {
		close(c)
		return c
	}
	b.note()
	if b.awaited == nil {
		b.awaited = map[uint32]chan struct{}{}
	}
	b.awaited[i] = c // one call of Close leaves it to others, so there is one
	return c
}
