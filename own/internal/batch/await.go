package batch

import "github.com/cheapgo/cheap/own/internal/bell"

// Changed rings when the result of Left may have changed for a batch with a call of
// Announce, and when a release has entered or left a queue.
var Changed bell.Bell

// Announce makes Changed ring from now on when entries of the batch, which is sealed,
// are released, or their last Use ends.
func (b *Batch) Announce() { b.gone.Or(goneAnnounced) }

// Ended reports whether each entry of a sealed batch is released or disowned.
func (b *Batch) Ended() bool {
	owners, _ := b.Gone()
	return owners == int(b.n)
}

// over is called after entries of a sealed batch have gone: it ends the batch after the last
// one, and rings Changed if Announce was called. gone is the value of Batch.gone after these
// entries.
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

// Await returns a channel that is closed when entry i is released. Close has left the
// release to others. The caller is in no bubble of testing/synctest.
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
