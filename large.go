package cheap

import (
	"errors"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/span"
)

// A large block is a span of its own: units of 64 KiB in a region, or from a
// quarter of a region on a mapping. It counts for the pages that it reaches
// into. Heap.large.mu is held while one comes, goes or changes its size, so
// that none of this runs while the heap is destroyed.

// errTooLarge says that no heap could ever hold a block of that size.
var errTooLarge = errors.New("the size is larger than the address space")

// maxLarge keeps sizes far enough below the end of the address space that
// rounding them up cannot overflow.
const maxLarge = ^uintptr(0)>>1 - 4*span.RegionSize

// unitsOf returns how many units a large block of size bytes takes.
func unitsOf(size uintptr) int { return int((size + span.UnitSize - 1) / span.UnitSize) }

// largeCost is what a large block of size bytes, a multiple of the page size,
// holds from the system, records included.
func largeCost(size uintptr) int64 { return int64(size) + int64(unitsOf(size))*recordBytes }

// mallocLarge returns a block with a span of its own, and what a mark would say
// of it.
//
//go:norace
func (h *Heap) mallocLarge(size, align uintptr) (p uintptr, was uint64, err error) {
	if size > maxLarge || align > maxLarge/2 {
		return 0, 0, noMemory(errTooLarge)
	}
	if race.On {
		race.Enter()
		defer race.Leave()
	}
	size = osmem.RoundPage(max(size, 1))
	if h.unsettled(largeCost(size), unitsOf(size)) {
		if written := h.settle(nil); written != 0 {
			panicWritten(written)
		}
	}
	h.large.mu.Lock()
	p, fresh, err := h.newLarge(size, align)
	h.large.mu.Unlock()
	h.afterGrowth()
	was = carved
	if fresh {
		was |= zeroed
	}
	return p, was, err
}

// newLarge is mallocLarge of a multiple of the page size, under the lock.
//
//go:norace
func (h *Heap) newLarge(size, align uintptr) (p uintptr, fresh bool, err error) {
	if h.closed.Load() {
		return 0, false, ErrDestroyed
	}
	cost := largeCost(size)
	if !h.account.Take(cost, h.limit) {
		return 0, false, ErrLimit
	}
	var space uintptr
	if size >= span.OwnMapping || align >= span.OwnMapping {
		fresh = true
		p, space, err = span.AllocMapping(size, align)
	} else {
		p, fresh, err = span.Alloc(unitsOf(size), max(1, int(align/span.UnitSize)), size)
	}
	if err != nil {
		h.account.Give(cost)
		return 0, false, noMemory(err)
	}
	h.enterBodies(p, 1, unitsOf(size))
	s := span.Find(p)
	s.Base, s.Space = p, space
	atomic.StoreUintptr(&s.Size, size)
	s.StoreTag(h.id<<span.KindBits | span.KindLarge)
	h.large.blocks.Add(1)
	h.large.mallocs.Add(1)
	h.large.bytes.Add(int64(size))
	h.grew.Store(true)
	return p, fresh, nil
}

// enterBodies fills in the records of the units from to end of the block at p.
//
//go:norace
func (h *Heap) enterBodies(p uintptr, from, end int) {
	for i := from; i < end; i++ {
		s := span.Find(p + uintptr(i)*span.UnitSize)
		s.Base = p
		s.StoreTag(h.id<<span.KindBits | span.KindBody)
	}
}

// leaveBodies makes the same records nobody's.
//
//go:norace
func leaveBodies(p uintptr, from, end int) {
	for i := from; i < end; i++ {
		span.Find(p + uintptr(i)*span.UnitSize).StoreTag(0)
	}
}

// freeLarge frees the large block at p. It reports false, with nothing changed,
// where there is none any more.
//
//go:norace
func (h *Heap) freeLarge(p uintptr) bool {
	h.large.mu.Lock()
	s := span.Find(p)
	ok := !h.closed.Load() && s.LoadTag() == h.id<<span.KindBits|span.KindLarge && s.Base == p
	if ok {
		h.dropLarge(s)
	}
	h.large.mu.Unlock()
	span.Decay()
	return ok
}

// dropLarge gives a large block back. The caller holds the lock.
//
//go:norace
func (h *Heap) dropLarge(s *span.Span) {
	p, size, space := s.Base, s.Size, s.Space
	h.large.blocks.Add(-1)
	h.large.bytes.Add(-int64(size))
	s.StoreTag(0)
	leaveBodies(p, 1, unitsOf(size))
	if space != 0 {
		span.FreeMapping(p, space)
	} else {
		span.Free(p, unitsOf(size))
	}
	h.account.Give(largeCost(size))
}

// resizeLarge makes the large block at p one of newSize bytes, a multiple of
// the page size, and returns where it is then: at p if the memory behind it
// allows, or, without its contents being copied, in another mapping. It returns
// 0, with nothing changed, where neither can be.
//
//go:norace
func (h *Heap) resizeLarge(p, newSize uintptr) uintptr {
	if newSize > maxLarge {
		return 0
	}
	if race.On {
		race.Enter()
		defer race.Leave()
	}
	defer h.afterGrowth()
	defer span.Decay() // units may have come free
	h.large.mu.Lock()
	defer h.large.mu.Unlock()
	s := span.Find(p)
	if h.closed.Load() || s.LoadTag() != h.id<<span.KindBits|span.KindLarge {
		return 0 // freed in the meantime; the caller will say so
	}
	if newSize <= s.Size {
		h.shrinkLarge(s, newSize)
		return p
	}
	if h.growLarge(s, newSize) {
		return p
	}
	if s.Space != 0 && osmem.CanRemap {
		return h.moveLarge(s, newSize)
	}
	return 0
}

//go:norace
func (h *Heap) shrinkLarge(s *span.Span, newSize uintptr) {
	p, size := s.Base, s.Size
	from, to := unitsOf(size), unitsOf(newSize)
	leaveBodies(p, to, from)
	if s.Space != 0 {
		span.ShrinkMapping(p, size, newSize)
	} else if to < from {
		span.Free(p+uintptr(to)*span.UnitSize, from-to)
	}
	h.resized(s, newSize)
	h.account.Give(largeCost(size) - largeCost(newSize))
}

//go:norace
func (h *Heap) growLarge(s *span.Span, newSize uintptr) bool {
	p, size := s.Base, s.Size
	from, to := unitsOf(size), unitsOf(newSize)
	cost := largeCost(newSize) - largeCost(size)
	if !h.account.Take(cost, h.limit) {
		return false
	}
	ok := false
	switch {
	case s.Space != 0:
		ok = span.GrowMapping(p, size, newSize, s.Space)
	case newSize >= span.OwnMapping:
	case to == from:
		ok = span.Commit(p, newSize) == nil
	default:
		ok = span.Extend(p, from, to-from, newSize)
	}
	if !ok {
		h.account.Give(cost)
		return false
	}
	h.enterBodies(p, from, to)
	h.resized(s, newSize)
	h.grew.Store(true)
	return true
}

// resized writes down the new size of a large block.
//
//go:norace
func (h *Heap) resized(s *span.Span, newSize uintptr) {
	h.large.bytes.Add(int64(newSize) - int64(s.Size))
	atomic.StoreUintptr(&s.Size, newSize)
}

// moveLarge moves the pages of a block that has a mapping to a larger one.
//
//go:norace
func (h *Heap) moveLarge(s *span.Span, newSize uintptr) uintptr {
	to, _, err := h.newLarge(newSize, 1)
	if err != nil {
		return 0
	}
	if !span.MoveMapping(s.Base, to, s.Size) {
		h.dropLarge(span.Find(to))
		return 0
	}
	h.dropLarge(s)
	return to
}
