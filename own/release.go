package own

import "sync/atomic"

// dispose releases an entry that is closed, in no Use and without children: here
// and now or, in a pool with Drain, by queueing it. Where that was the last
// child of a parent that waits, the parent follows, and so on up; a loop, since
// families may be deep.
func (l *ledger) dispose(i uint32) {
	for l != nil && !l.leaveToDrain(i) {
		if l.pool.carver != nil {
			l.giveBack(i)
			return
		}
		l, i = l.releaseOne(i)
	}
}

// leaveToDrain queues an entry in a pool with Drain, and reports whether it did:
// not within Drain, in a release function.
func (l *ledger) leaveToDrain(i uint32) bool {
	p := l.pool
	if !p.drain || p.draining() {
		return false
	}
	p.enqueue(job{ledger: l, entry: i})
	return true
}

// releaseOne calls the release function for one entry, and returns the parent
// that is to be disposed of next, if there is one.
func (l *ledger) releaseOne(i uint32) (parent *ledger, index uint32) {
	w := l.pool.words
	first := int(i) * w
	return l.releaseAll(l.words[first:first+w:first+w], 1, sizeOf(l.state(i)))
}

// releaseAll calls the release function for k claimed entries, and returns the
// parent that is to be disposed of next, if there is one.
func (l *ledger) releaseAll(words []uintptr, k int, bytes int64) (parent *ledger, index uint32) {
	returned := false
	defer func() {
		parent, index = l.finish(k, bytes)
		if !returned && parent != nil {
			defer func() { recover() }() // the first panic is the one to be told
			parent.dispose(index)        // nobody else will
		}
	}()
	l.pool.destroy(words)
	returned = true
	return
}

// destroy calls the release function.
func (p *Pool) destroy(words []uintptr) {
	if p.destructor != nil {
		p.destructor.ReleaseAll(words, p.words, p.noCallback)
		return
	}
	p.release(words)
}

// finish counts k entries as released, and returns the parent of theirs if it is
// to be disposed of now.
func (l *ledger) finish(k int, bytes int64) (parent *ledger, index uint32) {
	s := l.shard
	l.done(k, bytes)
	if f := s.family; f != nil && f.leave(s, k) {
		return f.ledger, f.index
	}
	return nil, 0
}

// found is the cleanup of a batch's token: no owner of it is left. It runs on a
// goroutine of the runtime's, of which there are few and which os.File needs as
// well, so it only hands the ledger on.
func (l *ledger) found() {
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	if l.pool.carver != nil && l.pool.onCollect == nil {
		l.giveBackDead() // no need for a worker: it does not block, and calls nobody
		return
	}
	if l.pool.drain {
		l.pool.enqueue(job{ledger: l, entry: allEntries})
	} else {
		submit(l)
	}
}

// A claim is what is taken from a dead batch to be released.
type claim struct {
	found  int       // entries that were open, and are closed now
	words  []uintptr // of those that can be released now; the others wait for children
	k      int       // how many these are
	copied bool      // words is the buffer, not a part of the ledger
	bytes  int64     // their sizes
	next   uint32    // where to go on; the number of entries at the end
}

// claim takes entries of a dead batch that are still open, from entry at on,
// until max can be released. Families are told that the parent is closed; a
// parent whose children are not released is left to the last of them.
//
// Nobody else but Destroy can touch a dead batch, and it takes the same lock.
func (l *ledger) claim(at uint32, max int, buf []uintptr) (c claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := uint32(l.pool.words)
	first, plain := at, true // so far, what is claimed lies side by side from first on
	next, k := at, 0
	for ; next < l.n; next++ {
		s := l.state(next)
		if s&stateOpen == 0 {
			continue
		}
		if k == max {
			break
		}
		atomic.StoreUint64(&l.states[next], s&^stateOpen)
		c.found++
		if l.origins != nil {
			l.forgotten = l.origins[next]
		} else if l.sampled != nil && next == l.sampleAt {
			l.forgotten = l.sampled
		}
		if s&stateKin != 0 && !l.families[next].close() {
			continue
		}
		if k == 0 {
			first = next
		} else if plain && next != first+uint32(k) {
			plain = false
			buf = append(buf[:0], l.words[first*w:(first+uint32(k))*w]...)
		}
		if !plain {
			buf = append(buf, l.words[next*w:(next+1)*w]...)
		}
		k++
		c.bytes += sizeOf(s)
	}
	c.words, c.copied, c.k, c.next = buf, !plain, k, next
	if plain {
		end := (first + uint32(k)) * w
		c.words = l.words[first*w : end : end]
	}
	return c
}

// releaseDead releases what is left of a dead batch, and returns the parent that
// is to be disposed of next, if there is one. buf is used where resources do not
// lie side by side, and returned for the next batch.
func (l *ledger) releaseDead(buf []uintptr) (next []uintptr, parent *ledger, i uint32) {
	if l.pool.carver != nil {
		l.giveBackDead()
		return buf, nil, 0
	}
	c := l.claim(0, len(l.states), buf)
	if c.k > 0 {
		parent, i = l.releaseAll(c.words, c.k, c.bytes)
		if c.copied {
			buf = c.words[:0]
		}
	}
	l.tell(c.found)
	return buf, parent, i
}

// tell says that the collector has had k entries released.
func (l *ledger) tell(k int) {
	p := l.pool
	if k == 0 || l.stock {
		return
	}
	p.collected.Add(int64(k))
	if p.onCollect == nil {
		return
	}
	l.mu.Lock()
	from := l.forgotten
	l.forgotten = nil
	l.mu.Unlock()
	c := Collected{Pool: p.name, Count: k}
	if from != nil {
		c.Stack = from.String()
	}
	p.onCollect(c)
}
