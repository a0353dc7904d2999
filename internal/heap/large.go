package heap

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// A large block has a span of its own: units of 64 KiB in a region, or, from a
// quarter of a region on, a mapping. Its size is counted in whole pages.
// Heap.large.mu is held while a large block is allocated, freed or resized, so none
// of this happens while the heap is destroyed.

// errTooLarge is the error for a size that no heap can ever hold.
var errTooLarge = errors.New("the size is larger than the address space")

// maxLarge is the largest size of a block. The map covers no larger one, rounding it
// up to regions does not overflow, and neither does the sum of the costs of some
// thousand requests at a time that are about to be refused: 256 TiB, and almost 2 GiB
// on 32-bit systems.
const maxLarge = min(^uintptr(0)>>1-4*span.RegionSize, 1<<(31+17*(bits.UintSize>>6)))

// tooLarge is the answer to a size above maxLarge: errLimit if the heap has a limit,
// which such a block exceeds as well.
func (h *Heap) tooLarge() error {
	if h.account.Limit() != 0 {
		return fmt.Errorf("%w: %w", errLimit, errTooLarge)
	}
	return noMemory(errTooLarge)
}

// unitsOf returns the number of units of a large block of size bytes.
func unitsOf(size uintptr) int { return int((size + span.UnitSize - 1) / span.UnitSize) }

// largeCost is the number of bytes that a large block of size bytes, a multiple of
// the page size, holds from the system, records included.
//
//go:norace
func largeCost(size uintptr) int64 {
	mustBePages("largeCost", size)
	return int64(size) + int64(unitsOf(size))*recordBytes
}

// mustBePages panics if size, of a large block, is no multiple of the page size.
//
//go:norace
func mustBePages(op string, size uintptr) {
	if size == 0 || size&(osmem.PageSize-1) != 0 {
		panicNotPages(op, size)
	}
}

// panicNotPages is apart from mustBePages so that the compiler can inline that.
//
//go:noinline
//go:norace
func panicNotPages(op string, size uintptr) { osmem.Must(false, op, "size", size) }

// allocLarge returns a block with a span of its own, and the state that a canary
// would give for it.
//
//go:norace
func (h *Heap) allocLarge(size, align uintptr) (p uintptr, was block.State, err error) {
	if size > maxLarge || align > maxLarge/2 {
		return 0, 0, h.tooLarge()
	}
	race.Enter()
	size = osmem.RoundPage(max(size, 1))
	cost := largeCost(size)
	fresh := false
	h.large.mu.Lock()
	if p = h.takeLarge(size, align); p == 0 {
		if h.mustConsolidate(cost, unitsOf(size), nil) {
			h.large.mu.Unlock()
			h.consolidate(nil, cost)
			h.large.mu.Lock()
		}
		p, fresh, err = h.newLarge(size, align, cost)
	}
	h.large.mu.Unlock()
	race.Leave()
	was = block.New
	if fresh {
		was |= block.Zeroed
	}
	return p, was, err
}

// newLarge is allocLarge of a multiple of the page size, under the lock. cost is largeCost(size).
//
//go:norace
func (h *Heap) newLarge(size, align uintptr, cost int64) (p uintptr, fresh bool, err error) {
	mustBePages("Heap.newLarge", size)
	if h.closed.Load() {
		return 0, false, errDestroyed
	}
	if !h.account.TryCharge(cost) {
		return 0, false, errLimit
	}
	if p, fresh, err = h.placeLarge(size, align, true); err != nil {
		h.account.Uncharge(cost)
	}
	return p, fresh, err
}

// placeLarge is newLarge of a block whose cost the account has. warm says that a mapping may
// have pages that had other contents.
//
//go:norace
func (h *Heap) placeLarge(size, align uintptr, warm bool) (p uintptr, fresh bool, err error) {
	var space uintptr
	filled := false
	switch own := size >= span.OwnMapping || align >= span.OwnMapping; {
	case own && warm:
		p, space, fresh, err = span.AllocWarmMapping(size, align)
	case own:
		fresh = true
		p, space, err = span.AllocMapping(size, align)
	default:
		p, fresh, filled, err = span.AllocFilled(unitsOf(size), max(1, int(align/span.UnitSize)), size)
	}
	if err != nil {
		return 0, false, noMemory(err)
	}
	switch {
	case !h.huge:
	case space != 0:
		osmem.HugePages(p, space)
	default:
		span.Huge(p, 0, unitsOf(size))
	}
	s := span.Find(p)
	s.ForgetChunk()
	s.Base, s.Filled = p, filled && h.checked != nil
	if space == 0 {
		h.regions.Add(p)
	}
	h.becomeLarge(s, size, space)
	h.large.mallocs++
	return p, fresh, nil
}

// setBodies fills in the records of units [from, end) of the block at p.
//
//go:norace
func (h *Heap) setBodies(p uintptr, from, end int) {
	for i := from; i < end; i++ {
		s := span.Find(p + uintptr(i)*span.UnitSize)
		s.ForgetChunk()
		s.Base = p
		s.StoreTag(h.id<<span.KindBits | span.KindBody)
	}
}

// clearBodies makes the same records those of no heap.
//
//go:norace
func clearBodies(p uintptr, from, end int) {
	for i := from; i < end; i++ {
		span.Find(p + uintptr(i)*span.UnitSize).StoreTag(0)
	}
}

// freeLarge frees the large block at p, whose record is s. It returns false, and
// changes nothing, if there is no such block any more.
//
//go:norace
func (h *Heap) freeLarge(s *span.Span, p uintptr) bool {
	race.Enter()
	h.large.mu.Lock()
	ok := !h.closed.Load() && s.LoadTag() == h.id<<span.KindBits|span.KindLarge && s.Base == p
	if ok && !h.keepLarge(s) {
		h.dropLarge(s)
	}
	h.large.mu.Unlock()
	span.Decay()
	race.Leave()
	return ok
}

// dropLarge gives a large block back. The caller holds the lock.
//
//go:norace
func (h *Heap) dropLarge(s *span.Span) {
	cost := largeCost(s.Size)
	h.unplaceLarge(s, true)
	h.account.Uncharge(cost)
}

// unplaceLarge is dropLarge of a block whose cost stays in the account. hasPages is false if
// its pages were moved to another block, or never touched.
//
//go:norace
func (h *Heap) unplaceLarge(s *span.Span, hasPages bool) {
	p, size, space := s.Base, s.Size, s.Space
	h.endLarge(s)
	switch {
	case space != 0 && hasPages:
		span.FreeWarmMapping(p, size, space)
	case space != 0:
		span.FreeMapping(p, space)
	case !hasPages:
		span.FreeEmpty(p, unitsOf(size))
	case s.Filled:
		span.FreeFilled(p, unitsOf(size))
	default:
		span.Free(p, unitsOf(size))
	}
}

// endLarge makes the units of a large block those of no heap, and no longer counts it.
//
//go:norace
func (h *Heap) endLarge(s *span.Span) {
	endLargeSample(s)
	h.large.blocks--
	h.large.bytes -= int64(s.Size)
	s.StoreTag(0)
	clearBodies(s.Base, 1, unitsOf(s.Size))
}
