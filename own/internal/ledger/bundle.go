package ledger

import "github.com/cheapgo/cheap/internal/goroutine"

// A Bundle is what one call of the release function releases: open entries that several
// jobs leave behind, of one kind. A job is a dead batch, or a token that was found, see
// [Sink]. The batches have no parent, so they share Kind.State.
type Bundle struct {
	parts []Picked // one for each job; its resources are not valid
	n     int      // entries
	words []uintptr
	spare []uintptr
}

// Size returns how many entries a job has at most, if a bundle may have it together with
// others, and else 0. What has a parent is released alone, because the parent may
// follow. So is a batch of one: with Options.Batch 1 a call has one resource.
func Size(l *Ledger, job uint32) int {
	switch {
	case job&Lost == 0 || l.kin != nil || l.size == 1:
		return 0
	case job == All:
		return int(l.n)
	}
	return 1 << l.Share
}

// Add claims the open entries of a job. All tokens of the batch that are lost by now are
// taken, because the job is done in one step; their own jobs find nothing. If Size of
// the job is 0, the caller releases what Add returns, and the bundle serves for Tell.
func (b *Bundle) Add(l *Ledger, job uint32) Picked {
	d := Dead{Ledger: l, Job: job, Others: job != All, Buf: b.spare[:0]}
	p := d.Claim(int(l.n))
	b.spare, p.found = d.Buf, d.Found
	b.words = append(b.words, p.words...)
	b.n += p.K
	b.parts = append(b.parts, p)
	return p
}

// Len returns the number of entries.
func (b *Bundle) Len() int { return b.n }

// Release releases the entries, in the order of their addresses. It returns the error of
// the release function.
func (b *Bundle) Release() error {
	if b.n == 0 {
		return nil
	}
	k := b.parts[0].Ledger.Kind
	if len(b.words) == 0 { // blocks of a heap
		b.done()
		return nil
	}
	if !k.Numbers {
		b.words, b.spare = sortAddresses(b.words, b.spare)
	}
	m := goroutine.Enter()
	defer func() { // also in a panic
		m.Leave()
		b.done()
	}()
	return k.Release(k.State, b.words)
}

// done counts the entries as released.
func (b *Bundle) done() {
	for _, p := range b.parts {
		if p.K > 0 {
			p.Ledger.Done(p.K, p.bytes)
		}
	}
}

// Tell tells OnCollect of what was released. If OnCollect ends the goroutine, the next
// Tell goes on behind it.
func (b *Bundle) Tell() {
	for len(b.parts) > 0 {
		last := len(b.parts) - 1
		p := b.parts[last]
		b.parts[last] = Picked{}
		b.parts = b.parts[:last]
		p.Ledger.Tell(p.found)
	}
}

// Reset empties the bundle. It keeps the memory.
func (b *Bundle) Reset() {
	clear(b.parts)
	b.parts, b.n, b.words = b.parts[:0], 0, b.words[:0]
}
