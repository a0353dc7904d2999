package batch

// The way of a forgotten owner to its release. Each step is a call from one package to
// another. What is indented happens within the package.
//
// A. After a collection, a batch that is open is sealed:
//
//	 1  intake.sealOpened             seals the batches that are open
//	 2  window.(*Window).Opened       if there is a window, owners are made through it:
//	 3  window.(*Window).Close        it is closed, on its P
//	 4  percpu.Enter
//	 5  percpu.Leave
//	 6  batch.(*Batch).Seal           nobody adds an entry any more,
//	 7  account.(*Ledger).ChargeReclaimable     the bytes are counted,
//	 8  account.(*Account).Charge
//	 9  gcwatch.Watch                 and the sentinel is registered
//	10  percpu.Here
//
// A batch that is full is sealed before that, by who makes the next owner.
//
// B. After a collection that has found the sentinel unreachable, the resources are released:
//
//	 1  intake.AfterSweep.Swept       batches that step A could not seal, on other Ps, are sealed
//	                                  package gcwatch walks over the registrations
//	 2  batch.(*Batch).collected      of those whose sentinel is gone,
//	                                  lost makes a Job of what the owners have left,
//	 3  worker.(*Dispatcher).Dead     and the job is queued
//	 4  worker.AfterWalk.Walked       the walk is over: workers get the jobs of a pool, as many
//	                                  as one releases in a bit
//	 5  batch.(*Bundle).Run           claims the open entries of its jobs,
//	 6  gcwatch.EnterSection          calls the release function, in a section,
//	 7  gcwatch.(*Section).Leave
//	 8  account.(*Ledger).UnchargeReclaimable   takes the bytes off the accounts,
//	 9  account.(*Account).Uncharge
//	                                  ends the batches whose last entries these were,
//	                                  and tells OnReleaseError and OnCollect
//	10  bell.(*Bell).Ring             nothing is queued any more: Flush returns
//
// So the way enters package batch twice: to make the Job, and to run it. The packages between
// the two know only the Job. TestWay of package own compares the list with the calls of a
// program.

// A Job is what a [Releaser] is to release later.
type Job struct {
	Batch *Batch

	// Parent has the batch's resources as children, or is nil. A bundle has jobs of one
	// parent, so that the release function gets its state.
	Parent *Family

	// Entry is the index of an entry that is closed, in no Use and without children; or
	// Lost and the number of a sentinel, for the open entries of its owners; or All, for
	// the open entries of a dead batch.
	Entry uint32

	// Size is how many entries the job has at most, if a bundle may have it together with
	// others, or else 0. A batch of one entry is released alone: with Options.Batch 1 a call
	// of the release function has one resource.
	Size int32
}

// Lost is set in the Entry of a job that the collector has found.
const Lost = 1 << 31

// All stands for all open entries of a batch, in place of an index. Lost is set in it.
const All = 1<<32 - 1

// JobOf returns the job of an Entry.
func JobOf(b *Batch, entry uint32) Job {
	j := Job{Batch: b, Entry: entry}
	if b.kin != nil {
		j.Parent = b.kin.family
	}
	switch {
	case entry&Lost == 0 || b.size == 1:
	case entry == All:
		j.Size = int32(b.n)
	default:
		j.Size = 1 << b.Share
	}
	return j
}

// OpenEntries returns the number of open entries of j, which the collector has found.
func (j Job) OpenEntries() (n int64) {
	b := j.Batch
	b.mu.Lock()
	defer b.mu.Unlock()
	first, next := uint32(0), b.n
	if j.Entry != All {
		first, next = b.entriesOf(j.Entry &^ Lost)
	}
	for i := first; i < next; i++ {
		n += int64(b.State(i) & Open)
	}
	return n
}

// collected is called by package gcwatch for registered sentinel number j. If alive is
// nil, the sentinel was found unreachable; otherwise it has outlived some collections.
// collected reports whether it is to be called again after some more collections. All
// other functions of package gcwatch wait for collected. It mostly runs on one of the few
// goroutines on which the runtime calls cleanups, and os.File needs these as well. So it
// does not block.
func (b *Batch) collected(j uint16, alive *Sentinel) (again bool) {
	if alive == nil {
		b.lost(uint32(j))
		return false
	}
	return b.outlived(alive)
}

// lost makes a job of the open entries of sentinel j, or of the whole batch if it is not
// split.
func (b *Batch) lost(j uint32) {
	gone, _ := b.Gone()
	job := uint32(All)
	b.mu.Lock()
	if p := b.parts; p == nil {
		b.unreachable = true
		if uint32(gone) == b.n { // each entry is closed and released
			b.dropPages()
			b.mu.Unlock()
			return
		}
		b.dead = true
	} else {
		job = Lost | j
		p.setDead(j)
		b.heard()
		p.left--
		switch {
		case b.Share > FineShare:
		case p.left > 0:
			b.Spec.mix.add(0, -1)
		default:
			b.Spec.mix.add(-int(b.sentinels()), -1)
		}
		first, next := b.entriesOf(j)
		open := false
		for i := first; i < next && !open; i++ {
			open = b.State(i)&Open != 0
		}
		b.unreachable = p.left == 0
		if !open {
			b.claimed(j)
			b.dropPages()
			b.mu.Unlock()
			return
		}
	}
	b.mu.Unlock()
	b.Spec.Releaser.Dead(JobOf(b, job))
}
