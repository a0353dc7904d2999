package own

import "sync/atomic"

// dispose releases an entry that is closed, in no Use and without children: here
// and now or, in a pool with Drain, by queueing it. Where that was the last
// child of a parent that waits, the parent follows, and so on up; a loop, since
// families may be deep.
func (l *ledger) dispose(i uint32) {
	for l != nil {
		if p := l.pool; p.drain && !p.draining() {
			p.enqueue(job{ledger: l, entry: i})
			return
		}
		l, i = l.releaseOne(i)
	}
}

// releaseOne calls the release function for one entry, and returns the parent
// that is to be disposed of next, if there is one.
func (l *ledger) releaseOne(i uint32) (parent *ledger, index uint32) {
	returned := false
	defer func() {
		parent, index = l.finish(1, sizeOf(l.state(i)))
		if !returned {
			panicked.Store(l.pool)
			if parent != nil {
				parent.dispose(index) // nobody else will
			}
		}
	}()
	w := l.pool.words
	first := int(i) * w
	l.pool.release(l.words[first : first+w : first+w])
	returned = true
	return
}

// finish counts k entries as released, and returns the parent of theirs if it is
// to be disposed of now.
func (l *ledger) finish(k int, bytes int64) (parent *ledger, index uint32) {
	f := l.shard.family
	l.done(k, bytes)
	if f != nil && f.leave(k) {
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
	if l.pool.drain {
		l.pool.enqueue(job{ledger: l, entry: allEntries})
	} else {
		submit(l)
	}
}

// claim takes entries of a dead batch that are still open, at most max, from
// entry at on. It returns their resources, how many they are, their sizes, and
// where to go on; at the end that is the number of entries. Families are told
// that the parent is closed; a parent whose children are not released is left
// to the last of them.
//
// Nobody else but Destroy can touch a dead batch, and it takes the same lock.
func (l *ledger) claim(at uint32, max int, buf []uintptr) (words []uintptr, k int, bytes int64, next uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := uint32(l.pool.words)
	first, plain := at, true // so far, what is claimed lies side by side from first on
	for next = at; next < l.n && k < max; next++ {
		s := l.state(next)
		if s&stateOpen == 0 {
			continue
		}
		atomic.StoreUint64(&l.states[next], s&^stateOpen)
		if l.origins != nil {
			l.found1 = l.origins[next]
		} else if l.sampled != nil && next == l.sampleAt {
			l.found1 = l.sampled
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
		bytes += sizeOf(s)
	}
	if plain {
		end := (first + uint32(k)) * w
		return l.words[first*w : end : end], k, bytes, next
	}
	return buf, k, bytes, next
}

// releaseDead releases what is left of a dead batch, on a worker. buf is used
// where resources do not lie side by side, and returned for the next batch.
func (l *ledger) releaseDead(buf []uintptr) []uintptr {
	words, k, bytes, _ := l.claim(0, len(l.states), buf)
	if k == 0 {
		return buf
	}
	l.releaseAll(words, k, bytes)
	l.tell(k)
	if &words[0] != &l.words[0] && cap(words) > cap(buf) {
		return words[:0]
	}
	return buf
}

// releaseAll calls the release function for k claimed entries.
func (l *ledger) releaseAll(words []uintptr, k int, bytes int64) {
	returned := false
	defer func() {
		if !returned {
			panicked.Store(l.pool)
		}
		if parent, i := l.finish(k, bytes); parent != nil {
			parent.dispose(i)
		}
	}()
	l.pool.release(words)
	returned = true
}

// panicked is the pool whose release function panicked last, for the message of
// a worker, which may have come to another pool from one's last child.
var panicked atomic.Pointer[Pool]

// tell says that the collector has had k entries released.
func (l *ledger) tell(k int) {
	p := l.pool
	if l.stock {
		return
	}
	p.collected.Add(int64(k))
	if p.onCollect == nil {
		return
	}
	l.mu.Lock()
	from := l.found1
	l.found1 = nil
	l.mu.Unlock()
	c := Collected{Pool: p.name, Count: k}
	if from != nil {
		c.Stack = from.String()
	}
	p.onCollect(c)
}
