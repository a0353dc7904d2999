package batch

import (
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// A Batch has the entries of owners that share a registration. It refers to no owner and
// no sentinel. It holds resources as numbers, which the collector does not follow.
//
// An entry is written once, by the shard whose batch is open. It is never used
// again for another resource, so a stale owner finds its own entry, closed. The
// state of an unused entry is 0.
type Batch struct {
	Spec *Spec
	Home any  // the shard whose batch it is. Only package intake uses it
	kin  *kin // if the entries are children, else nil

	state any // for the release function, except for entries with a state of their own

	// The entries, by page. A page that nothing needs any more is dropped, and nil: see
	// pages.go. It is dropped under mu. Batch.at says who may read pages without mu.
	pages     []unsafe.Pointer // of *Entry
	onePage   [1]unsafe.Pointer
	size      uint32 // number of entries
	pageShift uint8  // a page has 1<<pageShift entries
	Share     uint8  // 1<<Share owners share a sentinel
	outside   bool   // the pages are in the store
	rate      uint8  // 1 in rate owners is sampled; 0: none. Set by StartSampling

	// gone counts the entries that are released or disowned:
	//
	//	gone = bytes<<goneBytes | goneAnnounced | owners<<goneOwners | goneSealed
	//
	// Before the batch is sealed its entries are counted nowhere else. After that, each
	// addition to gone also goes to the account. bytes is read only before the batch is
	// sealed, when it fits; later the sum may overflow at the top, which affects no other
	// field.
	gone atomic.Uint64

	n     uint32 // entries in use; set by Seal
	bytes int64  // their sizes, which change only with Resize; set by Seal

	direct bool        // Close calls the release function, and need not ask the releaser
	Whole  bool        // the only entry is a block of the heap by itself
	Probe  bool        // split the batch, to see how its sentinels die
	old    atomic.Bool // the batch has outlived collections
	Stock  bool        // the resources were made in advance and never handed out
	sited  bool        // the leak level was not off when the batch was begun
	uses   bool        // the last uses of the sampled owners are recorded
	nextAt uint32      // the next entry that is sampled. Under the shard's lock, as SampleAt

	node node // in the list of its shard or pool

	// Chunk is the block of Spec.Heap that contains the blocks of the batch, or 0.
	Chunk uintptr
	Grown atomic.Int64 // bytes that groups have taken beyond their blocks

	SampleAt uint32 // the next entry whose origin is recorded

	mu sync.Mutex
	// The rest is under mu.
	dead        bool   // the batch is queued for release, which claims its open entries
	unreachable bool   // no owner is left
	shut        bool   // a Close of the pool has closed entries, or has tried to
	parts       *parts // nil if the batch was not split

	*notes // nil if there are none
}

// notes are the fields that most batches do not need.
type notes struct {
	families  []*Family         // by entry; nil before the first
	labels    map[uint32]string // by entry; nil before the first
	samples   []sample          // with rate 1 by entry, else in ascending order
	few       [2]sample         // of samples, as long as they fit
	lastUses  map[uint32]*[mostUses]*Origin
	oneAt     uint32                   // with OnCollect and without rate 1: the entry whose origin is sampled
	sampled   *Origin                  // if not nil
	awaited   map[uint32]chan struct{} // by entry: closed when Gone is set
	forgotten *Origin                  // of an entry that the collector found, until OnCollect is told
}

// note makes room for notes. The caller holds b.mu, or is the only goroutine that
// knows b.
func (b *Batch) note() {
	if b.notes == nil {
		b.notes = new(notes)
	}
}

// The state of an entry is one word:
//
//	size<<stateSize | uses<<stateUses | Noted | Gone | Extra | kinBit | Open
//
// Exactly one goroutine clears Open, and so closes the entry. The entry is released
// once, by the goroutine that finds it closed with no Use and no child left. In a dead
// batch nothing is cleared: its open entries belong to the one that claims them.
const (
	Open   = 1 << 0
	kinBit = 1 << 1 // the entry has a Family: it has, or had, children, or a state of its own

	// Extra says that the release function has to be called for a block of a heap,
	// because more than its chunk has to return. No other block needs that.
	Extra = 1 << 3

	// Gone says that an entry was released which Close had left to the last Use, the
	// last child, or a queue.
	Gone = 1 << 4

	// Noted says that the stacks of the last uses are recorded. It does not change after the
	// owner is handed out.
	Noted = 1 << 5

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
	goneMask   = 1<<(goneBytes-goneOwners-1) - 1

	// Each further change of gone is announced. The flag lies above the number of owners, so
	// that one comparison finds it and the last owner.
	goneAnnounced = 1 << (goneBytes - 1)
	goneOver      = 1<<(goneBytes-goneOwners) - 1
)

var (
	ErrClosed   = errors.New("cheap: own: the owner is closed")
	ErrInUse    = errors.New("cheap: own: the resource is in use")
	ErrChildren = errors.New("cheap: own: the resource has children that are not released")
	ErrShared   = errors.New("cheap: own: the memory is shared with others and cannot be disowned; copy it")
)

// New returns a batch with room for n entries; 1<<share adjacent ones share a sentinel.
// If family is not nil, the entries are its children.
func New(k *Spec, home any, family *Family, n uint32, share uint8) *Batch {
	b := &Batch{Spec: k, Home: home, state: k.State, size: n, Share: share, pageShift: wholeShift}
	if n > 1<<pageShift && share <= pageShift {
		b.pageShift = pageShift
	}
	b.newPages(n)
	b.direct = !k.Queues && k.Heap == nil && family == nil
	b.node.batch = b
	if family != nil {
		b.kin = &kin{family: family}
		b.kin.node.batch = b
		if s := family.State(); s != nil {
			b.state = s
		}
	}
	return b
}

// Link puts the batch on a list, and on that of its family. It stays there until
// its last entry is gone.
func (b *Batch) Link(list *List) {
	list.add(&b.node)
	if b.kin != nil {
		b.kin.family.children.add(&b.kin.node)
	}
}

// Len returns the number of entries of a sealed batch.
func (b *Batch) Len() uint32 { return b.n }

// Size returns the number of entries for which the batch has room.
func (b *Batch) Size() uint32 { return b.size }

// Fill writes resources that were made in advance, to the entries from the first on.
func (b *Batch) Fill(resources []uintptr) {
	for i := uint32(0); len(resources) > 0; i += b.PageMask() + 1 {
		n := int(min(uint32(len(resources)), b.PageMask()+1))
		page := unsafe.Slice(b.at(i), n)
		for k, r := range resources[:n] {
			page[k].Word = r
		}
		resources = resources[n:]
	}
}

// Hand opens an entry that was made in advance. The caller is the only one that writes
// entries.
func (b *Batch) Hand(i uint32) { b.at(i).State = uint64(b.Spec.Size)<<StateSize | Open }

// Put writes an entry. The caller is the only one that writes entries, and hands
// out no owner of this one before Put returns.
func (b *Batch) Put(i int, resource uintptr, size int64, flags uint64) {
	e := b.at(uint32(i))
	e.Word = resource
	e.State = uint64(size)<<StateSize | flags | Open
}

// Gone returns how many entries are released or disowned, and, before the batch is
// sealed, their bytes.
func (b *Batch) Gone() (owners int, bytes int64) { return split(b.gone.Load()) }

func split(gone uint64) (owners int, bytes int64) {
	return int(gone >> goneOwners & goneMask), int64(gone >> goneBytes)
}

// Sealed reports whether Seal was called.
func (b *Batch) Sealed() bool { return b.gone.Load()&goneSealed != 0 }

// Seal ends the adding of entries: there are n, of bytes in all. It registers the
// sentinel with the collector, unless all entries are gone and in the Go heap. From here on
// only owners may refer to the sentinel. Seal returns the number of entries that are gone,
// and whether n is as many as there is room for.
func (b *Batch) Seal(t *Sentinel, n uint32, bytes int64) (gone uint32, full bool) {
	b.n, b.bytes = n, bytes
	owners, given := split(b.gone.Or(goneSealed))
	b.Spec.Counts.Sealed.Add(int64(n))
	if b.Spec.Heap == nil {
		b.Spec.mix.sealed(uint32(owners) == n)
	}
	if uint32(owners) == n {
		b.end()
		if !b.outside {
			return n, n == b.size
		}
	} else {
		b.Spec.Count(int(n)-owners, bytes-given)
	}
	if !Leak {
		gcwatch.Watch(t, (*Batch).collected, b, 0)
	}
	return uint32(owners), n == b.size
}

// SizeOf returns the size of a resource in bytes.
func SizeOf(state uint64) int64 { return int64(state >> StateSize) }

// Resize changes the size of an open entry, and returns the change. It reports
// whether the entry is open.
func (b *Batch) Resize(i uint32, size int64) (grown int64, open bool) {
	for {
		s := b.State(i)
		if s&Open == 0 {
			return 0, false
		}
		if atomic.CompareAndSwapUint64(&b.at(i).State, s, s&(1<<StateSize-1)|uint64(size)<<StateSize) {
			return size - SizeOf(s), true
		}
	}
}

// PanicClosed panics for op, a method that uses the resource of a closed owner. It is
// inlined, so that the compiler sees that it does not return, and keeps nothing for
// afterwards.
func (k *Spec) PanicClosed(op string) { panic(k.misuse(op, closedReason)) }

const closedReason = "the owner is closed; close it after its last use, or call TryUse"

//go:noinline
func (k *Spec) misuse(op, reason string) *cheap.MisuseError {
	return &cheap.MisuseError{Op: k.Name + "." + op, Reason: reason}
}

// Shut closes an entry for a Close of the pool. It reports whether the caller must release
// the entry now: it was open, and no Use and no child does that later. If the entry
// has, or had, children, Shut returns their family.
//
// It returns a copy of the entry from before: the caller has no sentinel, so the page may be
// dropped as soon as the entry is closed.
func (b *Batch) Shut(i uint32) (e Entry, release bool, f *Family) {
	b.mu.Lock()
	defer func() {
		b.mu.Unlock()
		release = release && (f == nil || f.close())
	}()
	b.shut = true
	at := b.at(i)
	for {
		s := atomic.LoadUint64(&at.State)
		e = Entry{State: s, Word: at.Word}
		if s&kinBit != 0 {
			f = b.families[i]
		}
		if s&Open == 0 || b.found(i) {
			return e, false, f
		}
		if atomic.CompareAndSwapUint64(&at.State, s, s&^Open) {
			return e, s&usesMask == 0, f
		}
	}
}

// Disown closes an entry without releasing it.
func (b *Batch) Disown(i uint32) error {
	for {
		s := b.State(i)
		switch {
		case s&Open == 0:
			return ErrClosed
		case b.Spec.Heap != nil && !b.Whole:
			return ErrShared
		case s&usesMask != 0:
			return ErrInUse
		case s&kinBit != 0:
			f := b.family(i)
			f.mu.Lock()
			if f.pending > 0 {
				f.mu.Unlock()
				return ErrChildren
			}
			ok := atomic.CompareAndSwapUint64(&b.at(i).State, s, s&^Open)
			f.closed = f.closed || ok // no child can join any more
			if ok {
				f.state, f.own = nil, nil
			}
			f.mu.Unlock()
			if !ok {
				continue
			}
		default:
			if !atomic.CompareAndSwapUint64(&b.at(i).State, s, s&^Open) {
				continue
			}
		}
		if b.Whole {
			b.Chunk = 0 // it belongs to the caller now
		}
		b.Spec.Leave(b.at(i).Word) // before the entry is gone
		if parent, j := b.finish(1, SizeOf(s)); parent != nil {
			parent.Dispose(j)
		}
		return nil
	}
}
