package cheap

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/sample"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// TryMalloc is like [Heap.Malloc], but returns an error instead of nil. The error
// wraps [ErrLimit] if the limit is reached, and [ErrNoMemory] if the operating
// system has no memory.
//
//go:norace
func (h *Heap) TryMalloc(size int) (unsafe.Pointer, error) {
	if p, _ := h.takeCached(size); p != 0 {
		return osmem.Pointer(p), nil
	}
	p, _, err := h.alloc("Heap.TryMalloc", size, sizeclass.Quantum)
	return osmem.Pointer(p), err
}

// allocSlow is Malloc where the list of the cache is empty.
//
//go:noinline
func (h *Heap) allocSlow(size int) unsafe.Pointer {
	if uint(size) <= sizeclass.MaxSize && h.id != 0 && h.checked == nil {
		// Most of the time a magazine is at hand.
		if p, was, err := h.refill(nil, sizeclass.Of(size)); err == nil {
			h.finish(p, was)
			return osmem.Pointer(p)
		}
	}
	p, _, _ := h.alloc("Heap.Malloc", size, sizeclass.Quantum)
	return osmem.Pointer(p)
}

// alloc returns a block, and what its canary said.
func (h *Heap) alloc(op string, size, align int) (p uintptr, was blockState, err error) {
	p, was, err = h.tryAlloc(op, size, align)
	h.refused(size, err)
	return p, was, err
}

// tryAlloc is alloc without a call of HeapOptions.OnLimit: the caller may still serve the
// request in another way.
func (h *Heap) tryAlloc(op string, size, align int) (p uintptr, was blockState, err error) {
	if h.checked != nil {
		p, err = h.checked.alloc(op, size, align)
		return p, 0, err
	}
	return h.allocPlain(op, size, align)
}

// refused is called with the error of a request, nil included, when that is the answer. The
// caller is not between begin and end.
func (h *Heap) refused(size int, err error) {
	if err != nil && h.onLimit != nil && errors.Is(err, ErrLimit) {
		h.tellLimit(size, err)
	}
}

// allocPlain is alloc of a heap without a CheckLevel.
//
//go:norace
func (h *Heap) allocPlain(op string, size, align int) (p uintptr, was blockState, err error) {
	h.mustBeOpen(op)
	if size < 0 {
		panicMisuse(op, 0, "negative size %d", size)
	}
	small := size <= sizeclass.MaxSize
	var c uint8
	if small {
		c, small = alignedClass(size, align)
	}
	for attempt := 0; ; attempt++ {
		if small {
			p, was, err = h.refill(nil, c)
		} else {
			p, was, err = h.allocLarge(uintptr(size), uintptr(align))
		}
		if err == nil || errors.Is(err, errTooLarge) {
			break
		}
		h.mustBeOpen(op) // another goroutine may have destroyed it
		if attempt > 0 {
			// A collection may help, if package pace is at work.
			if why := account.Reclaim(max(int64(size), h.account.Shortfall()), attempt-1, h.account.Shortfall() == 0); why == account.ErrUnpaced {
				break
			} else if why != nil {
				err = fmt.Errorf("%w: %w", err, why)
				break
			}
		}
		h.reclaim()
	}
	h.finish(p, was)
	return p, was, err
}

// tellLimit calls HeapOptions.OnLimit, unless it was called within the last second.
func (h *Heap) tellLimit(size int, err error) {
	now, told := int64(time.Since(processStart))+1, h.limitTold.Load()
	if told != 0 && now-told < int64(time.Second) || !h.limitTold.CompareAndSwap(told, now) {
		return
	}
	h.onLimit(size, err)
}

// processStart is the instant from which limitTold counts.
var processStart = time.Now()

// finish is what each allocation ends with that has left the fast path. p is 0
// where there is no memory.
func (h *Heap) finish(p uintptr, was blockState) {
	h.mustBeUndamaged(p)
	account.Notify()
	if instrumented && p != 0 {
		h.handedOut(p, was)
	}
}

// alignedClass returns the smallest class whose blocks have size bytes or more
// and lie at multiples of align, if there is one. A span is aligned to more than
// any block, so these are the classes whose block size is a multiple of align.
func alignedClass(size, align int) (uint8, bool) {
	for c := int(sizeclass.Of(size)); c < sizeclass.Count; c++ {
		if sizeclass.Classes[c].Size%uint32(min(align, math.MaxInt32)) == 0 {
			return uint8(c), true
		}
	}
	return 0, false
}

// refill returns a block of class c, and what its canary said, where the list of
// the cache is empty; it fills the list. The cache is local, that of a Local, or
// if local is nil that of the P.
//
//go:norace
func (h *Heap) refill(local *cache, c uint8) (p uintptr, was blockState, err error) {
	if race.Told {
		race.Enter()
		defer race.Leave()
	}
	cl := &h.classes[c]
	want := 1
	k := h.hold(local)
	if h.checked == nil {
		var pick sample.Pick
		if k != nil {
			pick = k.sampleDue(c)
		} else {
			pick = sample.CurrentRates().Draw(uintptr(sizeclass.Classes[c].Size))
		}
		if pick != (sample.Pick{}) {
			h.letGo(local, k)
			if p, was, ok := h.allocPicked(c, pick); ok {
				return p, was, nil
			}
			k = h.hold(local)
		}
	}
	if k != nil {
		cc := k.class(c)
		want = max(1, k.within(c, nextCapacity(c, int(cc.capacity)))) // or fill would have to refuse them
		p, was, written, lost := cc.popOrSpare()
		if p == 0 {
			cc.skip()
		}
		h.letGo(local, k)
		if p != 0 {
			return p, was, nil
		}
		if written != 0 {
			h.noteDamage(written)
			cl.lose(lost)
		}
	} else {
		h.letGo(local, k)
		h.addCache()
	}
	if h.mustConsolidate(spanCost(c), 1) && cl.needsSpan() {
		h.consolidate(local)
	}
	p, was, more, err := cl.get(h, c, want)
	if err != nil {
		return 0, 0, err
	}
	if more.n > 0 {
		k := h.hold(local)
		placed := k != nil && k.fill(c, more.list, more.n, want)
		h.letGo(local, k)
		if !placed {
			cl.sort(h, more) // the list was filled meanwhile, or the P is another one
		}
	}
	h.afterGrowth()
	return p, was, nil
}

// afterGrowth does what has to be done, with no lock held, after memory was taken
// from the system.
func (h *Heap) afterGrowth() {
	if !h.grew.Load() || !h.grew.Swap(false) {
		return
	}
	h.dropIdle()
}

// freeSlow is Free where the cache has no room, where there is no cache, and for
// mistakes. The cache is local or, if that is nil, that of the P.
//
//go:noinline
//go:norace
func (h *Heap) freeSlow(op string, local *cache, p uintptr) {
	if p == 0 {
		return
	}
	if h.checked != nil {
		h.checked.free(op, p)
		return
	}
	for {
		h.mustBeOpen(op)
		if h.freeIn(op, local, p) {
			break
		}
		h.mustOwn(op, p) // it returns if another goroutine freed the block, and got it again
	}
	h.mustBeUndamaged(0)
}

// freeIn frees the block at p, which may be any number. It returns false, and
// changes nothing, if p is not a live block of the heap. It panics only if a guarded block was
// written to behind its end or before its start.
//
//go:norace
func (h *Heap) freeIn(op string, local *cache, p uintptr) bool {
	if race.Told {
		race.Enter()
		defer race.Leave()
	}
	s := span.Lookup(p)
	if s == nil || atomic.LoadUintptr(&s.Chunk) != 0 {
		return false
	}
	kind := s.LoadTag() - h.id<<span.KindBits
	switch {
	case kind == span.KindLarge:
		return h.freeLarge(s, p)
	case kind == span.KindGuarded:
		return h.freeGuarded(op, s, p)
	case kind >= sizeclass.Count:
		return h.freeSampled(s, p)
	}
	c := uint8(kind)
	cl := &h.classes[c]
	if sizeclass.Classes[c].Magazine == 0 {
		return cl.putOne(h, s, p)
	}
	k := h.hold(local)
	if k == nil {
		h.letGo(local, k)
		h.addCache()
		return cl.putOne(h, s, p)
	}
	over := k.makeRoom(c)
	freed := k.free(s, p)
	h.letGo(local, k)
	if over.list != 0 {
		cl.put(h, c, over)
	}
	return freed
}
