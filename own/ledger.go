package own

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A token is what the owners of a batch point to, and what is registered with
// the collector in their stead. Nothing else points to it, but the shard while
// the batch is open, which is before it is registered.
type token struct {
	ledger *ledger

	// A registration walks the list of those in the same span of the Go heap,
	// so a larger token makes it cheaper: 85 to walk on average, not 256.
	_ [tokenSize - unsafe.Sizeof(uintptr(0))]byte
}

const tokenSize = 64

// A ledger is the record of a batch: which resources it has, and which of them
// are still to be released. It refers to no owner and no token, and holds
// resources as numbers, so that the collector has nothing to follow.
//
// An entry is written once, under the lock of the shard whose batch is open or in
// its window, and never used for another resource: a stale Owner finds what it
// closed. A state that is 0 was never used.
type ledger struct {
	pool  *Pool
	shard *shard
	alone bool // entries have no parents, and the release function is called where they are closed

	// states and words have an entry, or Pool.words of them, for each owner.
	// Words are not changed once the owner is out.
	states []uint64
	words  []uintptr

	// gone counts what has been released or disowned:
	// bytes<<goneBytes | owners<<goneOwners | goneSealed. Until the batch is
	// sealed nobody else has counted these bytes; afterwards whoever adds to
	// gone also takes them from the account. Bytes are of interest before, when
	// they fit; what runs over the top later harms nothing.
	gone atomic.Uint64

	n uint32 // entries in use; set when sealed

	prev, next *ledger // in shard.ledgers; under its lock
	linked     bool    // likewise

	queued *ledger // the next in Pool.batches; under work.mu

	mu sync.Mutex
	// The rest is under mu.
	dead      bool      // it is queued, by the collector or with a stock: its open entries are claimed there
	families  []*family // by entry; nil before the first
	origins   []*origin // by entry; nil without Options.Trace
	sampled   *origin   // of the entry at sampleAt, if not nil
	sampleAt  uint32    // set before the ledger is shared
	forgotten *origin   // of an entry that the collector had released, until it is told

	chunk uintptr // of a Memory: the block of the heap in which the batch's lie; set before the ledger is shared
	exact bool    // that is the one block of the batch; likewise

	chained atomic.Int64 // bytes of groups beyond their blocks

	stock  bool   // what it holds was made ahead and never handed out; set before it is shared
	cursor uint32 // where Drain goes on; under Pool.drainMu
}

// A state is an entry's life in one word:
//
//	size<<stateSize | uses<<stateUses | stateKin | stateOpen
//
// Whoever clears stateOpen has closed it, and exactly one does. It is then
// released, once, by whoever finds that no Use is left and no child.
const (
	stateOpen = 1 << 0
	stateKin  = 1 << 1 // it has, or had, children

	stateGroup = 1 << 2 // it is a Group
	stateChain = 1 << 3 // which has more chunks

	stateUses = 8
	oneUse    = 1 << stateUses
	manyUses  = 1<<20 - 1 // the largest number of Uses at a time
	usesMask  = manyUses << stateUses

	stateSize = 28
	maxSize   = 1<<(64-stateSize) - 1 // larger resources count as this much

	goneSealed = 1
	goneOwners = 1
	goneBytes  = 24
	goneMask   = 1<<(goneBytes-goneOwners) - 1
)

func (l *ledger) state(i uint32) uint64 { return atomic.LoadUint64(&l.states[i]) }

func sizeOf(state uint64) int64 { return int64(state >> stateSize) }

// pointer returns the resource of an entry as a pointer. It reads the word as
// one: a resource is an address in C, which the collector leaves alone.
func (l *ledger) pointer(i uint32) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&l.words[int(i)*l.pool.words]))
}

func (l *ledger) handle(i uint32) (resource, context uintptr) {
	if l.pool.words == 1 {
		return l.words[i], 0
	}
	return l.words[2*i], l.words[2*i+1]
}

// enter counts a Use. It panics if the owner is closed.
func (l *ledger) enter(i uint32, op string) {
	for {
		s := l.state(i)
		if s&stateOpen == 0 {
			l.useAfterClose(op)
		}
		if s&usesMask == usesMask {
			misuse(l.pool.name, op, "%d calls of Use are running already", manyUses)
		}
		if atomic.CompareAndSwapUint64(&l.states[i], s, s+oneUse) {
			return
		}
	}
}

// exit ends a Use. No new one begins once an owner is closed, so exactly one
// exit finds itself the last behind a Close.
func (t *token) exit(i uint32) {
	l := t.ledger
	if s := atomic.AddUint64(&l.states[i], ^uint64(oneUse-1)); s&(stateOpen|usesMask) == 0 {
		l.closed(i, s)
	}
	// Until here: were the batch found dead before, with the count up, it would
	// be released, and by the last exit once more.
	runtime.KeepAlive(t)
}

// close closes an entry, and releases it unless somebody else has to.
func (l *ledger) close(i uint32) {
	for {
		s := l.state(i)
		if s&stateOpen == 0 {
			return
		}
		if !atomic.CompareAndSwapUint64(&l.states[i], s, s&^stateOpen) {
			continue
		}
		switch {
		case s&usesMask != 0: // the last Use goes on
		case s&stateKin == 0 && l.alone:
			l.releaseAlone(i, s)
		default:
			l.closed(i, s)
		}
		return
	}
}

// releaseAlone is dispose where nothing else can follow.
func (l *ledger) releaseAlone(i uint32, s uint64) {
	defer l.done(1, sizeOf(s)) // also in a panic
	w := uint32(l.pool.words)
	l.pool.destroy(l.words[i*w : (i+1)*w : (i+1)*w])
}

// closed goes on with an entry that is closed and in no Use. It is called once
// for each entry, and not for those that are disowned or found dead.
func (l *ledger) closed(i uint32, s uint64) {
	if s&stateKin != 0 && !l.family(i).close() {
		return // the last child goes on
	}
	l.dispose(i)
}

// disown closes an entry without releasing it.
func (l *ledger) disown(i uint32) error {
	for {
		s := l.state(i)
		switch {
		case s&stateOpen == 0:
			return ErrClosed
		case l.pool.carver != nil && (!l.exact || s&stateGroup != 0):
			return ErrCarved
		case s&usesMask != 0:
			return ErrInUse
		case s&stateKin != 0:
			f := l.family(i)
			f.mu.Lock()
			if f.pending > 0 {
				f.mu.Unlock()
				return ErrChildren
			}
			ok := atomic.CompareAndSwapUint64(&l.states[i], s, s&^stateOpen)
			f.closed = f.closed || ok // and so no child comes any more
			f.mu.Unlock()
			if !ok {
				continue
			}
			f.forget()
		default:
			if !atomic.CompareAndSwapUint64(&l.states[i], s, s&^stateOpen) {
				continue
			}
		}
		if l.exact {
			l.chunk = 0 // it is the caller's now
		}
		if parent, j := l.finish(1, sizeOf(s)); parent != nil {
			parent.dispose(j)
		}
		return nil
	}
}
