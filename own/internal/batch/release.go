package batch

import (
	"runtime"
	"sync/atomic"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// An Outcome is what a release has left to do.
type Outcome struct {
	Err error // of the release function

	// Parent is not nil if the last child of a closed parent was released: the
	// entry at Index must be passed to the parent's releaser.
	Parent *Batch
	Index  uint32
}

// Settle does what a release of count entries of the spec has left to do, if no
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
// releaser, if no Close waits for it.
func (b *Batch) Dispose(i uint32) { b.pass(i).Settle(b.Spec, 1) }

// pass passes an entry to its releaser. Release sets Gone. pass sets Gone for a block
// of a heap, which is not passed to Release.
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
	// a Close of the pool that counts in between would not wait for it.
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
		b.Spec.Releaser.Dead(JobOf(b, All))
		return
	}
	c := Claim{Job: JobOf(b, All)}
	p := c.Step(int(b.n))
	p.Release().Settle(b.Spec, p.K)
}

// EndWhole counts all entries of a dead batch as released if none was closed before. They
// are blocks of a heap that return with their chunk, and whose sizes do not change. It
// reads no entry. It reports false if some entries are closed, or may be.
func (b *Batch) EndWhole() bool {
	b.mu.Lock()
	// An owner that closes an entry keeps its sentinel alive until the entry is counted as gone.
	// So in a dead batch entries are closed only by a Close of the pool, and released by it or by the last
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

// FoundApart reports whether the collector has found an entry that went to Claim.Apart.
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
