package ledger

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/cleanup"
)

// A Ref is what an owner consists of. The zero Ref owns nothing.
type Ref struct {
	// token is a *Token. Its type keeps all code that prints or compares values by
	// reflection from following it: into the batch, whose states other goroutines
	// write, and from there into the pool.
	token unsafe.Pointer
	Index uint32
}

// RefTo returns the Ref to an entry of the batch that t belongs to.
func RefTo(t *Token, index uint32) Ref { return Ref{token: unsafe.Pointer(t), Index: index} }

// Token returns the token of the batch, or nil.
func (r *Ref) Token() *Token { return (*Token)(r.token) } // RefTo has put it there

// A Token is the object to which all owners of a batch point. It is registered
// with the collector instead of them. Only the owners point to it, and, while
// the batch is open and the token not yet registered, the shard.
type Token struct {
	Ledger *Ledger

	// A registration walks the list of registrations in the same span of the Go
	// heap. A larger token makes that cheaper: 85 steps on average, not 256.
	_ [tokenSize - unsafe.Sizeof(uintptr(0))]byte
}

const tokenSize = 64

// A Ledger is the record of a batch. It refers to no owner and no token. It holds
// resources as numbers, which the collector does not follow.
//
// An entry is written once, by the shard whose batch is open. It is never used
// again for another resource, so a stale owner finds its own entry, closed. The
// state of an unused entry is 0.
type Ledger struct {
	Kind *Kind
	Home any  // the shard whose batch it is. Only package intake looks at it
	kin  *kin // if the entries are children, else nil

	state any // for the release function

	// States and Words have one element for each owner. A word is a resource. It does
	// not change after the owner is handed out.
	States []uint64
	Words  []uintptr

	// gone counts the entries that are released or disowned:
	// bytes<<goneBytes | owners<<goneOwners | goneSealed. Before the batch is
	// sealed its entries are counted nowhere else. After that, each addition to
	// gone also goes to the account. The bytes are read only before the batch is
	// sealed, when they fit; later the sum may overflow at the top, which affects
	// no other field.
	gone atomic.Uint64

	n uint32 // entries in use; set by Seal

	direct bool // Close calls the release function, and need not ask the sink
	Whole  bool // the only entry is a block of the heap by itself
	Stock  bool // the resources were made in advance and never handed out

	node node // in the list of its shard or pool

	// Chunk is the block of Kind.Heap that contains the blocks of the batch, or 0.
	Chunk uintptr
	Grown atomic.Int64 // bytes that groups have taken beyond their blocks

	SampleAt uint32 // the entry whose origin is recorded; does not change

	mu sync.Mutex
	// The rest is under mu.
	dead      bool              // the batch is queued for release, which claims its open entries
	families  []*Family         // by entry; nil before the first
	origins   []*Origin         // by entry; nil without Kind.Trace
	labels    map[uint32]string // by entry; nil before the first
	sampled   *Origin           // of the entry at SampleAt, if not nil
	forgotten *Origin           // of an entry that the collector found, until OnCollect is told
}

// The state of an entry is one word:
//
//	size<<stateSize | uses<<stateUses | Gone | Extra | kinBit | Open
//
// Exactly one goroutine clears Open, and so closes the entry. The entry is released
// once, by the goroutine that finds it closed with no Use and no child left. In a dead
// batch nothing is cleared: its open entries belong to the one that claims them.
const (
	Open   = 1 << 0
	kinBit = 1 << 1 // the entry has, or had, children

	// Extra says that the release function has to be called for a block of a heap,
	// because more than its chunk has to return. No other block needs that.
	Extra = 1 << 3

	// Gone says that an entry was released which Close had left to the last Use, the
	// last child, or a queue.
	Gone = 1 << 4

	stateUses = 8
	OneUse    = 1 << stateUses
	MostUses  = 1<<20 - 1 // the largest number of Uses at a time
	usesMask  = MostUses << stateUses

	StateSize = 28
	MaxSize   = 1<<(64-StateSize) - 1 // larger resources count as this size

	// LeastAddress is the least number that is the address of memory on any
	// system. The runtime calls it minLegalPointer.
	LeastAddress = 4096

	goneSealed = 1
	goneOwners = 1
	goneBytes  = 24
	goneMask   = 1<<(goneBytes-goneOwners) - 1
)

var (
	ErrClosed   = errors.New("cheap: own: the owner is closed")
	ErrInUse    = errors.New("cheap: own: the resource is in use")
	ErrChildren = errors.New("cheap: own: the resource has children that are not released")
	ErrShared   = errors.New("cheap: own: the memory is shared with others and cannot be disowned; copy it")
)

// New returns a ledger with room for n entries. If family is not nil, the entries
// are its children.
func New(k *Kind, home any, family *Family, n uint32) *Ledger {
	l := &Ledger{Kind: k, Home: home, state: k.State, States: make([]uint64, n), Words: make([]uintptr, n)}
	l.direct = !k.Queues && k.Heap == nil && family == nil
	l.node.ledger = l
	if family != nil {
		l.kin = &kin{family: family}
		l.kin.node.ledger = l
		if s := family.State(); s != nil {
			l.state = s
		}
	}
	switch {
	case k.Trace:
		l.origins = make([]*Origin, n)
	case k.OnCollect != nil:
		l.SampleAt = rand.Uint32N(n)
	}
	return l
}

// Link puts the ledger on a list, and on that of its family. It stays there until
// its last entry is gone.
func (l *Ledger) Link(list *List) {
	list.add(&l.node)
	if l.kin != nil {
		l.kin.family.children.add(&l.kin.node)
	}
}

// Vacant reports whether r owns nothing.
func (r *Ref) Vacant() bool { return r.token == nil || r.Token().Ledger.State(r.Index)&Open == 0 }

// Len returns the number of entries of a sealed batch.
func (l *Ledger) Len() uint32 { return l.n }

// Put writes an entry. The caller is the only one that writes entries, and hands
// out no owner of this one before Put returns.
func (l *Ledger) Put(i int, resource uintptr, size int64, flags uint64) {
	l.Words[i] = resource
	l.States[i] = uint64(size)<<StateSize | flags | Open
}

// Gone returns how many entries are released or disowned, and, before the batch is
// sealed, their bytes.
func (l *Ledger) Gone() (owners int, bytes int64) { return split(l.gone.Load()) }

func split(gone uint64) (owners int, bytes int64) {
	return int(gone >> goneOwners & goneMask), int64(gone >> goneBytes)
}

// Sealed reports whether Seal was called.
func (l *Ledger) Sealed() bool { return l.gone.Load()&goneSealed != 0 }

// Seal ends the adding of entries: there are n, of bytes in all. It registers the
// token with the collector, unless all entries are gone. From here on only owners
// may refer to the token. Seal returns the number of entries that are gone.
func (l *Ledger) Seal(t *Token, n uint32, bytes int64) (gone uint32) {
	l.n = n
	owners, given := split(l.gone.Or(goneSealed))
	if uint32(owners) == n {
		l.end()
		return n
	}
	l.Kind.Count(int(n)-owners, bytes-given)
	if !Leak {
		cleanup.Add(t, (*Ledger).found, l)
	}
	return uint32(owners)
}

// State returns the state of an entry.
func (l *Ledger) State(i uint32) uint64 { return atomic.LoadUint64(&l.States[i]) }

// SizeOf returns the size of a resource in bytes.
func SizeOf(state uint64) int64 { return int64(state >> StateSize) }

// Pointer returns the resource of an entry as a pointer. Its kind is not one of
// numbers: the runtime ends the program when it finds a pointer below LeastAddress on
// a stack, or a pointer into a free part of the Go heap. Pointer reads the word as a
// pointer, which is safe: the resource was a pointer when Own got it, or
// Options.Construct promises that it is an address outside the Go heap. The collector
// ignores such addresses.
func (l *Ledger) Pointer(i uint32) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&l.Words[i]))
}

// Resize changes the size of an open entry, and returns the change. It reports
// whether the entry is open.
func (l *Ledger) Resize(i uint32, size int64) (grown int64, open bool) {
	for {
		s := l.State(i)
		if s&Open == 0 {
			return 0, false
		}
		if atomic.CompareAndSwapUint64(&l.States[i], s, s&(1<<StateSize-1)|uint64(size)<<StateSize) {
			return size - SizeOf(s), true
		}
	}
}

// Enter counts a Use. It returns false if the owner is closed.
func (l *Ledger) Enter(i uint32, op string) bool {
	for {
		s := l.State(i)
		if s&Open == 0 {
			return false
		}
		if s&usesMask == usesMask {
			l.Kind.PanicMisuse(op, "%d calls of Use are running already, the most at a time; return from Use sooner", MostUses)
		}
		if atomic.CompareAndSwapUint64(&l.States[i], s, s+OneUse) {
			return true
		}
	}
}

// Exit ends a Use. After Close no new Use begins, so exactly one Exit is the last
// one after a Close. Exit is a method of the token, because the token, not the
// ledger, keeps the batch alive.
func (t *Token) Exit(i uint32) {
	l := t.Ledger
	if s := atomic.AddUint64(&l.States[i], ^uint64(OneUse-1)); s&(Open|usesMask) == 0 {
		if s&kinBit == 0 || l.family(i).close() {
			l.Dispose(i)
		} // else the last child releases it
	}
	// The token must be reachable until here. If the collector found the batch
	// dead while the count is not 0, it would release the entry, and the last Exit
	// would release it again.
	runtime.KeepAlive(t)
}

// PanicClosed panics for op, a method that uses the resource of a closed owner. It is
// inlined, so that the compiler sees that it does not return, and keeps nothing for
// afterwards.
func (k *Kind) PanicClosed(op string) { panic(k.misuse(op, closedReason)) }

const closedReason = "the owner is closed; close it after its last use, or call TryUse"

//go:noinline
func (k *Kind) misuse(op, reason string) *cheap.MisuseError {
	return &cheap.MisuseError{Op: k.Name + "." + op, Reason: reason}
}

// Close closes an entry, and releases it unless a Use, a child or a queue does so later.
// It reports whether it has left that to others, who set Gone, and returns the error of
// the release function.
func (l *Ledger) Close(i uint32) (later bool, err error) {
	for {
		s := l.State(i)
		if s&Open == 0 {
			return false, nil
		}
		if !atomic.CompareAndSwapUint64(&l.States[i], s, s&^Open) {
			continue
		}
		switch {
		case s&usesMask != 0: // the last Use releases it
		case s&kinBit == 0 && l.direct:
			return false, l.releaseDirect(i, s)
		case s&kinBit != 0 && !l.family(i).close(): // the last child releases it
		default:
			o := l.Kind.Sink.Closed(l, i)
			o.disposeOfParents()
			return l.State(i)&Gone == 0 && l.Kind.Queues, o.Err
		}
		return true, nil
	}
}

// Shut closes an entry for a Destroy. It reports whether the caller must release
// the entry now: it was open, and no Use and no child does that later. If the entry
// has, or had, children, Shut returns their family.
func (l *Ledger) Shut(i uint32) (state uint64, release bool, f *Family) {
	var s uint64
	l.mu.Lock()
	for {
		s = l.State(i)
		if s&kinBit != 0 {
			f = l.families[i]
		}
		if s&Open == 0 || l.dead {
			break
		}
		if atomic.CompareAndSwapUint64(&l.States[i], s, s&^Open) {
			release = s&usesMask == 0
			break
		}
	}
	l.mu.Unlock()
	return s, release && (f == nil || f.close()), f
}

// Disown closes an entry without releasing it.
func (l *Ledger) Disown(i uint32) error {
	for {
		s := l.State(i)
		switch {
		case s&Open == 0:
			return ErrClosed
		case l.Kind.Heap != nil && !l.Whole:
			return ErrShared
		case s&usesMask != 0:
			return ErrInUse
		case s&kinBit != 0:
			f := l.family(i)
			f.mu.Lock()
			if f.pending > 0 {
				f.mu.Unlock()
				return ErrChildren
			}
			ok := atomic.CompareAndSwapUint64(&l.States[i], s, s&^Open)
			f.closed = f.closed || ok // no child can join any more
			f.mu.Unlock()
			if !ok {
				continue
			}
		default:
			if !atomic.CompareAndSwapUint64(&l.States[i], s, s&^Open) {
				continue
			}
		}
		if l.Whole {
			l.Chunk = 0 // it belongs to the caller now
		}
		if parent, j := l.finish(1, SizeOf(s)); parent != nil {
			parent.Dispose(j)
		}
		return nil
	}
}
