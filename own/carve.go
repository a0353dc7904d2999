package own

import (
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/account"
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

// A carver makes blocks of one kind. A Memory has one for blocks whose handles are
// Owners and nothing else, and one for groups.
type carver struct {
	// These do not change.
	heap       *cheap.Heap
	pool       *Pool
	places             // of the pool
	stride     uintptr // between handles
	newHandle  func() *Owner
	newHandles func(n uint32) (*token, unsafe.Pointer)

	chained atomic.Int64 // bytes of groups beyond their blocks
}

// A carving is what a shard of a carver has beside its open batch. It is under
// the shard's lock.
type carving struct {
	base, at, end uintptr        // of the chunk, and where the next block begins: multiples of 16
	handles       unsafe.Pointer // one for each entry, side by side, each beginning with its Owner
	mean          int64          // how much of its chunk a block of the last batch took; 0 before
	chunks        uint32         // counts what was asked of the heap
}

const (
	quantum = 16 // blocks begin at multiples of it

	// firstChunk is how many bytes the first batch of a shard has, or the size
	// of its first block.
	firstChunk = 2 << 10

	// memoryBatch is Options.Batch where that is left out: a chunk has that many
	// blocks of 100 bytes.
	memoryBatch = 512
)

// takes returns how much of a chunk a block of size bytes takes.
func takes(size int64) int64 { return (max(size, 1) + quantum - 1) &^ (quantum - 1) }

// carveSlow is carve where there is something to look at; and if zero, the block
// is.
//
//go:noinline
func (c *carver) carveSlow(op string, size int, flags uint64, zero bool) (*Owner, unsafe.Pointer, error) {
	p := c.pool
	if size < 0 {
		misuse(p.name, op, "the size %d is negative", size)
	}
	if int64(size) > min(maxSize, math.MaxInt-quantum) {
		return nil, nil, c.noMemory(op, size, cheap.ErrNoMemory)
	}
	need := takes(int64(size))
	if p.batch == 1 || need >= p.pinned {
		return c.exact(op, size, flags, zero)
	}
	s := c.lock()
	for {
		switch {
		case s.destroyed:
			s.mu.Unlock()
			return nil, nil, ErrDestroyed
		case s.fits(need):
			o, block := s.cut(int64(size), need, flags)
			s.unlock()
			account.Notify()
			if zero {
				clear(unsafe.Slice((*byte)(block), size))
			}
			return o, block, nil
		case s.wasteful(need):
			s.unlock()
			return c.exact(op, size, flags, zero)
		}
		// The heap is asked without a lock: it may call somebody who wants to be
		// told.
		n, bytes := s.plan(need)
		s.unlockAndGiveWay()
		chunk, err := c.heap.TryMalloc(int(bytes))
		if err != nil && bytes > need {
			n, bytes = 1, need
			chunk, err = c.heap.TryMalloc(int(bytes))
		}
		if err != nil {
			return nil, nil, c.noMemory(op, size, err)
		}
		t, handles := c.newHandles(n)

		s = c.lock()
		if s.destroyed || s.fits(need) {
			c.heap.Free(chunk) // somebody else was faster, or this is another P
			continue
		}
		l := p.newLedger(s, n)
		l.chunk = uintptr(chunk)
		t.ledger = l
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

// unlockAndGiveWay gives up the shard's lock on the way to a chunk, or behind
// one, and once in a while lets others run. What is dead comes back in a cleanup
// of the runtime's, and before that the sweeper has to find it. With all Ps busy
// these would wait for the end of a time slice, 10 ms, in which a hundred
// thousand blocks can be made, which then all lie in other memory.
func (s *shard) unlockAndGiveWay() {
	const often = 16
	s.chunks++
	now := s.chunks%often == 0
	s.mu.Unlock()
	if now {
		runtime.Gosched()
	}
}

func (c *carver) noMemory(op string, size int, err error) error {
	return fmt.Errorf("cheap: %s.%s: %d bytes: %w", c.pool.name, op, size, err)
}

// init makes a carver for a Memory.
func (c *carver) init(h *cheap.Heap, o Options) {
	c.heap = h
	o.Release = func([]uintptr) {} // never called: see giveBack
	c.pool = NewPool(o)
	c.pool.carver = c
	c.places = c.pool.owning
}

// newOwners returns n handles that are Owners, and their token, which is one
// object with them. It begins where the first of them would be, has its pointer
// where that has one, and takes up the place of as many as it covers.
func newOwners(n uint32) (*token, unsafe.Pointer) {
	all := make([]Owner, ownerCovers+int(n))
	return (*token)(unsafe.Pointer(&all[0])), unsafe.Pointer(&all[ownerCovers])
}

const (
	ownerSize   = unsafe.Sizeof(Owner{})
	ownerCovers = int((unsafe.Sizeof(token{}) + ownerSize - 1) / ownerSize)
)

// roundHandles returns a number of handles, n or fewer, that fills the object
// in which they are. Above 512 bytes Go puts a word in front of what has pointers.
func roundHandles(n uint32) uint32 {
	if n < 32 {
		return n
	}
	return n&^15 - 1 - uint32(ownerCovers)
}

// link makes o, one of the handles of t, refer to t. It is an assignment without
// the collector's write barrier. That is there so that no object is missed to
// which the only reference moves from a place that the collector has not looked
// at to one where it has; t and o are one object, so whoever finds o has found t.
func (o *Owner) link(t *token, i uint32) {
	*(*uintptr)(unsafe.Pointer(&o.token)) = uintptr(unsafe.Pointer(t))
	o.index = i
}

// fits reports whether the open batch has an entry and a place for a block that
// takes need bytes, and sets its limit.
func (s *shard) fits(need int64) bool {
	if s.open == nil {
		return false
	}
	// When all blocks are gone, and have made room, the chunk is empty.
	if uint32(s.open.gone.Load()>>goneOwners&goneMask) == s.n {
		s.at = s.base
	}
	// What fits in the chunk is within the bound on bytes.
	return need <= int64(s.end-s.at) && s.look(0)
}

// cut carves a block that fits.
func (s *shard) cut(size, need int64, flags uint64) (*Owner, unsafe.Pointer) {
	i := s.n
	o := (*Owner)(unsafe.Add(s.handles, uintptr(i)*s.pool.carver.stride)) // there are as many as entries
	block := osmem.Pointer(s.at)                                          // in the chunk
	s.put(s.at, 0, size)
	s.open.states[i] |= flags
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
func (c *carver) exact(op string, size int, flags uint64, zero bool) (*Owner, unsafe.Pointer, error) {
	var block unsafe.Pointer
	if zero {
		block = c.heap.Calloc(1, size) // which knows what is zero anyway
	}
	if block == nil {
		var err error
		if block, err = c.heap.TryMalloc(size); err != nil {
			return nil, nil, c.noMemory(op, size, err)
		}
		if zero {
			clear(unsafe.Slice((*byte)(block), size))
		}
	}
	s := c.lock()
	if s.destroyed {
		s.mu.Unlock()
		c.heap.Free(block)
		return nil, nil, ErrDestroyed
	}
	o := c.newHandle()
	s.exact(o, uintptr(block), 0, int64(size))
	o.token.ledger.states[0] |= flags
	s.show()
	s.unlockAndGiveWay()
	account.Notify()
	return o, block, nil
}

// giveBack is dispose for a block of a Memory.
func (l *ledger) giveBack(i uint32) {
	s := l.state(i)
	if s&stateChain != 0 {
		l.freeChain(i)
	}
	// It makes room before it counts as gone: from then on the chunk may have
	// been emptied, and what lies here be another's. As long as it does not, the
	// next block is not carved before its end, and if it is carved there, then
	// all that was carved behind it has made room.
	if c, size := l.pool.carver, sizeOf(s); l.gone.Load()&goneSealed == 0 {
		if windowed {
			c.makeRoom(l, i, size)
		} else {
			l.shard.makeRoom(l, i, size)
		}
	}
	l.done(1, sizeOf(s))
}

// makeRoom is carver.makeRoom where there are no windows.
func (s *shard) makeRoom(l *ledger, i uint32, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := l.words[i]; s.open == l && at+uintptr(takes(size)) == s.at {
		s.at = at
	}
}

// freeChunk gives the chunk of a batch back to the heap. It is called once, by
// whoever finds the batch sealed and its last entry gone, maybe under the
// shard's lock: Free takes the heap's locks and calls nobody.
func (l *ledger) freeChunk() {
	if l.chunk != 0 {
		l.pool.carver.heap.Free(osmem.Pointer(l.chunk)) // from its TryMalloc, and nobody has a block in it
	}
}

// giveBackDead is releaseDead for a batch of a Memory, whose blocks need not be
// told apart, as they come back together.
func (l *ledger) giveBackDead() {
	l.mu.Lock()
	k, found, bytes := 0, 0, int64(0)
	for i := range l.n {
		// The states of a dead batch stay as they are. What is open there is
		// nobody's but its finder's.
		s := l.state(i)
		if s&stateOpen == 0 {
			continue
		}
		found++
		if l.origins != nil {
			l.forgotten = l.origins[i]
		} else if l.sampled != nil && i == l.sampleAt {
			l.forgotten = l.sampled
		}
		if s&stateKin != 0 && !l.families[i].close() {
			continue // the last child goes on
		}
		if s&stateChain != 0 {
			l.freeChain(i)
		}
		k++
		bytes += sizeOf(s)
	}
	l.mu.Unlock()
	if k > 0 {
		l.done(k, bytes)
	}
	l.tell(found)
}
