package ledger

// A Bundle is what one call of the release function releases: open entries that several
// jobs leave behind, of one kind and one parent, or of none, so that they share a state.
// A job is a dead batch, or a token that was found, see [Sink].
type Bundle struct {
	parts []Picked // one for each job; its resources are not valid
	n     int      // entries
	words []uintptr
	spare []uintptr
}

// Size returns how many entries a job has at most, if a bundle may have it together with
// others, and else 0. A batch of one is released alone: with Options.Batch 1 a call has one
// resource.
func Size(l *Ledger, job uint32) int {
	switch {
	case job&Lost == 0 || l.size == 1:
		return 0
	case job == All:
		return int(l.n)
	}
	return 1 << l.Share
}

// Together reports whether a bundle may have entries of both batches, which are of one kind.
func Together(a, b *Ledger) bool {
	if a.kin == nil || b.kin == nil {
		return a.kin == b.kin
	}
	return a.kin.family == b.kin.family
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

// Release releases the entries, in the order of their addresses.
func (b *Bundle) Release() (o Outcome) {
	if b.n == 0 {
		return Outcome{}
	}
	if len(b.words) == 0 { // blocks of a heap
		o.Parent, o.Index = b.finish()
		return o
	}
	l := b.parts[0].Ledger
	if !l.Kind.Numbers {
		b.words, b.spare = sortAddresses(b.words, b.spare)
	}
	return l.call(b.words, b.finish)
}

// finish counts the entries as released. It returns their parent if the last child was among
// them.
func (b *Bundle) finish() (parent *Ledger, index uint32) {
	for _, p := range b.parts {
		if p.K == 0 {
			continue
		}
		if l, i := p.Ledger.finish(p.K, p.bytes); l != nil {
			parent, index = l, i
		}
	}
	return parent, index
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
