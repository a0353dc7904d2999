package batch

import (
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// A Bundle releases jobs of one spec that have one parent, or none. So their entries share a
// state, and one call of the release function releases them, if there is time. See run.go.
// The zero Bundle is empty. One goroutine at a time uses it.
type Bundle struct {
	// Of the last jobs with a Size: the entries that were released, and in which time.
	Count int
	Took  time.Duration

	// See Run.
	step  step
	begun bool
	errs  []failure

	parts []Picked // one for each job that is begun, until it is told; its resources are not valid
	n     int      // entries
	done  int      // how many of words were passed to the release function
	words []uintptr
	spare []uintptr

	// The words and spare of a large bundle are in units outside the Go heap. Meanwhile
	// smallWords and smallSpare keep the Go memory for small ones.
	base       uintptr // of the units, or 0
	units      int
	smallWords []uintptr
	smallSpare []uintptr
}

// A bundle of more entries is large. In a program that only forgets owners, its memory
// would be a large part of the Go heap.
const smallBundle = 2048

// grow makes room for n entries, at the beginning. A bundle may get more.
func (b *Bundle) grow(n int) {
	if n <= smallBundle || !useStore {
		return
	}
	each := (uintptr(n)*unsafe.Sizeof(uintptr(0)) + span.UnitSize - 1) / span.UnitSize
	if b.base = takeUnits(int(2 * each)); b.base == 0 {
		return
	}
	b.units = int(2 * each)
	b.smallWords, b.smallSpare = b.words, b.spare
	// The units are the bundle's alone until reset, and have no Go pointers.
	b.words = unsafe.Slice((*uintptr)(osmem.Pointer(b.base)), each*span.UnitSize/unsafe.Sizeof(uintptr(0)))[:0]
	b.spare = unsafe.Slice((*uintptr)(osmem.Pointer(b.base+each*span.UnitSize)), each*span.UnitSize/unsafe.Sizeof(uintptr(0)))[:0]
}

// add claims the open entries of a job. All sentinels of the batch that are lost by now are
// taken, because the job is done in one step; their own jobs find nothing. If the Size of
// the job is 0, the caller releases what add returns, and the bundle serves for tell.
func (b *Bundle) add(j Job) Picked {
	c := Claim{Job: j, Others: j.Entry != All, Buf: b.spare[:0]}
	p := c.Step(int(j.Batch.n))
	for _, i := range c.Apart {
		j.Batch.Spec.Releaser.Dead(JobOf(j.Batch, i))
	}
	b.spare, p.found = c.Buf, c.Found
	b.words = append(b.words, p.words...)
	b.n += p.K
	b.parts = append(b.parts, p)
	return p
}

// addApart makes tell report an entry, which the caller releases, if the entry is one of
// Claim.Apart.
func (b *Bundle) addApart(l *Batch, i uint32) {
	if l.FoundApart(i) {
		b.parts = append(b.parts, Picked{Batch: l, apart: true, index: i})
	}
}

// left returns the number of entries that releaseSome has not released.
func (b *Bundle) left() int { return b.n - b.done }

// releaseSome releases the next entries, n or fewer, in the order of their addresses. No entry
// counts as released before the last one is. If the release function panics, the entries of its
// call are not passed to it again. Blocks of a heap are released all at once.
func (b *Bundle) releaseSome(n int) (o Outcome) {
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

// tell calls OnCollect for the released entries of the next element of parts. If
// OnCollect ends the goroutine, the next call of tell goes on with the element behind.
func (b *Bundle) tell() {
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

// reset empties the bundle. It keeps the memory of a small one. No lock is held.
func (b *Bundle) reset() {
	if b.base != 0 {
		giveUnits(b.base, b.units)
		b.words, b.spare = b.smallWords, b.smallSpare
		b.base, b.units, b.smallWords, b.smallSpare = 0, 0, nil, nil
	}
	clear(b.parts)
	b.parts, b.n, b.done, b.words = b.parts[:0], 0, 0, b.words[:0]
	b.step, b.begun, b.errs = toRelease, false, nil
}
