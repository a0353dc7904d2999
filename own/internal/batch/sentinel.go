package batch

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// A Ref is what an owner consists of. The zero Ref owns nothing.
type Ref struct {
	// sentinel is a *Sentinel. Its type keeps all code that prints or compares values by
	// reflection from following it: into the batch, whose states other goroutines
	// write, and from there into the pool.
	sentinel unsafe.Pointer
	Index    uint32
}

// RefTo returns the Ref to an entry of the batch that t belongs to. The owner of the
// entry is one of those that share t.
func RefTo(t *Sentinel, index uint32) Ref { return Ref{sentinel: unsafe.Pointer(t), Index: index} }

// Sentinel returns the sentinel of the owner, or nil.
func (r *Ref) Sentinel() *Sentinel { return (*Sentinel)(r.sentinel) } // RefTo has put it there

// Vacant reports whether r owns nothing.
func (r *Ref) Vacant() bool { return r.sentinel == nil || r.Sentinel().State(r.Index)&Open == 0 }

// A Sentinel is the object to which some owners of a batch point, those of adjacent
// entries. Only they do, and, while the batch is open and not yet registered, the shard.
//
// The sentinels of a batch form a ring, so each keeps all of them reachable. One of them,
// the first, is registered with the collector. A batch that outlives collections may be
// split: the ring is cut, and each sentinel is registered; see split.go.
type Sentinel struct {
	Batch *Batch
	Page  *Entry    // the page of the sentinel's entries: its first entry
	next  *Sentinel // in the ring; nil if there is no other, or the ring is cut
}

// A registration walks the list of registrations in the same span of the Go heap. A
// larger object makes that cheaper: 85 steps on average, not 256. So the first sentinel has
// 64 bytes.
type firstSentinel struct {
	Sentinel
	_ [64 - unsafe.Sizeof(Sentinel{})]byte
}

// An Entry is the record of one resource. The window of package window writes it, and
// package batch.
type Entry struct {
	State uint64
	_     [8 - unsafe.Sizeof(uintptr(0))]byte // not at the end, where Go would add more
	Word  uintptr                             // the resource. It does not change after the owner is handed out
}

// EntrySize divides the addresses of entries. On 32-bit systems as well State can be
// used atomically, because Go aligns an object whose size is a multiple of it.
const EntrySize = unsafe.Sizeof(Entry{})

// The entries of a batch are in pages, so that those of a batch that was split do not
// all stay because of one.
const (
	pageShift  = 5
	wholeShift = 31 // one page has all entries
)

// Each owner of a batch has the same sentinel if the number of owners that share one is
// given as 1<<OneSentinel.
const OneSentinel = wholeShift

// PageMask returns a mask: an entry has the number i & mask in its page.
func (b *Batch) PageMask() uint32 { return 1<<b.pageShift - 1 }

// at returns an entry. It must not be changed if its page was dropped. The caller knows
// that the entry is not gone, or that its sentinel lives, or holds b.mu.
func (b *Batch) at(i uint32) *Entry {
	p := (*Entry)(b.pages[i>>b.pageShift])
	if p == nil {
		p = &noPage[0] // a page with all entries is never dropped
	}
	// The page has the entry.
	return (*Entry)(unsafe.Add(unsafe.Pointer(p), uintptr(i&(1<<b.pageShift-1))*EntrySize))
}

// noPage stands for each page that was dropped. The states are those of entries that were
// never in use, and are not written.
var noPage [1 << pageShift]Entry

// At returns an entry. The sentinel keeps its page from being dropped, so the caller must
// keep the sentinel alive.
func (t *Sentinel) At(i uint32) *Entry {
	return (*Entry)(unsafe.Add(unsafe.Pointer(t.Page), uintptr(i&(1<<t.Batch.pageShift-1))*EntrySize))
}

// NewSentinel returns a sentinel for NewSentinels. It may be the sentinel of owners before.
func NewSentinel() *Sentinel { return &new(firstSentinel).Sentinel }

// NewSentinels appends the sentinels of the batch to buf, which is empty: that of entry i is
// number i >> Share. If first is not nil, it is the first of them.
func (b *Batch) NewSentinels(buf []*Sentinel, first *Sentinel) []*Sentinel {
	if first == nil {
		first = NewSentinel()
	}
	first.Batch, first.Page = b, (*Entry)(b.pages[0])
	buf = append(buf, first)
	last := first
	for i := uint32(1) << b.Share; i < b.size; i += 1 << b.Share {
		t := &Sentinel{Batch: b, Page: (*Entry)(b.pages[i>>b.pageShift])}
		last.next = t
		last = t
		buf = append(buf, t)
	}
	if last != first {
		last.next = first
	}
	return buf
}

// sentinels returns the number of sentinels of the entries in use of a sealed batch. Those of
// the others have no owner.
func (b *Batch) sentinels() uint32 { return (b.n + 1<<b.Share - 1) >> b.Share }

// State returns the state of an entry.
func (b *Batch) State(i uint32) uint64 { return atomic.LoadUint64(&b.at(i).State) }

// State returns the state of an entry of the sentinel.
func (t *Sentinel) State(i uint32) uint64 {
	s := atomic.LoadUint64(&t.At(i).State)
	runtime.KeepAlive(t)
	return s
}

// Word returns the resource of an entry, as a number.
func (b *Batch) Word(i uint32) uintptr { return b.at(i).Word }

// Word returns the resource of an entry of the sentinel, as a number.
func (t *Sentinel) Word(i uint32) uintptr {
	w := t.At(i).Word
	runtime.KeepAlive(t)
	return w
}

// word returns the resource as a slice for a release function.
func (e *Entry) word() []uintptr { return unsafe.Slice(&e.Word, 1) }

// Pointer returns the resource of an entry as a pointer. Its spec is not one of
// numbers: the runtime ends the program when it finds a pointer below LeastAddress on
// a stack, or a pointer into a free part of the Go heap. Pointer reads the word as a
// pointer, which is safe: the resource was a pointer when Own got it, or
// Options.Construct promises that it is an address outside the Go heap. The collector
// ignores such addresses.
func (t *Sentinel) Pointer(i uint32) unsafe.Pointer {
	p := *(*unsafe.Pointer)(unsafe.Pointer(&t.At(i).Word))
	runtime.KeepAlive(t)
	return p
}

// Enter counts a Use. It returns false if the owner is closed.
func (t *Sentinel) Enter(i uint32, op string) bool {
	state := &t.At(i).State
	for {
		s := atomic.LoadUint64(state)
		if s&(Open|Noted) != Open {
			if s&Open == 0 {
				runtime.KeepAlive(t)
				return false
			}
			t.Batch.used(i)
		}
		if s&usesMask == usesMask {
			t.Batch.Spec.PanicMisuse(op, "%d calls of Use are running already, the most at a time; return from Use sooner", MostUses)
		}
		if atomic.CompareAndSwapUint64(state, s, s+OneUse) {
			runtime.KeepAlive(t)
			return true
		}
	}
}

// Peek is Enter without a count. The owner must not be closed before its use ends.
func (t *Sentinel) Peek(i uint32) bool {
	s := t.State(i)
	if s&(Open|Noted) == Open|Noted {
		t.Batch.used(i)
	}
	return s&Open != 0
}

// Exit ends a Use. After Close no new Use begins, so exactly one Exit is the last
// one after a Close.
func (t *Sentinel) Exit(i uint32) {
	if s := atomic.AddUint64(&t.At(i).State, ^uint64(OneUse-1)); s&(Open|usesMask) == 0 {
		b := t.Batch
		if s&kinBit == 0 || b.family(i).close() {
			b.Dispose(i)
		} else { // the last child releases it
			b.announce()
		}
	}
	// The sentinel must be reachable until here. If the collector found the batch
	// dead while the count is not 0, it would release the entry, and the last Exit
	// would release it again.
	runtime.KeepAlive(t)
}

// Close closes an entry, and releases it unless a Use, a child or a queue does so later.
// It returns the error of the release function, and reports whether it has left the release
// to others, who set Gone.
func (t *Sentinel) Close(i uint32) (later bool, err error) {
	b, e := t.Batch, t.At(i)
	for {
		s := atomic.LoadUint64(&e.State)
		if s&Open == 0 {
			runtime.KeepAlive(t)
			return false, nil
		}
		if !atomic.CompareAndSwapUint64(&e.State, s, s&^Open) {
			continue
		}
		switch {
		case s&usesMask != 0: // the last Use releases it
		case s&kinBit == 0 && b.direct:
			err = b.releaseDirect(e, s)
			runtime.KeepAlive(t) // the function may have read the page
			return false, err
		case s&kinBit != 0 && !b.family(i).close(): // the last child releases it
		default:
			o := b.Spec.Releaser.Closed(b, i)
			o.disposeOfParents()
			later = b.Spec.Queues && t.State(i)&Gone == 0
			return later, o.Err
		}
		return true, nil
	}
}
