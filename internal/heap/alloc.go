package heap

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
)

// # An allocation that misses the cache
//
// Malloc comes here if the list of the cache is empty, and for sizes that no cache has:
//
//  1. alloc: in a watched heap, allocWatched (watched.go) goes on with step 2 if no watcher
//     takes the block.
//  2. allocPlain: the size class is the smallest whose blocks have the size and the alignment. If
//     there is none, allocLarge takes a span for the block (large.go), and step 7 follows.
//  3. refill: the spare magazine of the cache becomes its list. If that gives a block, step 7 follows.
//  4. If the class needs a span, and the heap would grow beyond a bound, free blocks are sorted into
//     their spans first (consolidate).
//  5. class.get takes, under the lock of the class, the first of these: a magazine that a cache gave
//     back; free blocks of a span; newly carved blocks; blocks carved from a new span.
//  6. The first block is the caller's. The others become the list of the cache.
//  7. mustBeUndamaged panics if a free block was found that was written to. Notify lets package
//     pace start a collection.
//
// If there is no memory, findMemory tries to free some, and steps 2 to 6 are repeated.

// TryMalloc is cheap.Heap.TryMalloc.
//
//go:norace
func (h *Heap) TryMalloc(size int) (unsafe.Pointer, error) {
	if p, _ := h.takeCached(size); p != 0 {
		return osmem.Pointer(p), nil
	}
	p, err := h.allocSlow("Heap.TryMalloc", nil, size, sizeclass.Quantum)
	return osmem.Pointer(p), err
}

// takeCached returns a block of size bytes from the list of the P's cache, and the
// block's state. p is 0 if there is none.
//
//go:norace
func (h *Heap) takeCached(size int) (p uintptr, was block.State) {
	if uint(size) > sizeclass.MaxSize {
		return 0, 0
	}
	slot := h.caches.Pin()
	if slot != 0 {
		if cc := cacheAt(slot).class(sizeclass.Of(size)); !cc.due() {
			p, was = cc.pop()
		}
	}
	h.caches.Unpin(slot)
	raceAcquire(p, was)
	return p, was
}

// AlignedMalloc is cheap.Heap.AlignedMalloc.
func (h *Heap) AlignedMalloc(size, align int) unsafe.Pointer {
	MustBePowerOfTwo("Heap.AlignedMalloc", align)
	if size >= 0 && size <= sizeclass.MaxSize {
		if c, ok := alignedClass(size, align); ok {
			if p, _ := h.takeCached(int(sizeclass.Classes[c].Size)); p != 0 {
				return osmem.Pointer(p)
			}
		}
	}
	p, _ := h.allocSlow("Heap.AlignedMalloc", nil, size, align)
	return osmem.Pointer(p)
}

// allocSlow is Malloc if the list of the cache is empty. The cache is that of l or, if l is nil,
// that of the P.
//
//go:noinline
func (h *Heap) allocSlow(op string, l *Local, size, align int) (uintptr, error) {
	p, _, err := h.alloc(op, l, size, align)
	if err != nil {
		h.refused(size, err)
	}
	return p, err
}

// alloc returns a block, and its state. It does not call HeapOptions.OnLimit: the caller may still
// serve the request in another way.
func (h *Heap) alloc(op string, l *Local, size, align int) (p uintptr, was block.State, err error) {
	if h.watched.Load() { // step 1
		return h.allocWatched(op, l, size, align)
	}
	return h.allocPlain(op, l, size, align)
}

// allocPlain is alloc of a block that no watcher takes.
//
//go:norace
func (h *Heap) allocPlain(op string, l *Local, size, align int) (p uintptr, was block.State, err error) {
	h.mustBeOpen(op)
	if size < 0 {
		panicMisuse(op, 0, "negative size %d", size)
	}
	c, small := alignedClass(size, align) // step 2
	for attempt := 0; ; attempt++ {
		switch {
		case !small:
			p, was, err = h.allocLarge(uintptr(size), uintptr(align))
		case l == nil:
			p, was, err = h.refill(nil, c)
		default:
			p, was, err = h.refill(l.enter(true), c)
			l.leave()
		}
		if err == nil {
			break
		}
		if err = h.findMemory(op, l, size, attempt, err); err != nil {
			break
		}
	}
	h.mustBeUndamaged(p) // step 7
	account.Process.Notify()
	raceAcquire(p, was)
	return p, was, err
}

// alignedClass returns the smallest class whose blocks have at least size bytes and
// lie at multiples of align, a power of two. ok is false if there is none. The blocks of a
// class are aligned if their size is a multiple of align, and a block that is alone in its
// span is aligned as the span is. For the alignment of a span there is none: a small block
// would take the size of a class where a large one takes a page, and the chunk of a
// FixedBlock must be large, so that the heap recognizes it.
func alignedClass(size, align int) (c uint8, ok bool) {
	if size > sizeclass.MaxSize || align >= sizeclass.SpanSize {
		return 0, false
	}
	c = sizeclass.Of(size)
	if align <= sizeclass.Quantum || sizeclass.Classes[c].Blocks == 1 {
		return c, true
	}
	for ; c < sizeclass.Count; c++ {
		if sizeclass.Classes[c].Size&uint32(align-1) == 0 {
			return c, true
		}
	}
	return 0, false
}

// refill returns a block of class c, and its state. It fills the list of the cache if the list is
// empty. The cache is local, the cache of a Local; if local is nil, it is the cache of the P.
//
//go:norace
func (h *Heap) refill(local *cache, c uint8) (p uintptr, was block.State, err error) {
	race.Enter()
	cl, want := &h.classes[c], 1
	k := local
	if k == nil {
		k = cacheAt(h.caches.Pin())
	}
	if k == nil {
		h.unpin(local, k)
		h.addCache()
	} else {
		var written uintptr
		var lost int
		cc := k.class(c)
		want = max(1, k.within(c, nextCapacity(c, int(cc.capacity)))) // or fill would have to refuse them
		if cc.useSpare() {                                            // step 3
			if p, was = cc.pop(); p == 0 {
				written, lost = cc.dropList()
			}
		}
		h.unpin(local, k)
		if p != 0 {
			race.Leave()
			return p, was, nil
		}
		if written != 0 {
			h.noteDamage(written)
			cl.lose(lost)
		}
	}
	if cost := spanCost(c); h.mustConsolidate(cost, 1, cl) { // step 4
		h.consolidate(local, cost)
	}
	p, was, more, err := cl.get(h, c, want) // step 5
	if more.n > 0 {                         // step 6
		k := local
		if k == nil {
			k = cacheAt(h.caches.Pin())
		}
		placed := k != nil && k.fill(c, more.list, more.n, want)
		h.unpin(local, k)
		if !placed {
			cl.sort(h, more) // the list was filled meanwhile, or the goroutine is on another P
		}
	}
	race.Leave()
	return p, was, err
}

// findMemory tries to free memory for a request that failed with err. attempt counts the earlier
// attempts, which failed, too. findMemory returns nil if another attempt may succeed, and otherwise
// the error of the request.
func (h *Heap) findMemory(op string, l *Local, size, attempt int, err error) error {
	if errors.Is(err, errTooLarge) {
		return err
	}
	h.mustBeOpen(op) // another goroutine may have destroyed it
	quarantined := h.checked != nil && attempt > 0
	if quarantined {
		attempt-- // the first attempt with an empty quarantine needs no collection
	}
	if attempt > 0 {
		// A collection may help, if package pace is at work.
		short := h.account.Shortfall()
		if why := account.Process.Reclaim(max(int64(size), short), attempt-1, short == 0); why == account.ErrUnpaced {
			return err
		} else if why != nil {
			return fmt.Errorf("%w: %w", err, why)
		}
	}
	if quarantined {
		h.checked.empty() // also of what the collection has released
	}
	if l != nil {
		l.empty()
	}
	h.reclaim()
	return nil
}

// refused is called with the final error of a request. The caller is not between begin and end.
func (h *Heap) refused(size int, err error) {
	if h.onLimit != nil && errors.Is(err, errLimit) {
		h.tellLimit(size, err)
	}
}

// tellLimit calls HeapOptions.OnLimit, unless it was called within the last second.
func (h *Heap) tellLimit(size int, err error) {
	now, last := int64(time.Since(processStart))+1, h.limitTold.Load()
	if last != 0 && now-last < int64(time.Second) || !h.limitTold.CompareAndSwap(last, now) {
		return
	}
	h.onLimit(size, err)
}

// processStart is the instant from which limitTold counts.
var processStart = time.Now()
