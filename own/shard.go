package own

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/account"
)

// A shard is a place where a pool has a batch open. A pool has one for each P,
// so that those who own do not meet, as many again for Make, and one for each
// family of children.
type shard struct {
	mu sync.Mutex
	// The rest is under mu; pool and family do not change.

	n     uint32 // entries of the open batch in use
	limit uint32 // at this many, or where taken would exceed room, the slow path looks again
	taken int64  // sum of the sizes of these entries
	room  int64

	token *token  // of the open batch, nil if there is none
	open  *ledger // likewise
	grow  uint32  // how many entries the next batch is to have

	listed    bool // in opened.shards
	destroyed bool // as pool.destroyed

	made   uint32    // of the open batch: entries that have a resource, n and beyond. 0 but for Make
	makes  bool      // it is for Make; does not change
	used   bool      // a batch was begun since the last collection
	spare  []*ledger // batches made ahead, as many entries made as there are; for Make
	failed error     // what the constructor said after the last of these

	carving         // for Memory
	window  *window // does not change; nil if there is none

	ledgers *ledger // batches that are sealed and not released in full

	pool   *Pool
	family *family

	children int // of the family, in this pool, that are not released; under family.mu
}

const (
	firstBatch    = 16
	firstChildren = 4

	// mostEntries is how many entries a batch has at most, where Options.Batch
	// does not ask for more: closed ones pin nothing and count for no bound.
	mostEntries = 512

	// mostTaken keeps gone within its bits.
	mostTaken = 1 << 39
)

// The account of all that the pools hold: sealed batches, to be exact, and what
// is made ahead. A batch that is open is at most Options.Pinned more, by P.
var (
	held       *account.Account
	heldOwners atomic.Int64
)

func init() {
	held = account.Open("own", 0, func() (int64, int64) { return heldOwners.Load(), held.Held() })
}

// take counts resources. n may be negative, and bytes with it.
func (p *Pool) take(n int, bytes int64) {
	p.owners.Add(int64(n))
	p.bytes.Add(bytes)
	if bytes >= 0 {
		account.TakeAuto(bytes)
	} else {
		account.GiveAuto(-bytes)
	}
	if p.carver != nil {
		return // its heap holds them
	}
	heldOwners.Add(int64(n))
	if bytes >= 0 {
		held.Put(bytes)
	} else {
		held.Give(-bytes)
	}
}

// newLedger returns a ledger with room for n entries.
func (p *Pool) newLedger(s *shard, n uint32) *ledger {
	l := &ledger{pool: p, shard: s, states: make([]uint64, n), words: make([]uintptr, int(n)*p.words)}
	l.alone = !p.drain && p.carver == nil && s.family == nil
	switch {
	case p.trace:
		l.origins = make([]*origin, n)
	case p.onCollect != nil:
		l.sampleAt = rand.Uint32N(n)
	}
	return l
}

// begin opens a batch. The shard has none.
func (s *shard) begin(l *ledger) { s.beginWith(l, &token{ledger: l}) }

func (s *shard) beginWith(l *ledger, t *token) {
	s.open, s.token = l, t
	s.n, s.taken, s.made = 0, 0, 0
	s.used = true
	s.list()
}

// look sets limit and room to what the open batch may still take, with closed
// owners left out. It reports whether there is room for one more of size bytes.
func (s *shard) look(size int64) bool {
	l := s.open
	if l == nil {
		return false
	}
	gone := l.gone.Load()
	live, bytes := int(s.n)-int(gone>>goneOwners&goneMask), s.taken-int64(gone>>goneBytes)
	s.limit = min(uint32(len(l.states)), s.n+uint32(max(s.pool.batch-live, 0)))
	s.room = min(s.taken+s.pool.pinned-bytes, mostTaken)
	if s.n >= s.limit || s.taken+size > s.room {
		return false
	}
	switch {
	case s.pool.words != 1 || s.pool.trace || s.pool.maxQueued != 0:
		s.limit = s.n // the slow path sees each
	case l.sampleAt >= s.n:
		s.limit = min(s.limit, l.sampleAt) // and this one
	}
	return true
}

// seal ends the open batch, and registers it if anything in it is left to be
// released. From here on nobody but its owners has the token.
func (s *shard) seal() {
	l, t := s.open, s.token
	if l == nil {
		return
	}
	n, taken := s.n, s.taken
	if s.made > 0 {
		s.pool.made.Add(-int64(n))
		s.pool.take(0, -int64(n)*s.pool.size)
		if n < s.made {
			s.spare = append(s.spare, l.split(n))
		}
	}
	s.open, s.token = nil, nil
	s.n, s.limit, s.taken, s.room, s.made = 0, 0, 0, 0, 0
	l.n = n
	s.uncarve(n, taken)
	gone := l.gone.Or(goneSealed)
	closed := uint32(gone >> goneOwners & goneMask)

	// The next batch has twice as many entries, or as many as this one used.
	// Beyond Options.Batch there is only use for them if most get closed.
	most := uint32(s.pool.batch)
	if closed > n/2 {
		most = max(most, mostEntries)
	}
	if int(n) == len(l.states) {
		s.grow = min(2*n, most)
	} else {
		s.grow = max(min(n, most), 1)
	}
	if closed == n {
		l.freeChunk()
		return
	}
	s.pool.take(int(n-closed), taken-int64(gone>>goneBytes))
	s.link(l)
	register(t, l)
}

// split takes the entries from n on, which are made and not handed out, out of
// a ledger that is about to be sealed, into one of their own.
func (l *ledger) split(n uint32) *ledger {
	rest := l.pool.newLedger(l.shard, uint32(len(l.states))-n)
	copy(rest.words, l.words[int(n)*l.pool.words:])
	return rest
}

// register has the ledger released when nobody has the token any more.
func register(t *token, l *ledger) {
	if leak {
		return
	}
	runtime.AddCleanup(t, (*ledger).found, l)
}

// link puts a ledger on the shard's list.
func (s *shard) link(l *ledger) {
	l.linked = true
	l.next = s.ledgers
	if l.next != nil {
		l.next.prev = l
	}
	s.ledgers = l
}

// unlink takes it off.
func (s *shard) unlink(l *ledger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.linked {
		return
	}
	l.linked = false
	if l.prev != nil {
		l.prev.next = l.next
	} else {
		s.ledgers = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	}
	l.prev, l.next = nil, nil
}

// done counts k entries of the ledger as released, with bytes in all. The one
// who counts the last takes the ledger off its list.
func (l *ledger) done(k int, bytes int64) {
	// Before they count as gone, or who waits for that would find them in Stats.
	sealed := l.gone.Load()&goneSealed != 0
	if sealed {
		l.pool.take(-k, -bytes)
	}
	gone := l.gone.Add(uint64(bytes)<<goneBytes | uint64(k)<<goneOwners)
	if gone&goneSealed == 0 {
		return
	}
	if !sealed {
		l.pool.take(-k, -bytes) // it was sealed just now
	}
	if uint32(gone>>goneOwners&goneMask) == l.n {
		l.shard.unlink(l)
		l.freeChunk()
	}
}

// unlock opens the shard's window, and gives up its lock.
func (s *shard) unlock() {
	s.show()
	s.mu.Unlock()
}

// resize changes the size of an entry.
func (l *ledger) resize(i uint32, bytes int) {
	defer account.Notify() // with no lock held
	size := min(int64(bytes), maxSize)
	s := l.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.window
	if w != nil && w.open && s.open == l && w.tryClose() {
		w.closed()
	}
	for {
		old := l.state(i)
		if old&stateOpen == 0 {
			break
		}
		if !atomic.CompareAndSwapUint64(&l.states[i], old, old&(1<<stateSize-1)|uint64(size)<<stateSize) {
			continue
		}
		grown := size - sizeOf(old)
		switch {
		case s.open != l:
			l.pool.take(0, grown)
			return
		case w != nil && w.open:
			w.resized += grown
			w.narrow() // the next who finds no room looks
			return
		}
		s.taken += grown
		if !s.look(0) {
			s.seal()
		}
		break
	}
	if s.open == l && (w == nil || !w.open) {
		s.show()
	}
}
