package cheap

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/sizeclass"
)

// # An allocation that misses
//
// Malloc comes here when the list of the cache is empty, and for sizes that no cache has:
//
//  1. alloc: a heap that is watched goes through a door (heap_watched.go), which comes back to step
//     2 for a block that no watcher wants.
//  2. allocPlain: the size class is the smallest whose blocks have the size and the alignment. Where
//     there is none, allocLarge takes a span for the block (heap_large.go), and step 8 follows.
//  3. refill: the spare magazine of the cache becomes its list. If that gives a block, step 8 follows.
//  4. If the class needs a span, and the heap would grow beyond a bound, free blocks are sorted into
//     their spans first (consolidate).
//  5. class.get: under the lock of the class, a magazine that a cache gave back; or blocks that came
//     back to a span; or blocks that are carved; or a new span, and blocks carved from that.
//  6. The first block is the caller's. The others become the list of the cache.
//  7. If the heap has grown, it gives up the caches of Ps that no longer run.
//  8. A free block that was found to be written to is reported, and package pace may collect.
//
// Where there is no memory, findMemory looks for some, and steps 2 to 7 are done again.

// TryMalloc is like [Heap.Malloc], but returns an error instead of nil. The error
// wraps [ErrLimit] if the limit is reached, and [ErrNoMemory] if the operating
// system has no memory.
//
//go:norace
func (h *Heap) TryMalloc(size int) (unsafe.Pointer, error) {
	if p, _ := h.takeCached(size); p != 0 {
		return osmem.Pointer(p), nil
	}
	p, err := h.allocSlow("Heap.TryMalloc", nil, size, sizeclass.Quantum)
	return osmem.Pointer(p), err
}

// takeCached returns a block of size bytes from the list of the P's cache, and what its
// canary said. p is 0 if there is none.
//
//go:norace
func (h *Heap) takeCached(size int) (p uintptr, was blockState) {
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
	handedOut(p, was)
	return p, was
}

// AlignedMalloc is like [Heap.Malloc], for an address that is a multiple of align.
// It panics if align is not a power of two.
func (h *Heap) AlignedMalloc(size, align int) unsafe.Pointer {
	mustBePowerOfTwo("Heap.AlignedMalloc", align)
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

// allocSlow is Malloc where the list of the cache is empty. The cache is that of l or, if l is nil,
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

// alloc returns a block, and what its canary said. It does not call HeapOptions.OnLimit: the caller
// may still serve the request in another way.
func (h *Heap) alloc(op string, l *Local, size, align int) (p uintptr, was blockState, err error) {
	if h.watched.Load() { // step 1
		return h.allocWatched(op, l, size, align)
	}
	return h.allocPlain(op, l, size, align)
}

// allocPlain is alloc of a block that nothing watches.
//
//go:norace
func (h *Heap) allocPlain(op string, l *Local, size, align int) (p uintptr, was blockState, err error) {
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
	h.mustBeUndamaged(p) // step 8
	account.Process.Notify()
	handedOut(p, was)
	return p, was, err
}

// alignedClass returns the smallest class whose blocks have size bytes or more
// and lie at multiples of align, if there is one. A span is aligned to more than
// any block, so these are the classes whose block size is a multiple of align.
func alignedClass(size, align int) (c uint8, ok bool) {
	if size > sizeclass.MaxSize {
		return 0, false
	}
	c = sizeclass.Of(size)
	if align <= sizeclass.Quantum {
		return c, true
	}
	for ; c < sizeclass.Count; c++ {
		if sizeclass.Classes[c].Size%uint32(min(align, math.MaxInt32)) == 0 {
			return c, true
		}
	}
	return 0, false
}

// refill returns a block of class c, and what its canary said, and fills the list of the cache if
// that is empty. The cache is local, that of a Local, or if local is nil that of the P.
//
//go:norace
func (h *Heap) refill(local *cache, c uint8) (p uintptr, was blockState, err error) {
	race.Enter()
	cl, want := &h.classes[c], 1
	k := local
	if k == nil {
		k = cacheAt(h.caches.Pin())
	}
	if k == nil {
		h.letGo(local, k)
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
		h.letGo(local, k)
		if p != 0 {
			race.Leave()
			return p, was, nil
		}
		if written != 0 {
			h.noteDamage(written)
			cl.lose(lost)
		}
	}
	if h.mustConsolidate(spanCost(c), 1, cl) { // step 4
		h.consolidate(local)
	}
	p, was, more, err := cl.get(h, c, want) // step 5
	if more.n > 0 {                         // step 6
		k := local
		if k == nil {
			k = cacheAt(h.caches.Pin())
		}
		placed := k != nil && k.fill(c, more.list, more.n, want)
		h.letGo(local, k)
		if !placed {
			cl.sort(h, more) // the list was filled meanwhile, or the P is another one
		}
	}
	if h.grew.Load() { // step 7
		h.dropIdle()
	}
	race.Leave()
	return p, was, err
}

// findMemory looks for memory after attempt attempts to serve a request have failed before this
// one, which failed with err. It returns nil if there may be some, and the answer to the request if
// there is none.
func (h *Heap) findMemory(op string, l *Local, size, attempt int, err error) error {
	if errors.Is(err, errTooLarge) {
		return err
	}
	h.mustBeOpen(op) // another goroutine may have destroyed it
	if attempt > 0 {
		// A collection may help, if package pace is at work.
		short := h.account.Shortfall()
		if why := account.Process.Reclaim(max(int64(size), short), attempt-1, short == 0); why == account.ErrUnpaced {
			return err
		} else if why != nil {
			return fmt.Errorf("%w: %w", err, why)
		}
	}
	if l != nil {
		l.empty()
	}
	h.reclaim()
	return nil
}

// refused is called with the error of a request, nil included, when that is the answer. The
// caller is not between begin and end.
func (h *Heap) refused(size int, err error) {
	if err != nil && h.onLimit != nil && errors.Is(err, ErrLimit) {
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
