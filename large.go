package cheap

import (
	"errors"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/span"
)

// A large block is a span of its own: units of 64 KiB, or from a quarter of a
// region on a mapping. It counts for the pages that it reaches into.

// errTooLarge says that no heap could ever hold a block of that size.
var errTooLarge = errors.New("the size is larger than the address space")

// maxLarge keeps sizes far enough below the end of the address space that
// rounding them up cannot overflow.
const maxLarge = ^uintptr(0)>>1 - 4*span.RegionSize

// Where a large block lies is kept in its record's Blocks.
const (
	inRegion  = 0
	inMapping = 1
)

// unitsOf returns how many units a large block of size bytes takes.
func unitsOf(size uintptr) int { return int((size + span.UnitSize - 1) / span.UnitSize) }

// largeCost is what a large block of size bytes, a multiple of the page size,
// holds from the system, records included.
func largeCost(size uintptr) int64 { return int64(size) + int64(unitsOf(size))*recordBytes }

// mallocLarge returns a block with a span of its own, and whether it is zero.
//
//go:norace
func (h *Heap) mallocLarge(size, align uintptr) (p uintptr, fresh bool, err error) {
	if size > maxLarge || align > maxLarge/2 {
		return 0, false, noMemory(errTooLarge)
	}
	size = osmem.RoundPage(max(size, 1))
	cost := largeCost(size)
	if !h.account.Take(cost, h.limit) {
		return 0, false, ErrLimit
	}
	where := uint32(inRegion)
	if size >= span.OwnMapping || align >= span.OwnMapping {
		where, fresh = inMapping, true
		p, err = span.AllocMapping(size, align)
	} else {
		p, fresh, err = span.Alloc(unitsOf(size), max(1, int(align/span.UnitSize)), size)
	}
	if err != nil {
		h.account.Give(cost)
		return 0, false, noMemory(err)
	}
	h.enterLarge(p, size, where)
	h.large.blocks.Add(1)
	h.large.mallocs.Add(1)
	h.large.bytes.Add(int64(size))
	return p, fresh, nil
}

// enterLarge fills in the records of a large block.
//
//go:norace
func (h *Heap) enterLarge(p, size uintptr, where uint32) {
	h.enterBodies(p, 1, unitsOf(size))
	s := span.Find(p)
	s.Base, s.Blocks = p, where
	atomic.StoreUintptr(&s.Size, size)
	s.StoreTag(h.id<<span.KindBits | span.KindLarge)
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

// freeLarge frees the large block whose record s is.
//
//go:norace
func (h *Heap) freeLarge(op string, s *span.Span) {
	p, size, where := s.Base, s.Size, s.Blocks
	if !s.SwapTag(h.id<<span.KindBits|span.KindLarge, 0) {
		h.mustOwn(op, p) // somebody else was faster
		return
	}
	h.large.blocks.Add(-1)
	h.large.bytes.Add(-int64(size))
	h.dropLarge(p, size, where)
}

// dropLarge gives the memory of a large block back whose first record is
// nobody's already.
//
//go:norace
func (h *Heap) dropLarge(p, size uintptr, where uint32) {
	leaveBodies(p, 1, unitsOf(size))
	if where == inMapping {
		span.FreeMapping(p, size)
	} else {
		span.Free(p, unitsOf(size))
	}
	h.account.Give(largeCost(size))
}

// resizeLarge makes the large block of s one of newSize bytes, a multiple of
// the page size, where it is, and reports whether it could.
//
//go:norace
func (h *Heap) resizeLarge(s *span.Span, newSize uintptr) bool {
	p, size := s.Base, s.Size
	from, to := unitsOf(size), unitsOf(newSize)
	if newSize <= size {
		if s.Blocks == inMapping {
			if newSize < span.OwnMapping/2 {
				return false // a mapping is too much for it
			}
			if roundRegion(newSize) != roundRegion(size) {
				return false
			}
			span.ShrinkMapping(p, size, newSize)
			leaveBodies(p, to, from)
		} else if to < from {
			leaveBodies(p, to, from)
			span.Free(p+uintptr(to)*span.UnitSize, from-to)
		}
		h.resized(s, newSize)
		h.account.Give(largeCost(size) - largeCost(newSize))
		return true
	}
	if newSize > maxLarge {
		return false
	}
	cost := largeCost(newSize) - largeCost(size)
	if !h.account.Take(cost, h.limit) {
		return false
	}
	ok := false
	switch {
	case s.Blocks == inMapping:
		ok = span.GrowMapping(p, size, newSize)
	case newSize >= span.OwnMapping:
	case to == from:
		ok = span.Commit(p, newSize) == nil
	default:
		ok, _ = span.Extend(p, from, to-from, newSize)
	}
	if !ok {
		h.account.Give(cost)
		return false
	}
	h.enterBodies(p, from, to)
	h.resized(s, newSize)
	return true
}

func roundRegion(n uintptr) uintptr { return (n + span.RegionSize - 1) &^ (span.RegionSize - 1) }

// resized writes down the new size of a large block.
//
//go:norace
func (h *Heap) resized(s *span.Span, newSize uintptr) {
	h.large.bytes.Add(int64(newSize) - int64(s.Size))
	atomic.StoreUintptr(&s.Size, newSize)
}

// moveLarge moves the contents of the large block of s, which has a mapping, to
// a new and larger mapping without copying, and returns where it is then, or 0.
//
//go:norace
func (h *Heap) moveLarge(s *span.Span, newSize uintptr) uintptr {
	if !osmem.CanRemap || s.Blocks != inMapping || newSize <= s.Size {
		return 0
	}
	from, size := s.Base, s.Size
	to, _, err := h.mallocLarge(newSize, 1)
	if err != nil {
		return 0
	}
	if !span.MoveMapping(from, to, size) {
		h.freeLarge("Heap.Realloc", span.Find(to))
		return 0
	}
	h.freeLarge("Heap.Realloc", s)
	return to
}
