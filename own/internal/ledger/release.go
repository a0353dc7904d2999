package ledger

import (
	"sync/atomic"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/goroutine"
)

// An Outcome is what a release has left to do.
type Outcome struct {
	Err error // of the release function

	// Parent is not nil if the last child of a closed parent was released: the
	// entry at Index must be passed to the parent's sink.
	Parent *Ledger
	Index  uint32
}

// Settle does what a release of count entries of the kind has left to do, where no
// Close returns the error.
func (o Outcome) Settle(k *Kind, count int) {
	o.disposeOfParents()
	k.Failed(count, o.Err)
}

// disposeOfParents passes the parent to its sink, then a parent whose last child this
// was to the parent's sink, and so on. It is a loop, not a recursion, because
// families may be deep. Errors are told at the end, because OnReleaseError may end
// the goroutine.
func (o Outcome) disposeOfParents() {
	type failure struct {
		kind *Kind
		err  error
	}
	var failures []failure
	for o.Parent != nil {
		k := o.Parent.Kind
		if o = o.Parent.pass(o.Index); o.Err != nil {
			failures = append(failures, failure{k, o.Err})
		}
	}
	for _, f := range failures {
		f.kind.Failed(1, f.err)
	}
}

// Dispose passes an entry that is closed, in no Use and without children to its
// sink, where no Close waits for it.
func (l *Ledger) Dispose(i uint32) { l.pass(i).Settle(l.Kind, 1) }

// pass passes an entry to its sink. Release sets Gone; what a heap gets back is not
// passed to Release.
func (l *Ledger) pass(i uint32) Outcome {
	o := l.Kind.Sink.Closed(l, i)
	if l.Kind.Heap != nil {
		atomic.OrUint64(&l.States[i], Gone)
	}
	return o
}

// Release calls the release function for one closed entry.
func (l *Ledger) Release(i uint32) Outcome {
	defer atomic.OrUint64(&l.States[i], Gone) // also in a panic
	return l.releaseAll(l.Words[i:i+1:i+1], 1, SizeOf(l.State(i)))
}

// releaseDirect is Release of an entry of a direct ledger.
func (l *Ledger) releaseDirect(i uint32, s uint64) error {
	m := goroutine.Enter()
	defer func() { // also in a panic
		m.Leave()
		l.Done(1, SizeOf(s))
	}()
	return l.Kind.Release(l.state, l.Words[i:i+1:i+1])
}

// releaseAll calls the release function for k closed entries of bytes in all, whose
// resources are words. If the release function panics, releaseAll itself disposes of
// the parent.
func (l *Ledger) releaseAll(words []uintptr, k int, bytes int64) (o Outcome) {
	returned := false
	m := goroutine.Enter()
	defer func() {
		m.Leave()
		o.Parent, o.Index = l.finish(k, bytes)
		if !returned && o.Parent != nil {
			defer func() { recover() }() // the first panic goes on
			o.disposeOfParents()         // the caller cannot do that in a panic
		}
	}()
	o.Err = l.Kind.Release(l.state, words)
	returned = true
	return
}

// finish counts k entries as released. It returns their parent if the caller must
// dispose of it now, or nil.
func (l *Ledger) finish(k int, bytes int64) (parent *Ledger, index uint32) {
	l.Done(k, bytes)
	if l.kin != nil && l.kin.family.leave(k) {
		return l.kin.family.parent, l.kin.family.index
	}
	return nil, 0
}

// Done counts k entries, of bytes in all, as released. The call that counts the
// last entry of a sealed batch ends the batch.
func (l *Ledger) Done(k int, bytes int64) {
	// The account changes before the entries count as gone. A goroutine that
	// waits until they are gone must not find them in Stats.
	sealed := l.Sealed()
	if sealed {
		l.Kind.Count(-k, -bytes)
	}
	gone := l.gone.Add(uint64(bytes)<<goneBytes | uint64(k)<<goneOwners)
	if gone&goneSealed == 0 {
		return
	}
	if !sealed {
		l.Kind.Count(-k, -bytes) // the batch was sealed between Load and Add
	}
	if uint32(gone>>goneOwners&goneMask) == l.n {
		l.end()
	}
}

// end is called once, when the batch is sealed and its last entry is gone. The
// caller may hold the lock of a shard: Free takes locks of the heap only, and calls
// no other code.
func (l *Ledger) end() {
	l.node.remove()
	if l.kin != nil {
		l.kin.node.remove()
	}
	if l.Chunk != 0 {
		// The chunk is from the heap's TryMalloc, and no block in it is live.
		l.Kind.Heap.Free(cheap.Pointer(l.Chunk))
	}
}

// found is the cleanup of a batch's token: no owner of the batch is left. All other
// cleanups of package cleanup wait for it. It mostly runs on one of the few goroutines
// on which the runtime calls cleanups, which os.File needs as well. So the sink does
// not block.
func (l *Ledger) found() {
	if gone, _ := l.Gone(); uint32(gone) == l.n {
		return // each entry is closed and released
	}
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	l.Kind.Sink.Dead(l, All)
}

// SealStock makes a sealed and dead batch of a ledger whose entries have resources,
// made in advance, and no owners. The caller has the only reference to the ledger.
func (l *Ledger) SealStock() {
	l.Stock, l.dead = true, true
	l.n = uint32(len(l.States))
	for i := range l.States {
		l.States[i] = uint64(l.Kind.Size)<<StateSize | Open
	}
	l.Kind.Counts.Made.Add(-int64(l.n))
	l.Kind.Count(int(l.n), 0) // their bytes are counted already
	l.gone.Store(goneSealed)
}

// ReleaseStock is SealStock, and then the release on the calling goroutine, or by
// the kind's queue.
func (l *Ledger) ReleaseStock() {
	l.SealStock()
	if l.Kind.Queues {
		l.Kind.Sink.Dead(l, All)
		return
	}
	d := Dead{Ledger: l}
	p := d.Claim(int(l.n))
	p.Release().Settle(l.Kind, p.K)
}

// OpenEntries returns the number of open entries of a sealed batch.
func (l *Ledger) OpenEntries() (n int64) {
	for i := range l.n {
		n += int64(l.State(i) & Open)
	}
	return n
}

// A Dead is the release of a dead batch, in one step or several.
type Dead struct {
	Ledger *Ledger
	Next   uint32    // the entry at which the next step begins
	Buf    []uintptr // for the resources of a step, if they are not side by side
	Found  int       // open entries that the last step has claimed
}

// Claim is a step: it takes open entries from d.Next on, until most can be
// released. A parent whose children are not released is taken, and not among those
// that are picked: the last child releases it. A dead batch whose entries are all
// taken has d.Next at the end.
//
// Claim does not change the states. No owner is left that could look at them, and
// Destroy, which may run at the same time, leaves a dead batch alone.
func (d *Dead) Claim(most int) Picked {
	l := d.Ledger
	p := Pick(l)
	p.buf = d.Buf[:0]
	l.mu.Lock()
	defer l.mu.Unlock()
	d.Found = 0
	i, blocks := d.Next, l.Kind.Heap != nil
	for ; i < l.n; i++ {
		s := l.State(i)
		if s&Open == 0 {
			continue
		}
		if p.K == most {
			break
		}
		d.Found++
		if l.origins != nil {
			l.forgotten = l.origins[i]
		} else if l.sampled != nil && i == l.SampleAt {
			l.forgotten = l.sampled
		}
		switch {
		case s&kinBit != 0 && !l.families[i].close(): // the last child releases it
		case blocks && s&Extra == 0:
			p.K++ // it returns with its chunk
			p.bytes += SizeOf(s)
		default:
			p.Add(i, s)
		}
	}
	d.Next, d.Buf = i, p.buf
	return p
}

// Picked are closed entries of one ledger, in ascending order, that are released by
// one call. Their words are not copied while the entries are side by side.
type Picked struct {
	Ledger *Ledger
	K      int // entries
	bytes  int64

	// The resources for the release function are those of the entries from first to
	// next, or, if next is noRun, those in buf.
	first, next uint32
	buf         []uintptr
}

const noRun = 1<<32 - 1

// Pick returns a Picked without entries.
func Pick(l *Ledger) Picked { return Picked{Ledger: l, next: noRun} }

// Add adds an entry with its state. It is small enough to be inlined.
func (p *Picked) Add(i uint32, state uint64) {
	p.K++
	p.bytes += int64(state >> StateSize)
	if i != p.next {
		p.add(i)
	} else {
		p.next++
	}
}

// add is Add for an entry that does not continue the run.
func (p *Picked) add(i uint32) {
	l := p.Ledger
	switch {
	case l.Kind.Heap != nil && l.State(i)&Extra == 0:
		return // it returns with its chunk
	case l.Kind.Heap == nil && p.K == 1:
		p.first, p.next = i, i+1
		return
	case p.next != noRun:
		p.buf = append(p.buf[:0], p.words()...)
		p.next = noRun
	}
	p.buf = append(p.buf, l.Words[i])
}

// Release releases the entries.
func (p *Picked) Release() (o Outcome) {
	words := p.words()
	switch {
	case p.K == 0:
		return Outcome{}
	case len(words) == 0:
		o.Parent, o.Index = p.Ledger.finish(p.K, p.bytes)
		return o
	}
	return p.Ledger.releaseAll(words, p.K, p.bytes)
}

func (p *Picked) words() []uintptr {
	if p.next == noRun {
		return p.buf
	}
	return p.Ledger.Words[p.first:p.next:p.next]
}

// Tell counts k entries that were released because of the collector, and calls
// OnCollect.
func (l *Ledger) Tell(k int) {
	if k == 0 || l.Stock {
		return
	}
	l.Kind.Counts.Collected.Add(int64(k))
	if l.Kind.OnCollect == nil {
		return
	}
	l.mu.Lock()
	from := l.forgotten
	l.forgotten = nil
	l.mu.Unlock()
	stack := ""
	if from != nil {
		stack = from.String()
	}
	m := goroutine.Enter()
	defer m.Leave()
	l.Kind.OnCollect(k, stack)
}

// An Unclosed adds up entries that are neither closed nor found by the collector.
type Unclosed struct {
	N       int
	Origins map[Origin]int // with Kind.Trace
	Labels  []string
}

// Add adds those of a batch, if that is sealed.
func (u *Unclosed) Add(l *Ledger) {
	if !l.Sealed() {
		return
	}
	for _, e := range l.OpenOnes(nil) {
		u.N++
		if l.origins != nil {
			if u.Origins == nil {
				u.Origins = map[Origin]int{}
			}
			u.Origins[*e.Origin]++
		}
		if e.Label != "" {
			u.Labels = append(u.Labels, e.Label)
		}
	}
}

// Left adds up the entries of sealed batches that are not released: those in Use,
// those that wait for children, and the others.
func Left(ledgers []*Ledger) (inUse, waiting, others int) {
	for _, l := range ledgers {
		gone, _ := l.Gone()
		others += int(l.n) - gone
		for i := range l.n {
			if s := l.State(i); s&usesMask != 0 {
				inUse++
			} else if s&kinBit != 0 && l.family(i).waits() {
				waiting++
			}
		}
	}
	return inUse, waiting, others - inUse - waiting
}
