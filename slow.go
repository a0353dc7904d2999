package cheap

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// check panics when h cannot be used.
func (h *Heap) check(op string) {
	if h.closed.Load() {
		misuse(op, 0, "the heap has been destroyed")
	}
	if h.id == 0 {
		misuse(op, 0, "the heap was not made by NewHeap")
	}
}

// noMemory wraps an error of the operating system.
func noMemory(err error) error { return fmt.Errorf("%w: %w", ErrNoMemory, err) }

// panicWritten panics because the free block at p bears no mark.
func panicWritten(p uintptr) {
	misuse("Heap", p, "the free block at %#x has been written to; somebody uses it after it was freed", p)
}

// TryMalloc is Malloc with an error instead of nil, which wraps [ErrLimit] or
// [ErrNoMemory].
func (h *Heap) TryMalloc(size int) (unsafe.Pointer, error) {
	p, _, err := h.malloc("Heap.TryMalloc", size, sizeclass.Quantum)
	return osmem.Pointer(p), err
}

// mallocSlow is Malloc where the cache has nothing.
//
//go:noinline
func (h *Heap) mallocSlow(size int) unsafe.Pointer {
	if uint(size) <= sizeclass.MaxSize && h.id != 0 {
		// Most of the time a batch is at hand.
		if p, was, err := h.mallocClass(sizeclass.Of(size)); err == nil {
			account.Notify()
			if instrumented {
				handedOut(p, was)
			}
			return osmem.Pointer(p)
		}
	}
	p, _, _ := h.malloc("Heap.Malloc", size, sizeclass.Quantum)
	return osmem.Pointer(p)
}

// malloc returns a block, and what its mark said of it.
//
//go:norace
func (h *Heap) malloc(op string, size, align int) (p uintptr, was uint64, err error) {
	h.check(op)
	if size < 0 {
		misuse(op, 0, "negative size %d", size)
	}
	small := size <= sizeclass.MaxSize
	var c uint8
	if small {
		c, small = alignedClass(size, align)
	}
	for attempt := 0; ; attempt++ {
		if small {
			p, was, err = h.mallocClass(c)
		} else {
			p, was, err = h.mallocLarge(uintptr(size), uintptr(align))
		}
		if err == nil || errors.Is(err, errTooLarge) {
			break
		}
		h.check(op) // it may have been destroyed meanwhile
		if attempt > 0 {
			// See whether a collection helps, where package pace may cause one.
			if why := account.Reclaim(int64(size), attempt-1); why == account.ErrUnpaced {
				break
			} else if why != nil {
				err = fmt.Errorf("%w: %w", err, why)
				break
			}
		}
		// Give back what is idle, and try once more.
		if written := h.reclaim(); written != 0 {
			panicWritten(written)
		}
	}
	account.Notify()
	if instrumented && p != 0 {
		handedOut(p, was)
	}
	return p, was, err
}

// alignedClass returns the smallest class whose blocks have size bytes or more
// and lie at multiples of align, if there is one. Spans are aligned to more
// than any block, so these are the classes whose size is a multiple.
func alignedClass(size, align int) (uint8, bool) {
	for c := int(sizeclass.Of(size)); c < sizeclass.Count; c++ {
		if sizeclass.Classes[c].Size%uint32(min(align, math.MaxInt32)) == 0 {
			return uint8(c), true
		}
	}
	return 0, false
}

// mallocClass returns a block of class c.
//
//go:norace
func (h *Heap) mallocClass(c uint8) (p uintptr, was uint64, err error) {
	if race.On {
		race.Enter()
		defer race.Leave()
	}
	want := 1
	s := h.caches.Pin()
	if s != 0 {
		e := cacheAt(s).class(c)
		want = max(1, grown(c, int(e.batch)))
		p, was, written, lost := e.popOrSpare()
		h.caches.Unpin(s)
		if written != 0 {
			h.lose(c, lost)
			panicWritten(written)
		}
		if p != 0 {
			return p, was, nil
		}
	} else {
		h.caches.Unpin(s)
		h.addCache()
	}
	p, was, list, n, err := h.classes[c].get(h, c, want, false)
	if err == errSettle {
		if written := h.settle(nil); written != 0 {
			panicWritten(written)
		}
		p, was, list, n, err = h.classes[c].get(h, c, want, true)
	}
	if err != nil {
		if w, ok := err.(writtenError); ok {
			panicWritten(uintptr(w))
		}
		return 0, 0, err
	}
	if n > 0 {
		s := h.caches.Pin()
		placed := s != 0 && cacheAt(s).class(c).fill(list, n, want)
		h.caches.Unpin(s)
		if !placed {
			h.classes[c].sort(h, list, n) // nobody had them in hand meanwhile
		}
	}
	h.afterGrowth()
	return p, was, nil
}

// afterGrowth does what has to be done, with no lock held, when memory has been
// taken from the system.
func (h *Heap) afterGrowth() {
	if !h.grew.Load() || !h.grew.Swap(false) {
		return
	}
	h.dropIdle()
}

// lose counts n blocks of a class as gone that were free in a cache.
//
//go:norace
func (h *Heap) lose(c uint8, n int) {
	cl := &h.classes[c]
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.out -= int64(n)
}

// popOrSpare is pop that makes the spare batch the list where the list is used
// up, and drops a list whose first block has been written to. It returns the
// address of that and how many are lost.
//
//go:norace
func (c *cacheClass) popOrSpare() (p uintptr, was uint64, written uintptr, lost int) {
	if c.head == 0 {
		if c.spare == 0 {
			return 0, 0, 0, 0
		}
		c.head, c.spare = c.spare, 0
		c.setLength(int(c.numSpare))
	}
	b := blockAt(c.head)
	was = b.odd(c.head, b.next)
	if p = c.pop(); p == 0 {
		written, lost, c.head = c.head, c.length(), 0
		c.setLength(0)
		return 0, 0, written, lost
	}
	return p, was, 0, 0
}

// fill makes a list of n blocks the list of c, if that is empty, and batch the
// length that it may have.
//
//go:norace
func (c *cacheClass) fill(list uintptr, n, batch int) bool {
	if c.head != 0 {
		return false
	}
	c.head = list
	c.setLength(n)
	c.batch = uint64(max(batch, n))
	return true
}

// freeSlow is Free where the cache has no room, or there is none, or something
// is wrong.
//
//go:noinline
//go:norace
func (h *Heap) freeSlow(op string, p uintptr) {
	if p == 0 {
		return
	}
	if race.On {
		race.Enter()
		defer race.Leave()
	}
	for {
		h.check(op)
		s := h.mustOwn(op, p)
		tag := s.LoadTag()
		if tag&span.KindMask == span.KindLarge {
			if h.freeLarge(p) {
				return
			}
			continue // mustOwn will say what is wrong
		}
		c := uint8(tag)
		if sizeclass.Classes[c].Batch == 0 {
			if h.classes[c].putOne(h, p) {
				return
			}
			continue
		}
		slot := h.caches.Pin()
		if slot == 0 {
			h.caches.Unpin(slot)
			h.addCache()
			if h.classes[c].putOne(h, p) {
				return
			}
			continue
		}
		k := cacheAt(slot)
		over := k.class(c).makeRoom(c)
		done := k.free(p)
		h.caches.Unpin(slot)
		var written uintptr
		if over.n != 0 {
			written = h.classes[c].put(h, over)
		}
		if written != 0 {
			panicWritten(written)
		}
		if done {
			return
		}
	}
}

// makeRoom makes sure that the list of a class has room, and returns a batch that
// there is no place for any more.
//
//go:norace
func (c *cacheClass) makeRoom(class uint8) (over batch) {
	if c.head != 0 && c.length() < int(c.batch) {
		return batch{}
	}
	if c.head != 0 {
		if c.spare != 0 {
			over = batch{c.spare, int(c.numSpare)}
		}
		c.spare, c.numSpare, c.head = c.head, uint64(c.length()), 0
	}
	c.setLength(0)
	c.batch = uint64(grown(class, int(c.batch)))
	return over
}
