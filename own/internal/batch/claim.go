package batch

import (
	"sync/atomic"
	"unsafe"
)

// A Claim takes the open entries of a [Job], which the collector has found, in one step or
// several.
type Claim struct {
	Job    Job
	Others bool      // take all sentinels that are lost by now, because this is the only step; their jobs find nothing
	Next   uint32    // the entry at which the next step begins
	Buf    []uintptr // for the resources of a step
	Found  int       // open entries that the last step has claimed, without those of Apart
	Apart  []uint32  // those with a state of their own, each to be passed to Release
}

// Step takes open entries from c.Next on, until most can be released. It returns them,
// except two kinds:
//
//	a parent whose children are not released   the last child releases it
//	an entry with a state of its own           it goes to c.Apart
//
// When all entries of the job are taken, c.Next is the end of the batch.
//
// Step does not change the states. No owner is left that could read them, and
// Close of the pool, which may run at the same time, leaves these entries alone.
func (c *Claim) Step(most int) Picked {
	b, of := c.Job.Batch, c.Job.Entry&^Lost
	p := Pick(b)
	p.words = c.Buf[:0]
	b.mu.Lock()
	defer b.mu.Unlock()
	c.Found, c.Apart = 0, c.Apart[:0]
	switch {
	case c.Job.Entry == All:
		c.Next = c.claim(&p, c.Next, b.n, most)
	case b.parts.claimed(of):
		c.Next = b.n
	case c.Others:
		for j := range b.sentinels() {
			if b.parts.dead(j) && !b.parts.claimed(j) {
				first, next := b.entriesOf(j)
				c.claim(&p, first, next, most)
				b.claimed(j)
			}
		}
		c.Next = b.n
	default:
		first, next := b.entriesOf(of)
		if c.Next = c.claim(&p, max(c.Next, first), next, most); c.Next == next {
			b.claimed(of)
			c.Next = b.n
		}
	}
	c.Buf = p.words
	return p
}

// claim claims open entries from i on, below next. It returns the first one that is left.
// The caller holds b.mu.
func (c *Claim) claim(p *Picked, i, next uint32, most int) uint32 {
	b := c.Job.Batch
	if b.notes != nil {
		defer func(first uint32) { b.foundOpen(first, i) }(i)
	}
	for i < next {
		end := min(next, (i|b.PageMask())+1)
		// The entries of a page are side by side. The page may be dropped, if a Close of the pool, which
		// had begun before, has released all.
		page := unsafe.Slice(b.at(i), end-i)
		for k := range page {
			e := &page[k]
			s := atomic.LoadUint64(&e.State)
			if s&Open == 0 {
				continue
			}
			if p.K == most {
				i += uint32(k)
				return i
			}
			c.Found++
			if s&kinBit != 0 {
				f := b.families[i+uint32(k)]
				if !f.close() { // the last child releases it
					continue
				}
				if f.alone {
					f.setFound()
					c.Found--
					c.Apart = append(c.Apart, i+uint32(k))
					continue
				}
			}
			p.Add(Entry{State: s, Word: e.Word})
		}
		i = end
	}
	return i
}

// Picked are closed entries of one batch, in ascending order, that are released by
// one call.
type Picked struct {
	Batch *Batch
	K     int // entries
	bytes int64
	words []uintptr // the resources for the release function
	found int       // Claim.Found of a job of a bundle
	apart bool      // in a bundle: it is one of Claim.Apart, the entry
	index uint32
}

// Pick returns a Picked without entries.
func Pick(b *Batch) Picked { return Picked{Batch: b} }

// Add adds an entry.
func (p *Picked) Add(e Entry) {
	p.K++
	p.bytes += SizeOf(e.State)
	if p.Batch.Spec.Heap == nil || e.State&Extra != 0 { // else it returns with its chunk
		p.words = append(p.words, e.Word)
	}
}

// Release releases the entries.
func (p *Picked) Release() (o Outcome) {
	switch {
	case p.K == 0:
		return Outcome{}
	case len(p.words) == 0:
		o.Parent, o.Index = p.Batch.finish(p.K, p.bytes)
		return o
	}
	return p.Batch.releaseAll(p.words, p.K, p.bytes)
}
