// Package window lets a goroutine that is pinned to its P write the entries of an
// open batch, without a lock and without an atomic instruction.
//
// The code that runs pinned is here and nowhere else in package own. It must not
// fault, panic, or call other code: see package percpu.
package window

import (
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// A Fill says how far an open batch is filled, and how far it may be. If the
// resources are blocks, they are carved from a chunk.
type Fill struct {
	At, End     uintptr // where the next block begins, and the end of the chunk
	N, Limit    uint32  // entries in use. The slow path runs when N is Limit,
	Taken, Room int64   // or Taken, the sum of the sizes, would exceed Room
}

// A Window is the part of a shard that its P uses without a lock. While it is
// open, a goroutine that is pinned to the P writes the next entries of the
// shard's open batch through it.
//
// A window has three states:
//
//	                 opens
//	     +---------------------------+
//	     |                           v
//	+--------+       closes      +------+
//	| closed | <---------------- | open |  an entry is written: N grows
//	+--------+                   +------+
//	     ^                           |
//	     |                           | narrows: Limit is 0
//	     |                           v
//	     |           closes      +----------+
//	     +---------------------- | narrowed |  at most the entry that a
//	                             +----------+  goroutine had begun
//
// A goroutine that changes the state holds the lock of the shard. A goroutine
// that writes an entry holds no lock, and is pinned to the window's P.
//
//	from      to        function       on which P        and only if
//	closed    open      Open           the window's P,   the batch has room, and the
//	                                   pinned            pool is not destroyed
//	open      open      Put, Next,     the window's P,   N is below Limit
//	                    Carve          pinned, no lock
//	open      closed    Close          the window's P,
//	                                   pinned
//	open      narrowed  Narrow         any
//	narrowed  closed    Close          the window's P,
//	                                   pinned
//	narrowed  closed    Fold           any               the world has stopped since Narrow
//
// Fold is called after a collection that began after Narrow, or after percpu.Wait.
// A pinned goroutine is not preempted, so each goroutine that may have seen the old
// limit has written its entry before that.
//
// On the window's P no other goroutine can be in the middle of an entry. So with
// the lock held and the window closed, the shard is the same as one without a
// window.
//
// There are no windows with the build tag cheap_portable, because a goroutine may
// be preempted while it writes an entry, nor with the race detector, which knows
// locks and does not know Ps.
type Window struct {
	// Used by the goroutine that is pinned to the P; Limit also by Narrow.
	fill Fill

	// Written while the window is closed, under the shard's lock.
	sentinels unsafe.Pointer // the first *batch.Sentinel, each of 1<<share owners
	handles   unsafe.Pointer // the first, or nil
	batch     *batch.Batch
	share     uint8  // 1<<share owners have the same sentinel
	mask      uint32 // of the number of an entry in its page

	_ [64]byte

	Shard any  // that the window is a part of; does not change
	Place uint // the number of its P; does not change

	// Under the shard's lock.
	opened  bool
	resized int64 // bytes by which entries of the open batch have grown meanwhile
}

// Possible is true if there are windows.
const Possible = !percpu.Portable && !race.Build

// Quantum divides the addresses of blocks.
const Quantum = 16

// Takes returns how many bytes of a chunk a block of size bytes takes.
func Takes(size int64) int64 { return (max(size, 1) + Quantum - 1) &^ (Quantum - 1) }

// Opened reports whether the window is open, or narrowed. A nil Window is not open.
func (w *Window) Opened() bool { return w != nil && w.opened }

// Open opens a closed window for a batch that is filled as f says, if the goroutine
// is on the window's P. The batch has these sentinels. The caller does not change them
// while the window is open. handles is the first handle of the batch, or nil.
func (w *Window) Open(sentinels []*batch.Sentinel, f Fill, handles unsafe.Pointer) {
	w.sentinels, w.handles, w.batch = unsafe.Pointer(unsafe.SliceData(sentinels)), handles, sentinels[0].Batch
	w.share, w.mask = w.batch.Share, w.batch.PageMask()
	if percpu.Enter() == w.Place {
		w.fill = f
		w.opened = true
	}
	percpu.Leave()
	if !w.opened {
		w.forget()
	}
}

// Close closes an open window if the goroutine is on its P, and reports whether it
// did. It updates f.
func (w *Window) Close(f *Fill) bool {
	if percpu.Enter() == w.Place {
		w.fold(f)
	}
	percpu.Leave()
	if w.opened {
		return false
	}
	w.forget()
	return true
}

// Fold closes an open window that was narrowed, from any P. Every goroutine that may
// have found room before has unpinned since. It updates f.
func (w *Window) Fold(f *Fill) {
	w.fold(f)
	w.forget()
}

func (w *Window) fold(f *Fill) {
	f.N, f.At, f.Taken = w.fill.N, w.fill.At, w.fill.Taken+w.resized
	w.fill, w.resized, w.opened = Fill{}, 0, false
}

// forget drops the window's references to the batch, so that the collector can
// find it unreachable.
func (w *Window) forget() {
	w.sentinels, w.handles, w.batch = nil, nil, nil
}

// Narrow sets the limit of an open window to 0. A goroutine that is pinned to its
// P right now may still take an entry; every later one finds no room.
func (w *Window) Narrow() { atomic.StoreUint32(&w.fill.Limit, 0) }

// Resize adds to the sizes of the open batch, and narrows the window: the slow path
// runs next, and computes the limits.
func (w *Window) Resize(grown int64) {
	w.resized += grown
	w.Narrow()
}

// InUse returns N and Taken of the open batch. They may change while they are read.
func (w *Window) InUse() (n, taken int64) { return int64(w.fill.N), w.fill.Taken + w.resized }

// sentinel returns the sentinel of entry i, which the batch has, and the entry.
//
//go:nosplit
//go:nocheckptr
func (w *Window) sentinel(i uint32) (*batch.Sentinel, *batch.Entry) {
	t := *(**batch.Sentinel)(unsafe.Add(w.sentinels, uintptr(i>>(w.share&31))*unsafe.Sizeof(uintptr(0))))
	return t, (*batch.Entry)(unsafe.Add(unsafe.Pointer(t.Page), uintptr(i&w.mask)*batch.EntrySize))
}

// Put writes a resource of size bytes to the next entry of the P's window, and
// returns the batch's sentinel and the entry's index. It returns nil if the caller
// must take the slow path. size is positive. The sentinel keeps the batch alive until the
// owner refers to it.
//
// The code between Enter and Leave must not fault, panic, or call other code: see
// package percpu. The batch has an entry i, because i is below the limit.
//
//go:nosplit
//go:nocheckptr
func (ws *Set) Put(resource uintptr, size int64) (sentinel *batch.Sentinel, i uint32) {
	w := ws.At(percpu.Enter())
	n, taken := w.fill.N, w.fill.Taken+size
	if n < w.fill.Limit && taken <= w.fill.Room {
		t, e := w.sentinel(n)
		e.Word, e.State = resource, uint64(size)<<batch.StateSize|batch.Open
		w.fill.N, w.fill.Taken = n+1, taken
		sentinel, i = t, n
	}
	percpu.Leave()
	return sentinel, i
}

// Next is Put for an entry that has its resource already.
//
//go:nosplit
//go:nocheckptr
func (ws *Set) Next(size int64) (sentinel *batch.Sentinel, i uint32) {
	w := ws.At(percpu.Enter())
	if n := w.fill.N; n < w.fill.Limit {
		t, e := w.sentinel(n)
		e.State = uint64(size)<<batch.StateSize | batch.Open
		w.fill.N, w.fill.Taken = n+1, w.fill.Taken+size
		sentinel, i = t, n
	}
	percpu.Leave()
	return sentinel, i
}

// Carve is Put for a block of size bytes with undefined contents, the next one of
// the chunk. It returns the handle: the handles of the batch are stride bytes apart.
//
//go:nosplit
//go:nocheckptr
func (ws *Set) Carve(size int, flags uint64, stride uintptr) (handle unsafe.Pointer, block uintptr) {
	w := ws.At(percpu.Enter())
	i, at := w.fill.N, w.fill.At
	// As an unsigned number, size-1 of 0 and of negative sizes is huge. A size that
	// fits also fits when rounded up, because the chunk ends at a multiple of
	// Quantum.
	if uint(size-1) < uint(w.fill.End-at) && i < w.fill.Limit {
		_, e := w.sentinel(i)
		e.Word, e.State = at, uint64(size)<<batch.StateSize|flags|batch.Open
		handle = unsafe.Add(w.handles, uintptr(i)*stride)
		w.fill.N, w.fill.At, w.fill.Taken = i+1, at+uintptr(size+Quantum-1)&^(Quantum-1), w.fill.Taken+int64(size)
		block = at
	}
	percpu.Leave()
	return handle, block
}

// MostZeroed is the largest size, in bytes, of a block that CarveZeroed makes.
const MostZeroed = 256

// CarveZeroed is Carve for a zeroed block of MostZeroed bytes at most. The
// entry is written after the contents, so a Close of the pool that finds it need not wait for a Use.
//
//go:nosplit
//go:nocheckptr
func (ws *Set) CarveZeroed(size int, stride uintptr) (handle unsafe.Pointer, block uintptr) {
	w := ws.At(percpu.Enter())
	i, at := w.fill.N, w.fill.At
	if uint(size-1) < uint(min(w.fill.End-at, MostZeroed)) && i < w.fill.Limit {
		// All that the block takes is in the chunk, which is memory that can be written.
		end := at + uintptr(size+Quantum-1)&^(Quantum-1)
		for p := at; p < end; p += Quantum {
			*(*[Quantum / 8]uint64)(osmem.Pointer(p)) = [Quantum / 8]uint64{}
		}
		_, e := w.sentinel(i)
		e.Word, e.State = at, uint64(size)<<batch.StateSize|batch.Open
		handle = unsafe.Add(w.handles, uintptr(i)*stride)
		w.fill.N, w.fill.At, w.fill.Taken = i+1, end, w.fill.Taken+int64(size)
		block = at
	}
	percpu.Leave()
	return handle, block
}

// MakeRoom frees the space of a closed block if the block was carved last, and in
// the window of the current P.
func (ws *Set) MakeRoom(b *batch.Batch, i uint32, size int64) {
	// A window with limit 0 is closed, or another P may close it now.
	if w := ws.At(percpu.Enter()); w.fill.Limit != 0 && w.batch == b {
		if _, e := w.sentinel(i); e.Word+uintptr(Takes(size)) == w.fill.At {
			w.fill.At = e.Word
		}
	}
	percpu.Leave()
}
