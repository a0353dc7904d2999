package own

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/osmem"
)

// Blocks of a Memory are carved one behind the other from the chunk of the
// shard's open batch, which is a block of the heap. The ledger has the chunk. It
// goes back to the heap when the last entry is gone: in done or, where all had
// been closed before that, in seal.
//
// What is carved is not used again before, with two exceptions, both in the open
// batch: the block carved last makes room when it is closed, and when all are
// gone the chunk is empty again. See giveBack.

// A carving is what a shard of a Memory has beside its open batch. It is under
// the shard's lock.
type carving struct {
	base, at, end uintptr // of the chunk, and where the next block begins: multiples of 16
	handles       []Owner // one for each entry
	mean          int64   // how much of its chunk a block of the last batch took; 0 before
}

const (
	quantum = 16 // blocks begin at multiples of it

	// firstChunk is how many bytes the first batch of a shard has, or the size
	// of its first block.
	firstChunk = 2 << 10
)

// takes returns how much of a chunk a block of size bytes takes.
func takes(size int64) int64 { return (max(size, 1) + quantum - 1) &^ (quantum - 1) }

// carve returns a block of size bytes, all zero if zero, and its owner.
func (m *Memory) carve(op string, size int, zero bool) (*Owner, unsafe.Pointer, error) {
	s := lock(m.blocks.shards)
	i, at := s.n, s.at
	// 0 and negative sizes are huge here. What fits also fits when rounded up.
	if uint(size-1) >= uint(s.end-at) || i >= s.limit {
		return m.carveSlow(s, op, size, zero)
	}
	// As in Pool.Own, nobody else knows the entry yet.
	l := s.open
	l.words[i] = at
	l.states[i] = uint64(size)<<stateSize | stateOpen
	o := &s.handles[i]
	o.link(s.token, i)
	s.n, s.at, s.taken = i+1, at+uintptr(size+quantum-1)&^(quantum-1), s.taken+int64(size)
	s.mu.Unlock()
	block := osmem.Pointer(at) // in a chunk that the token keeps
	if zero {
		clear(unsafe.Slice((*byte)(block), size))
	}
	return o, block, nil
}

// carveSlow is carve where there is something to look at. The caller holds s.mu,
// and carveSlow gives it up, also before it asks the heap for memory: that may
// call somebody who asked to be told.
//
//go:noinline
func (m *Memory) carveSlow(s *shard, op string, size int, zero bool) (*Owner, unsafe.Pointer, error) {
	p := m.blocks
	if size < 0 {
		s.mu.Unlock()
		misuse(p.name, op, "the size %d is negative", size)
	}
	if int64(size) > min(maxSize, math.MaxInt-quantum) {
		s.mu.Unlock()
		return nil, nil, m.noMemory(op, size, cheap.ErrNoMemory)
	}
	need := takes(int64(size))
	for {
		switch {
		case s.destroyed:
			s.mu.Unlock()
			return nil, nil, ErrDestroyed
		case s.fits(need):
			o, block := s.cut(int64(size), need)
			s.mu.Unlock()
			if zero {
				clear(unsafe.Slice((*byte)(block), size))
			}
			return o, block, nil
		case p.batch == 1 || need >= p.pinned || s.wasteful(need):
			s.mu.Unlock()
			return m.exact(s, op, size, zero)
		}
		n, bytes := s.plan(need)
		s.mu.Unlock()

		chunk, err := m.heap.TryMalloc(int(bytes))
		if err != nil && bytes > need {
			n, bytes = 1, need
			chunk, err = m.heap.TryMalloc(int(bytes))
		}
		if err != nil {
			return nil, nil, m.noMemory(op, size, err)
		}
		t, handles := newHandles(n)
		l := p.newLedger(s, n)
		l.chunk = uintptr(chunk)
		t.ledger = l

		s.mu.Lock()
		if s.destroyed || s.fits(need) {
			m.heap.Free(chunk) // somebody else was faster
			continue
		}
		// The batch is full, so the next one is to be larger. It may have entries
		// left, which seal takes for a sign of the opposite.
		grow := s.grow
		if s.open != nil {
			grow = min(2*grow, uint32(p.batch))
		}
		s.seal()
		s.grow = grow
		s.beginWith(l, t)
		s.base, s.at, s.end = l.chunk, l.chunk, l.chunk+uintptr(bytes)
		s.handles = handles
	}
}

// newHandles returns an array of n handles, and their token, which is one object
// with them. It begins where the first handle would be, has its pointer where
// that has one, and takes up the place of as many as it covers.
func newHandles(n uint32) (*token, []Owner) {
	all := make([]Owner, covers+n)
	return (*token)(unsafe.Pointer(&all[0])), all[covers:]
}

const covers = uint32((unsafe.Sizeof(token{}) + unsafe.Sizeof(Owner{}) - 1) / unsafe.Sizeof(Owner{}))

// roundHandles returns a number of handles, n or fewer, that fills the object
// in which they are. Above 512 bytes Go puts a word in front of what has pointers.
func roundHandles(n uint32) uint32 {
	if n < 32 {
		return n
	}
	return n&^15 - 1 - covers
}

// link makes o, one of the handles of t, refer to t. It is an assignment without
// the collector's write barrier. That is there so that no object is missed to
// which the only reference moves from a place that the collector has not looked
// at to one where it has; t and o are one object, so whoever finds o has found t.
func (o *Owner) link(t *token, i uint32) {
	*(*uintptr)(unsafe.Pointer(&o.token)) = uintptr(unsafe.Pointer(t))
	o.index = i
}

func (m *Memory) noMemory(op string, size int, err error) error {
	return fmt.Errorf("cheap: %s.%s: %d bytes: %w", m.blocks.name, op, size, err)
}

// fits reports whether the open batch has an entry and a place for a block that
// takes need bytes, and sets its limit.
func (s *shard) fits(need int64) bool {
	l := s.open
	if l == nil {
		return false
	}
	s.empty()
	// What fits in the chunk is within the bound on bytes.
	return need <= int64(s.end-s.at) && s.look(0)
}

// cut carves a block that fits.
func (s *shard) cut(size, need int64) (*Owner, unsafe.Pointer) {
	o, block := &s.handles[s.n], osmem.Pointer(s.at) // in the chunk
	s.put(s.at, 0, size)
	s.at += uintptr(need)
	s.hand(o)
	return o, block
}

// wasteful reports whether a block that takes need bytes is to have a chunk of
// its own, rather than that the open batch, which has no place for it, is given
// up with most of its chunk unused.
func (s *shard) wasteful(need int64) bool {
	return s.open != nil && need > s.pool.pinned/4 && s.at-s.base < (s.end-s.base)/2
}

// plan returns how many entries and bytes the next batch is to have, if it
// begins with a block that takes need bytes.
func (s *shard) plan(need int64) (n uint32, bytes int64) {
	n, mean := roundHandles(s.grow), s.mean
	if mean == 0 {
		mean = need
		n = min(n, uint32(max(firstChunk/need, 1)))
	}
	bytes = max(min(int64(n)*mean, s.pool.pinned&^(quantum-1)), need)
	return min(n, uint32(max(bytes/mean, 1))), bytes
}

// uncarve is seal's look at the carving. n blocks of bytes in all were carved in
// the batch.
func (s *shard) uncarve(n uint32, bytes int64) {
	if n > 0 {
		s.mean = takes(bytes / int64(n))
	}
	s.base, s.at, s.end, s.handles = 0, 0, 0, nil
}

// exact returns a block that is one of the heap's by itself.
func (m *Memory) exact(s *shard, op string, size int, zero bool) (*Owner, unsafe.Pointer, error) {
	var block unsafe.Pointer
	if zero {
		block = m.heap.Calloc(1, size) // which knows what is zero anyway
	}
	if block == nil {
		var err error
		if block, err = m.heap.TryMalloc(size); err != nil {
			return nil, nil, m.noMemory(op, size, err)
		}
		if zero {
			clear(unsafe.Slice((*byte)(block), size))
		}
	}
	s.mu.Lock()
	if s.destroyed {
		s.mu.Unlock()
		m.heap.Free(block)
		return nil, nil, ErrDestroyed
	}
	o := new(Owner)
	s.exact(o, uintptr(block), 0, int64(size))
	s.mu.Unlock()
	return o, block, nil
}

// giveBack is dispose for a block of a Memory.
func (l *ledger) giveBack(i uint32) {
	size := sizeOf(l.state(i))
	if l.gone.Load()&goneSealed == 0 {
		s := l.shard
		s.mu.Lock()
		if s.open == l {
			// Before it counts as gone: from then on the chunk may have been
			// emptied, and what lies here be another's. As long as it does not,
			// s.at is not below its end, and if it is there, then all that was
			// carved behind it has made room.
			if at := l.words[i]; at+uintptr(takes(size)) == s.at {
				s.at = at
			}
			l.done(1, size)
			s.empty()
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
	l.done(1, size)
}

// empty begins the chunk of the open batch anew if all of its blocks are gone.
func (s *shard) empty() {
	if uint32(s.open.gone.Load()>>goneOwners&goneMask) == s.n {
		s.at = s.base
	}
}

// freeChunk gives the chunk of a batch back to the heap. It is called once, by
// whoever finds the batch sealed and its last entry gone, maybe under the
// shard's lock: Free takes the heap's locks and calls nobody.
func (l *ledger) freeChunk() {
	if l.chunk != 0 {
		l.pool.heap.Free(osmem.Pointer(l.chunk)) // from its TryMalloc, and nobody has a block in it
	}
}

// giveBackDead is what found does with a batch of a Memory, and reports whether
// that is all: not if somebody is to be told, or entries have children. There is
// no need for a worker, since this calls nobody and does not block.
func (l *ledger) giveBackDead() bool {
	if l.pool.onCollect != nil {
		return false
	}
	l.mu.Lock()
	if l.families != nil {
		l.mu.Unlock()
		return false
	}
	// The states stay as they are: what is open in a dead batch is nobody's but
	// its finder's.
	k, bytes := 0, int64(0)
	for i := range l.n {
		s := l.state(i)
		k += int(s & stateOpen)
		bytes += sizeOf(s) & -int64(s&stateOpen)
	}
	l.mu.Unlock()
	if k > 0 {
		l.done(k, bytes)
		l.tell(k)
	}
	return true
}
