package batch

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/span"
)

// A Bundle is what one call of the release function releases: open entries that several
// jobs leave behind, of one spec and one parent, or of none, so that they share a state.
// A job is a dead batch, or a sentinel that was found, see [Releaser].
type Bundle struct {
	parts []Picked // one for each job; its resources are not valid
	n     int      // entries
	done  int      // of words, that were passed to the release function
	words []uintptr
	spare []uintptr

	// Of a large bundle words and spare are in units outside the Go heap, and these are
	// those of small ones.
	base       uintptr // of the units, or 0
	units      int
	smallWords []uintptr
	smallSpare []uintptr
}

// A bundle of more entries is large. Its memory would be a part of the Go heap that is not
// small, in a program that only forgets.
const smallBundle = 2048

// Grow makes room for n entries, at the beginning. A bundle may get more.
func (b *Bundle) Grow(n int) {
	if n <= smallBundle || !useStore {
		return
	}
	each := (uintptr(n)*unsafe.Sizeof(uintptr(0)) + span.UnitSize - 1) / span.UnitSize
	if b.base = takeUnits(int(2 * each)); b.base == 0 {
		return
	}
	b.units = int(2 * each)
	b.smallWords, b.smallSpare = b.words, b.spare
	// The units are the bundle's alone until Reset, and have no Go pointers.
	b.words = unsafe.Slice((*uintptr)(osmem.Pointer(b.base)), each*span.UnitSize/unsafe.Sizeof(uintptr(0)))[:0]
	b.spare = unsafe.Slice((*uintptr)(osmem.Pointer(b.base+each*span.UnitSize)), each*span.UnitSize/unsafe.Sizeof(uintptr(0)))[:0]
}

// Size returns how many entries a job has at most, if a bundle may have it together with
// others, and else 0. A batch of one is released alone: with Options.Batch 1 a call has one
// resource.
func Size(b *Batch, job uint32) int {
	switch {
	case job&Lost == 0 || b.size == 1:
		return 0
	case job == All:
		return int(b.n)
	}
	return 1 << b.Share
}

// Together reports whether a bundle may have entries of both batches, which are of one spec.
func Together(a, b *Batch) bool {
	if a.kin == nil || b.kin == nil {
		return a.kin == b.kin
	}
	return a.kin.family == b.kin.family
}

// Add claims the open entries of a job. All sentinels of the batch that are lost by now are
// taken, because the job is done in one step; their own jobs find nothing. If Size of
// the job is 0, the caller releases what Add returns, and the bundle serves for Tell.
func (b *Bundle) Add(l *Batch, job uint32) Picked {
	d := Dead{Batch: l, Job: job, Others: job != All, Buf: b.spare[:0]}
	p := d.Claim(int(l.n))
	for _, i := range d.Apart {
		l.Spec.Releaser.Dead(l, i)
	}
	b.spare, p.found = d.Buf, d.Found
	b.words = append(b.words, p.words...)
	b.n += p.K
	b.parts = append(b.parts, p)
	return p
}

// AddApart has Tell tell of an entry, which the caller releases, if it is one of Dead.Apart.
func (b *Bundle) AddApart(l *Batch, i uint32) {
	if l.FoundApart(i) {
		b.parts = append(b.parts, Picked{Batch: l, apart: true, index: i})
	}
}

// Len returns the number of entries.
func (b *Bundle) Len() int { return b.n }

// Left returns the number of entries that Release has not released.
func (b *Bundle) Left() int { return b.n - b.done }

// Release releases the next entries, n or fewer, in the order of their addresses. All count as
// released after the last ones, and if the release function panics then its call is over. Blocks
// of a heap are released all at once.
func (b *Bundle) Release(n int) (o Outcome) {
	if b.n == 0 {
		return Outcome{}
	}
	if len(b.words) == 0 { // blocks of a heap
		o.Parent, o.Index = b.finish()
		return o
	}
	l := b.parts[0].Batch
	if !l.Spec.Numbers && b.done == 0 {
		b.words, b.spare = sortAddresses(b.words, b.spare)
	}
	words := b.words[b.done:]
	if len(words) > n {
		b.done += n
		return l.call(l.state, words[:n], func() (*Batch, uint32) { return nil, 0 })
	}
	b.done = len(b.words)
	return l.call(l.state, words, b.finish)
}

// finish counts the entries as released. It returns their parent if the last child was among
// them.
func (b *Bundle) finish() (parent *Batch, index uint32) {
	for _, p := range b.parts {
		if p.K == 0 {
			continue
		}
		if l, i := p.Batch.finish(p.K, p.bytes); l != nil {
			parent, index = l, i
		}
	}
	return parent, index
}

// Untold returns the number of jobs of which Tell has not told.
func (b *Bundle) Untold() int { return len(b.parts) }

// Tell tells OnCollect of what was released of the next job, of which Untold says that there is
// one. If OnCollect ends the goroutine, the next Tell goes on behind it.
func (b *Bundle) Tell() {
	last := len(b.parts) - 1
	p := b.parts[last]
	b.parts[last] = Picked{}
	b.parts = b.parts[:last]
	if p.apart {
		p.Batch.TellApart(p.index)
	} else {
		p.Batch.Tell(p.found)
	}
}

// Reset empties the bundle. It keeps the memory of a small one. No lock is held.
func (b *Bundle) Reset() {
	if b.base != 0 {
		giveUnits(b.base, b.units)
		b.words, b.spare = b.smallWords, b.smallSpare
		b.base, b.units, b.smallWords, b.smallSpare = 0, 0, nil, nil
	}
	clear(b.parts)
	b.parts, b.n, b.done, b.words = b.parts[:0], 0, 0, b.words[:0]
}
