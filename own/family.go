package own

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A family is what a resource on which others depend has: the places where its
// children's batches are open, and the number of children that are not
// released. It belongs to an entry and is made with the first child.
//
// Children refer to their family, and it to the parent's ledger, never to its
// token: so a child does not keep its parent's owner alive, and the collector
// may find both dead in one cycle, in any order. The parent's release waits for
// the count.
type family struct {
	ledger *ledger // the parent
	index  uint32

	mu      sync.Mutex
	pending int  // children that are not released
	closed  bool // the parent is closed: no child comes, and the last to go releases it

	// shards has one for each pool that has children here. One that has none,
	// and no batch open, is taken off: it leads to its pool, and by its release
	// function perhaps to the parent's owner, which the parent's ledger must not
	// reach.
	shards []*shard
}

// family returns the family of an entry, which has one.
func (l *ledger) family(i uint32) *family {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.families[i]
}

// parent returns the family of an entry, made if there is none. It is nil for a
// closed owner.
func (l *ledger) parent(i uint32) *family {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		s := l.state(i)
		if s&stateOpen == 0 {
			return nil
		}
		if s&stateKin != 0 {
			return l.families[i]
		}
		if l.families == nil {
			l.families = make([]*family, len(l.states))
		}
		// Whoever finds the bit finds the family, since that takes l.mu.
		l.families[i] = &family{ledger: l, index: i}
		if atomic.CompareAndSwapUint64(&l.states[i], s, s|stateKin) {
			return l.families[i]
		}
		l.families[i] = nil
	}
}

// join counts one more child, and returns the place for those of pool p. It
// returns nil if the parent is closed.
func (f *family) join(p *Pool) *shard {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.pending++
	for _, s := range f.shards {
		if s.pool == p {
			s.children++
			return s
		}
	}
	s := &shard{pool: p, family: f, grow: firstChildren, children: 1}
	f.shards = append(f.shards, s)
	p.addKin(s)
	return s
}

// leave says that k children of a shard are released. It reports whether the
// parent is to be released now.
func (f *family) leave(s *shard, k int) bool {
	f.mu.Lock()
	f.pending -= k
	s.children -= k
	last := f.pending == 0 && f.closed
	empty := s.children == 0
	f.mu.Unlock()
	if last {
		f.forget()
	} else if empty && !s.isListed() {
		f.drop(s) // or else sealOpened does
	}
	return last
}

// drop takes a shard off that has no children.
func (f *family) drop(s *shard) {
	f.mu.Lock()
	i := slices.Index(f.shards, s)
	ok := i >= 0 && s.children == 0
	if ok {
		f.shards = slices.Delete(f.shards, i, i+1)
	}
	f.mu.Unlock()
	if ok {
		s.pool.dropKin(s)
	}
}

// close says that the parent is closed, and nobody uses it. It reports whether
// it is to be released now.
func (f *family) close() bool {
	f.mu.Lock()
	f.closed = true
	last := f.pending == 0
	f.mu.Unlock()
	if last {
		f.forget()
	}
	return last
}

// waits reports whether there are children that are not released.
func (f *family) waits() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pending > 0
}

// places returns the shards as they are now.
func (f *family) places() []*shard {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.shards)
}

// forget lets the children's pools go on without a family that is over.
func (f *family) forget() {
	f.mu.Lock()
	shards := f.shards
	f.shards = nil
	f.mu.Unlock()
	for _, s := range shards {
		s.pool.dropKin(s)
	}
}
