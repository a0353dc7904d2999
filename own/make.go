package own

import (
	"errors"

	"github.com/cheapgo/cheap/internal/account"
)

// errMadeNone is what Make returns for a constructor that made nothing and gave
// no reason.
var errMadeNone = errors.New("cheap: own: the constructor made nothing, and returned no error")

// Make puts a resource into o that Options.Construct made: one call of it makes
// a batch, so that most calls of Make are no call of the constructor. The owner
// is as one of [Pool.Own].
//
// Where the constructor made fewer than it was asked for, these are handed out,
// and the Make after that returns the constructor's error; the next one asks it
// again. What is never handed out is released when the pool is destroyed, and
// when from one collection to the next nobody called Make. Goroutines on
// different Ps have a stock each.
//
// Other errors are those of Own. Without Options.Construct, Make panics.
func (p *Pool) Make(o *Owner) error {
	if p.making.shards == nil {
		misuse(p.name, "Make", "the pool has no Options.Construct")
	}
	if p.parent != nil {
		return p.makeUnder(o)
	}
	if o == nil {
		p.ownsNothing(o)
	}
	if o.token == nil {
		if t, i := p.making.next(p.size); t != nil {
			o.token, o.index = t, i
			return nil
		}
	}
	return p.makeSlow(p.making.lock(), o)
}

// makeUnder is Make in a pool with Options.Parent. The stock is the pool's; an
// entry is moved to the family's batch when it is handed out.
func (p *Pool) makeUnder(o *Owner) error {
	if !vacant(o) {
		p.occupied("Make")
	}
	var one Owner
	s := p.making.lock()
	if err := p.makeSlow(s, &one); err != nil {
		return err
	}
	resource, context, err := one.DisownHandle()
	if err != nil {
		return err // destroyed meanwhile, and released with the pool
	}
	if err := p.ownUnder(o, p.parent, resource, context, int(p.size)); err != nil {
		p.discard(resource, context)
		return err
	}
	return nil
}

// discard releases a resource that nobody came to own.
func (p *Pool) discard(resource, context uintptr) {
	l := p.newLedger(p.making.shards[0], 1)
	l.words[0] = resource
	if p.words == 2 {
		l.words[1] = context
	}
	p.made.Add(1)
	p.take(0, p.size)
	p.unstock(l)
	l.releaseStock()
}

// makeSlow is Make where there is something to look at. The caller holds s.mu,
// and makeSlow gives it up, also before it calls the constructor, which may do
// what it likes.
func (p *Pool) makeSlow(s *shard, o *Owner) error {
	if !vacant(o) {
		s.mu.Unlock()
		p.occupied("Make")
	}
	for {
		switch {
		case s.destroyed:
			s.mu.Unlock()
			return ErrDestroyed
		case p.maxQueued != 0 && p.drained.Load() >= p.maxQueued:
			s.mu.Unlock()
			return ErrQueueFull
		}
		if s.n < s.made {
			s.open.states[s.n] = uint64(p.size)<<stateSize | stateOpen
			s.taken += p.size
			s.hand(o)
			s.stocked()
			if s.n == s.made {
				s.seal() // nothing can come any more
			}
			s.unlock()
			p.giveWay()
			return nil
		}
		s.seal()
		if k := len(s.spare); k > 0 {
			l := s.spare[k-1]
			s.spare[k-1] = nil
			s.spare = s.spare[:k-1]
			s.begin(l)
			s.made = uint32(len(l.states))
			s.stocked()
			continue
		}
		if err := s.failed; err != nil {
			s.failed = nil
			s.mu.Unlock()
			return err
		}
		n := uint32(max(min(int64(s.grow), int64(p.batch), p.pinned/p.size), 1))
		s.mu.Unlock()
		l, err := p.constructAhead(s, n)
		if l == nil {
			return err
		}
		s = p.making.lockAgain(s)
		l.shard = s
		if s.destroyed {
			s.mu.Unlock()
			p.unstock(l)
			l.releaseStock()
			return ErrDestroyed
		}
		s.spare = append(s.spare, l)
		if err != nil { // or else somebody else's is told first
			s.failed = err
		}
		s.list()
	}
}

// stocked sets the limit up to which Make need not look.
func (s *shard) stocked() {
	s.limit = s.made
	switch l := s.open; {
	case s.pool.trace || s.pool.maxQueued != 0:
		s.limit = s.n // the slow path sees each
	case s.pool.onCollect != nil && l.sampleAt >= s.n:
		s.limit = min(s.limit, l.sampleAt)
	}
}

// constructAhead returns a ledger of resources that were made just now, at most
// n, and why they are not n. It is nil if there are none.
func (p *Pool) constructAhead(s *shard, n uint32) (*ledger, error) {
	l := p.newLedger(s, n)
	k, err := p.construct(l.words)
	switch {
	case k < 0 || k > int(n):
		misuse(p.name, "Make", "the constructor says that it made %d of %d", k, n)
	case k == 0 && err == nil:
		return nil, errMadeNone
	case k == 0:
		return nil, err
	case k < int(n) && err == nil:
		// It is asked again, when these are gone.
	}
	l.words, l.states = l.words[:k*p.words], l.states[:k]
	p.made.Add(int64(k))
	p.take(0, int64(k)*p.size)
	account.Notify()
	return l, err
}

// unstock turns what is left of a stock into a dead batch. Nobody else has the
// ledger.
func (p *Pool) unstock(l *ledger) {
	l.stock = true
	l.n = uint32(len(l.states))
	for i := range l.states {
		l.states[i] = uint64(p.size)<<stateSize | stateOpen
	}
	p.made.Add(-int64(l.n))
	p.take(int(l.n), 0)
	l.gone.Store(goneSealed)
}

// releaseStock releases a stock here and now, or leaves it to Drain.
func (l *ledger) releaseStock() {
	if l.pool.drain {
		l.found()
		return
	}
	c := l.claim(0, len(l.states), nil)
	l.releaseAll(c.words, c.k, c.bytes) // a stock has no parent
}

// restock seals the open batch after a collection, and releases the stock of a
// pool where nobody called Make since the one before. The caller holds s.mu.
func (s *shard) restock(idle bool) {
	if w := s.window; w != nil && w.open {
		if !w.tryClose() {
			w.ask()
			return
		}
		w.closed()
	}
	s.seal()
	if !idle || leak {
		if len(s.spare) > 0 {
			s.list()
		}
		return
	}
	for _, l := range s.spare {
		s.pool.unstock(l)
		s.link(l) // so that Destroy waits for it
		l.found()
	}
	s.spare, s.failed = nil, nil
}
