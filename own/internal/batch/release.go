package batch

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/gcwatch"
)

// An Outcome is what a release has left to do.
type Outcome struct {
	Err error // of the release function

	// Parent is not nil if the last child of a closed parent was released: the
	// entry at Index must be passed to the parent's releaser.
	Parent *Batch
	Index  uint32
}

// Settle does what a release of count entries of the spec has left to do, where no
// Close returns the error.
func (o Outcome) Settle(k *Spec, count int) {
	o.disposeOfParents()
	k.Failed(count, o.Err)
}

// disposeOfParents passes the parent to its releaser, then a parent whose last child this
// was to the parent's releaser, and so on. It is a loop, not a recursion, because
// families may be deep. Errors are told at the end, because OnReleaseError may end
// the goroutine.
func (o Outcome) disposeOfParents() {
	type failure struct {
		spec *Spec
		err  error
	}
	var failures []failure
	for o.Parent != nil {
		k := o.Parent.Spec
		if o = o.Parent.pass(o.Index); o.Err != nil {
			failures = append(failures, failure{k, o.Err})
		}
	}
	for _, f := range failures {
		f.spec.Failed(1, f.err)
	}
}

// Dispose passes an entry that is closed, in no Use and without children to its
// releaser, where no Close waits for it.
func (b *Batch) Dispose(i uint32) { b.pass(i).Settle(b.Spec, 1) }

// pass passes an entry to its releaser. Release sets Gone; what a heap gets back is not
// passed to Release.
func (b *Batch) pass(i uint32) Outcome {
	o := b.Spec.Releaser.Closed(b, i)
	if b.Spec.Heap != nil {
		b.setGone(i)
	}
	return o
}

// Release calls the release function for one closed entry.
func (b *Batch) Release(i uint32) Outcome {
	defer b.setGone(i) // also in a panic
	e := b.at(i)
	s, state := atomic.LoadUint64(&e.State), b.state
	if s&kinBit != 0 {
		if f := b.family(i); f.alone {
			state = f.take()
		}
	}
	return b.call(state, e.word(), func() (*Batch, uint32) { return b.finish(1, SizeOf(s)) })
}

// setGone sets Gone in the state of an entry that is counted as gone. Its page may be
// dropped by now. If a CloseWait waits, the sentinel of its owner keeps the page.
func (b *Batch) setGone(i uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pages[i>>b.pageShift] != nil {
		atomic.OrUint64(&b.at(i).State, Gone)
	}
	if b.notes != nil && b.awaited != nil {
		if c := b.awaited[i]; c != nil {
			close(c)
			delete(b.awaited, i)
		}
	}
}

// releaseDirect is Release of an entry of a direct batch.
func (b *Batch) releaseDirect(e *Entry, s uint64) error {
	m := gcwatch.EnterSection()
	defer func() { // also in a panic
		m.Leave()
		b.Done(1, SizeOf(s))
	}()
	return b.Spec.Release(b.state, e.word())
}

// releaseAll calls the release function for k closed entries of bytes in all, whose
// resources are words.
func (b *Batch) releaseAll(words []uintptr, k int, bytes int64) Outcome {
	return b.call(b.state, words, func() (*Batch, uint32) { return b.finish(k, bytes) })
}

// call calls the release function, and then finish, which counts the entries as released,
// and returns their parent if that is due, or nil. If the release function panics, call
// itself disposes of the parent.
func (b *Batch) call(state any, words []uintptr, finish func() (parent *Batch, index uint32)) (o Outcome) {
	returned := false
	m := gcwatch.EnterSection()
	defer func() {
		m.Leave()
		o.Parent, o.Index = finish()
		if !returned && o.Parent != nil {
			defer func() { recover() }() // the first panic goes on
			o.disposeOfParents()         // the caller cannot do that in a panic
		}
	}()
	o.Err = b.Spec.Release(state, words)
	runtime.KeepAlive(state) // the release function may need it in C only
	returned = true
	return o
}

// finish counts k entries as released. It returns their parent if the caller must
// dispose of it now, or nil.
func (b *Batch) finish(k int, bytes int64) (parent *Batch, index uint32) {
	// The parent has to count as one that is being released before the last child is gone, or
	// a Destroy that looks in between would not wait for it.
	due := b.kin != nil && b.kin.family.leave(k)
	if b.Done(k, bytes); due {
		return b.kin.family.parent, b.kin.family.index
	}
	return nil, 0
}

// Done counts k entries, of bytes in all, as released. The call that counts the
// last entry of a sealed batch ends the batch.
func (b *Batch) Done(k int, bytes int64) {
	// The account changes before the entries count as gone. A goroutine that
	// waits until they are gone must not find them in Stats.
	sealed := b.Sealed()
	if sealed {
		b.Spec.Count(-k, -bytes)
	}
	gone := b.gone.Add(uint64(bytes)<<goneBytes | uint64(k)<<goneOwners)
	if gone&goneSealed == 0 {
		return
	}
	if !sealed {
		b.Spec.Count(-k, -bytes) // the batch was sealed between Load and Add
	}
	if uint32(gone>>goneOwners&goneOver) >= b.n {
		b.over(gone)
	}
}

// end is called once, when the batch is sealed and its last entry is gone. The
// caller may hold the lock of a shard: Free takes locks of the heap only, and calls
// no other code.
func (b *Batch) end() {
	if b.outside {
		b.mu.Lock()
		b.dropPages()
		b.mu.Unlock()
	}
	if !b.old.Load() {
		b.Spec.mix.ended()
	}
	b.node.remove()
	if b.kin != nil {
		b.kin.node.remove()
	}
	if b.Chunk != 0 {
		// The chunk is from the heap's TryMalloc, and no block in it is live.
		b.Spec.Heap.Free(cheap.Pointer(b.Chunk))
	}
}

// SealStock seals a batch whose entries have resources, made in advance, and no owners,
// and makes it a dead one. The caller has the only reference to the batch.
func (b *Batch) SealStock() {
	b.Stock, b.dead, b.unreachable = true, true, true
	b.n = b.size
	for i := range b.n {
		b.at(i).State = uint64(b.Spec.Size)<<StateSize | Open
	}
	b.Spec.Counts.Made.Add(-int64(b.n))
	b.Spec.Count(int(b.n), 0) // their bytes are counted already
	b.gone.Store(goneSealed)
}

// ReleaseStock is SealStock, and then the release on the calling goroutine, or by
// the spec's queue.
func (b *Batch) ReleaseStock() {
	b.SealStock()
	if b.Spec.Queues {
		b.Spec.Releaser.Dead(b, All)
		return
	}
	d := Dead{Batch: b, Job: All}
	p := d.Claim(int(b.n))
	p.Release().Settle(b.Spec, p.K)
}

// OpenEntries returns the number of open entries of a job: of a dead batch, or of what
// the owners of a sentinel have left behind.
func (b *Batch) OpenEntries(job uint32) (n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first, next := uint32(0), b.n
	if job != All {
		first, next = b.entriesOf(job &^ Lost)
	}
	for i := first; i < next; i++ {
		n += int64(b.State(i) & Open)
	}
	return n
}

// A Dead is the release of a dead batch, or of what the owners of a sentinel have left
// behind, in one step or several.
type Dead struct {
	Batch  *Batch
	Job    uint32    // as the releaser has got it
	Others bool      // take all sentinels that are lost by now, because this is the only step; their jobs find nothing
	Next   uint32    // the entry at which the next step begins
	Buf    []uintptr // for the resources of a step
	Found  int       // open entries that the last step has claimed, but for those of Apart
	Apart  []uint32  // those with a state of their own, each to be passed to Release
}

// Claim is a step: it takes open entries from d.Next on, until most can be
// released. A parent whose children are not released is taken, and not among those
// that are picked: the last child releases it. Neither are entries with a state of their
// own, which go to d.Apart. A job whose entries are all taken has d.Next at the end of the
// batch.
//
// Claim does not change the states. No owner is left that could look at them, and
// Destroy, which may run at the same time, leaves these entries alone.
func (d *Dead) Claim(most int) Picked {
	b := d.Batch
	p := Pick(b)
	p.words = d.Buf[:0]
	b.mu.Lock()
	defer b.mu.Unlock()
	d.Found, d.Apart = 0, d.Apart[:0]
	switch {
	case d.Job == All:
		d.Next = d.claim(&p, d.Next, b.n, most)
	case b.parts.claimed(d.Job &^ Lost):
		d.Next = b.n
	case d.Others:
		for j := range b.sentinels() {
			if b.parts.dead(j) && !b.parts.claimed(j) {
				first, next := b.entriesOf(j)
				d.claim(&p, first, next, most)
				b.claimed(j)
			}
		}
		d.Next = b.n
	default:
		j := d.Job &^ Lost
		first, next := b.entriesOf(j)
		if d.Next = d.claim(&p, max(d.Next, first), next, most); d.Next == next {
			b.claimed(j)
			d.Next = b.n
		}
	}
	d.Buf = p.words
	return p
}

// EndWhole counts all entries of a dead batch as released if none was closed before. They
// are blocks of a heap that return with their chunk, and whose sizes do not change. It
// looks at no entry. It reports false if some entries are closed, or may be.
func (b *Batch) EndWhole() bool {
	b.mu.Lock()
	// An owner that closes an entry keeps its sentinel alive until the entry is counted as gone.
	// So in a dead batch the others that close entries are those of a Destroy, and the last
	// children.
	gone, _ := b.Gone()
	whole := gone == 0 && !b.shut && b.parts == nil && (b.notes == nil || b.families == nil)
	if whole && b.rate > 0 && b.notes != nil {
		b.foundOpen(0, b.n)
	}
	b.mu.Unlock()
	if whole {
		b.Done(int(b.n), b.bytes)
		b.Tell(int(b.n))
	}
	return whole
}

// claim claims open entries from i on, below next. It returns the first one that is left.
// The caller holds b.mu.
func (d *Dead) claim(p *Picked, i, next uint32, most int) uint32 {
	b := d.Batch
	if b.notes != nil {
		defer func(first uint32) { b.foundOpen(first, i) }(i)
	}
	for i < next {
		end := min(next, (i|b.PageMask())+1)
		// The entries of a page are side by side. The page may be dropped, if a Destroy, which
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
			d.Found++
			if s&kinBit != 0 {
				f := b.families[i+uint32(k)]
				if !f.close() { // the last child releases it
					continue
				}
				if f.alone {
					f.setFound()
					d.Found--
					d.Apart = append(d.Apart, i+uint32(k))
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
	found int       // Dead.Found of a job of a bundle
	apart bool      // in a bundle: it is one of Dead.Apart, the entry
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

// Tell counts k entries that were released because of the collector, and calls
// OnCollect.
func (b *Batch) Tell(k int) {
	if k == 0 || b.Stock {
		return
	}
	b.tell(k, func() (from *Origin) {
		if b.notes != nil {
			from, b.forgotten = b.forgotten, nil
		}
		return from
	})
}

// FoundApart reports whether the collector has found an entry that went to Dead.Apart.
func (b *Batch) FoundApart(i uint32) bool {
	if b.State(i)&kinBit == 0 {
		return false
	}
	f := b.family(i)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.found
}

// TellApart is Tell for an entry of which FoundApart is true.
func (b *Batch) TellApart(i uint32) {
	b.tell(1, func() *Origin { return b.originOf(i) })
}

// tell counts k entries, and calls OnCollect. It calls origin with b.mu held.
func (b *Batch) tell(k int, origin func() *Origin) {
	b.Spec.Counts.Collected.Add(int64(k))
	if b.Spec.OnCollect == nil {
		return
	}
	b.mu.Lock()
	from := origin()
	b.mu.Unlock()
	stack := ""
	if from != nil {
		stack = from.String()
	}
	m := gcwatch.EnterSection()
	defer m.Leave()
	b.Spec.OnCollect(k, stack)
}

// An Unclosed adds up entries that are neither closed nor found by the collector.
type Unclosed struct {
	N       int
	Origins map[Stack]int // of batches of which each origin is recorded
	Labels  []string
}

// Add adds those of a batch, if that is sealed.
func (u *Unclosed) Add(b *Batch) {
	if !b.Sealed() {
		return
	}
	for _, e := range b.OpenOnes(nil) {
		u.N++
		if b.Every() {
			if u.Origins == nil {
				u.Origins = map[Stack]int{}
			}
			u.Origins[e.Origin.Stack()]++
		}
		if e.Label != "" {
			u.Labels = append(u.Labels, e.Label)
		}
	}
}

// Left adds up the entries of sealed batches that are not released: those in Use,
// those that wait for children, and the others.
func Left(batches []*Batch) (inUse, waiting, others int) {
	for _, b := range batches {
		gone, _ := b.Gone()
		others += int(b.n) - gone
		b.mu.Lock()
		for i := range b.n {
			if s := b.State(i); s&usesMask != 0 {
				inUse++
			} else if s&kinBit != 0 && b.families[i].waits() {
				waiting++
			}
		}
		b.mu.Unlock()
	}
	return inUse, waiting, others - inUse - waiting
}
