package ledger

import (
	"runtime"
	"sync/atomic"
	"unsafe"

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
		l.setGone(i)
	}
	return o
}

// Release calls the release function for one closed entry.
func (l *Ledger) Release(i uint32) Outcome {
	defer l.setGone(i) // also in a panic
	e := l.at(i)
	s, state := atomic.LoadUint64(&e.State), l.state
	if s&kinBit != 0 {
		if f := l.family(i); f.alone {
			state = f.take()
		}
	}
	return l.call(state, e.word(), func() (*Ledger, uint32) { return l.finish(1, SizeOf(s)) })
}

// setGone sets Gone in the state of an entry that is counted as gone. Its page may be
// dropped by now. If a CloseWait waits, the token of its owner keeps the page.
func (l *Ledger) setGone(i uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pages[i>>l.pageShift] != nil {
		atomic.OrUint64(&l.at(i).State, Gone)
	}
	if l.notes != nil && l.awaited != nil {
		if c := l.awaited[i]; c != nil {
			close(c)
			delete(l.awaited, i)
		}
	}
}

// releaseDirect is Release of an entry of a direct ledger.
func (l *Ledger) releaseDirect(e *Entry, s uint64) error {
	m := goroutine.Enter()
	defer func() { // also in a panic
		m.Leave()
		l.Done(1, SizeOf(s))
	}()
	return l.Kind.Release(l.state, e.word())
}

// releaseAll calls the release function for k closed entries of bytes in all, whose
// resources are words.
func (l *Ledger) releaseAll(words []uintptr, k int, bytes int64) Outcome {
	return l.call(l.state, words, func() (*Ledger, uint32) { return l.finish(k, bytes) })
}

// call calls the release function, and then finish, which counts the entries as released,
// and returns their parent if that is due, or nil. If the release function panics, call
// itself disposes of the parent.
func (l *Ledger) call(state any, words []uintptr, finish func() (parent *Ledger, index uint32)) (o Outcome) {
	returned := false
	m := goroutine.Enter()
	defer func() {
		m.Leave()
		o.Parent, o.Index = finish()
		if !returned && o.Parent != nil {
			defer func() { recover() }() // the first panic goes on
			o.disposeOfParents()         // the caller cannot do that in a panic
		}
	}()
	o.Err = l.Kind.Release(state, words)
	runtime.KeepAlive(state) // the release function may need it in C only
	returned = true
	return o
}

// finish counts k entries as released. It returns their parent if the caller must
// dispose of it now, or nil.
func (l *Ledger) finish(k int, bytes int64) (parent *Ledger, index uint32) {
	// The parent has to count as one that is being released before the last child is gone, or
	// a Destroy that looks in between would not wait for it.
	due := l.kin != nil && l.kin.family.leave(k)
	if l.Done(k, bytes); due {
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
	if uint32(gone>>goneOwners&goneOver) >= l.n {
		l.over(gone)
	}
}

// end is called once, when the batch is sealed and its last entry is gone. The
// caller may hold the lock of a shard: Free takes locks of the heap only, and calls
// no other code.
func (l *Ledger) end() {
	if l.outside {
		l.mu.Lock()
		l.dropPages()
		l.mu.Unlock()
	}
	if !l.old.Load() {
		l.Kind.mix.ended()
	}
	l.node.remove()
	if l.kin != nil {
		l.kin.node.remove()
	}
	if l.Chunk != 0 {
		// The chunk is from the heap's TryMalloc, and no block in it is live.
		l.Kind.Heap.Free(cheap.Pointer(l.Chunk))
	}
}

// SealStock makes a sealed and dead batch of a ledger whose entries have resources,
// made in advance, and no owners. The caller has the only reference to the ledger.
func (l *Ledger) SealStock() {
	l.Stock, l.dead, l.unreachable = true, true, true
	l.n = l.size
	for i := range l.n {
		l.at(i).State = uint64(l.Kind.Size)<<StateSize | Open
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
	d := Dead{Ledger: l, Job: All}
	p := d.Claim(int(l.n))
	p.Release().Settle(l.Kind, p.K)
}

// OpenEntries returns the number of open entries of a job: of a dead batch, or of what
// the owners of a token have left behind.
func (l *Ledger) OpenEntries(job uint32) (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, next := uint32(0), l.n
	if job != All {
		first, next = l.entriesOf(job &^ Lost)
	}
	for i := first; i < next; i++ {
		n += int64(l.State(i) & Open)
	}
	return n
}

// A Dead is the release of a dead batch, or of what the owners of a token have left
// behind, in one step or several.
type Dead struct {
	Ledger *Ledger
	Job    uint32    // as the sink has got it
	Others bool      // take all tokens that are lost by now, because this is the only step; their jobs find nothing
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
	l := d.Ledger
	p := Pick(l)
	p.words = d.Buf[:0]
	l.mu.Lock()
	defer l.mu.Unlock()
	d.Found, d.Apart = 0, d.Apart[:0]
	switch {
	case d.Job == All:
		d.Next = d.claim(&p, d.Next, l.n, most)
	case l.parts.claimed(d.Job &^ Lost):
		d.Next = l.n
	case d.Others:
		for j := range l.tokens() {
			if l.parts.dead(j) && !l.parts.claimed(j) {
				first, next := l.entriesOf(j)
				d.claim(&p, first, next, most)
				l.claimed(j)
			}
		}
		d.Next = l.n
	default:
		j := d.Job &^ Lost
		first, next := l.entriesOf(j)
		if d.Next = d.claim(&p, max(d.Next, first), next, most); d.Next == next {
			l.claimed(j)
			d.Next = l.n
		}
	}
	d.Buf = p.words
	return p
}

// EndWhole counts all entries of a dead batch as released if none was closed before. They
// are blocks of a heap that return with their chunk, and whose sizes do not change. It
// looks at no entry. It reports false if some entries are closed, or may be.
func (l *Ledger) EndWhole() bool {
	l.mu.Lock()
	// An owner that closes an entry keeps its token alive until the entry is counted as gone.
	// So in a dead batch the others that close entries are those of a Destroy, and the last
	// children.
	gone, _ := l.Gone()
	whole := gone == 0 && !l.shut && l.parts == nil && (l.notes == nil || l.families == nil)
	if whole && l.rate > 0 && l.notes != nil {
		l.foundOpen(0, l.n)
	}
	l.mu.Unlock()
	if whole {
		l.Done(int(l.n), l.bytes)
		l.Tell(int(l.n))
	}
	return whole
}

// claim claims open entries from i on, below next. It returns the first one that is left.
// The caller holds l.mu.
func (d *Dead) claim(p *Picked, i, next uint32, most int) uint32 {
	l := d.Ledger
	if l.notes != nil {
		defer func(first uint32) { l.foundOpen(first, i) }(i)
	}
	for i < next {
		end := min(next, (i|l.PageMask())+1)
		// The entries of a page are side by side. The page may be dropped, if a Destroy, which
		// had begun before, has released all.
		page := unsafe.Slice(l.at(i), end-i)
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
				f := l.families[i+uint32(k)]
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

// Picked are closed entries of one ledger, in ascending order, that are released by
// one call.
type Picked struct {
	Ledger *Ledger
	K      int // entries
	bytes  int64
	words  []uintptr // the resources for the release function
	found  int       // Dead.Found of a job of a bundle
	apart  bool      // in a bundle: it is one of Dead.Apart, the entry
	index  uint32
}

// Pick returns a Picked without entries.
func Pick(l *Ledger) Picked { return Picked{Ledger: l} }

// Add adds an entry.
func (p *Picked) Add(e Entry) {
	p.K++
	p.bytes += SizeOf(e.State)
	if p.Ledger.Kind.Heap == nil || e.State&Extra != 0 { // else it returns with its chunk
		p.words = append(p.words, e.Word)
	}
}

// Release releases the entries.
func (p *Picked) Release() (o Outcome) {
	switch {
	case p.K == 0:
		return Outcome{}
	case len(p.words) == 0:
		o.Parent, o.Index = p.Ledger.finish(p.K, p.bytes)
		return o
	}
	return p.Ledger.releaseAll(p.words, p.K, p.bytes)
}

// Tell counts k entries that were released because of the collector, and calls
// OnCollect.
func (l *Ledger) Tell(k int) {
	if k == 0 || l.Stock {
		return
	}
	l.tell(k, func() (from *Origin) {
		if l.notes != nil {
			from, l.forgotten = l.forgotten, nil
		}
		return from
	})
}

// FoundApart reports whether the collector has found an entry that went to Dead.Apart.
func (l *Ledger) FoundApart(i uint32) bool {
	if l.State(i)&kinBit == 0 {
		return false
	}
	f := l.family(i)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.found
}

// TellApart is Tell for an entry of which FoundApart is true.
func (l *Ledger) TellApart(i uint32) {
	l.tell(1, func() *Origin { return l.originOf(i) })
}

// tell counts k entries, and calls OnCollect. It calls origin with l.mu held.
func (l *Ledger) tell(k int, origin func() *Origin) {
	l.Kind.Counts.Collected.Add(int64(k))
	if l.Kind.OnCollect == nil {
		return
	}
	l.mu.Lock()
	from := origin()
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
	Origins map[Stack]int // of batches of which each origin is recorded
	Labels  []string
}

// Add adds those of a batch, if that is sealed.
func (u *Unclosed) Add(l *Ledger) {
	if !l.Sealed() {
		return
	}
	for _, e := range l.OpenOnes(nil) {
		u.N++
		if l.Every() {
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
func Left(ledgers []*Ledger) (inUse, waiting, others int) {
	for _, l := range ledgers {
		gone, _ := l.Gone()
		others += int(l.n) - gone
		l.mu.Lock()
		for i := range l.n {
			if s := l.State(i); s&usesMask != 0 {
				inUse++
			} else if s&kinBit != 0 && l.families[i].waits() {
				waiting++
			}
		}
		l.mu.Unlock()
	}
	return inUse, waiting, others - inUse - waiting
}
