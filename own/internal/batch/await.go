package batch

import "github.com/cheapgo/cheap/own/internal/bell"

// Changed rings when Left may have changed for a batch that Announce was called for, or a
// release was queued or has left a queue.
var Changed bell.Bell

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
