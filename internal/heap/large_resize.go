package heap

import (
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// resizeLarge resizes the block at p, whose record is s, to newSize bytes, a multiple
// of the page size. It returns p if the memory behind the block allows that, or the address
// of another mapping that the pages of the block were moved to. Otherwise it changes nothing,
// and returns 0. short says that there is no memory for a copy. If it is false, resizeLarge
// also returns 0 where a copy is faster. The old or the new size is that of a large block.
//
//go:norace
func (h *Heap) resizeLarge(s *span.Span, p, newSize uintptr, short bool) (to uintptr) {
	mustBePages("Heap.resizeLarge", newSize)
	race.Enter()
	h.large.mu.Lock()
	kind := s.LoadTag() - h.id<<span.KindBits
	switch large := kind == span.KindLarge; {
	case large && newSize <= s.Size:
		h.shrinkLarge(s, newSize)
		to = p
	case h.grow(s, p, kind, newSize), h.dropSpares() && h.grow(s, p, kind, newSize): // one may lie behind the block
		to = p
	case large && newSize >= span.OwnMapping && (s.Space != 0 && osmem.CanMove() || s.Space == 0 && mustMove(s, short)):
		// A mapping that was shrunk may grow to a size for which placeLarge takes units. Their pages
		// are the region's.
		to = h.moveLarge(s, newSize)
	}
	h.large.mu.Unlock()
	span.Decay() // units may be free now
	race.Leave()
	return to
}

// grow extends a block of that kind in place, if it is large or alone in its span, and if that is possible.
//
//go:norace
func (h *Heap) grow(s *span.Span, p, kind, newSize uintptr) bool {
	if kind == span.KindLarge {
		return h.growLarge(s, newSize)
	}
	return isAlone(kind) && h.growAlone(s, p, uint8(kind), newSize)
}

// shrinkLarge gives the end of a large block back.
//
//go:norace
func (h *Heap) shrinkLarge(s *span.Span, newSize uintptr) {
	p, size := s.Base, s.Size
	from, to := unitsOf(size), unitsOf(newSize)
	clearBodies(p, to, from)
	if s.Space != 0 {
		span.ShrinkMapping(p, size, newSize)
	} else {
		span.Shrink(p, from, newSize)
	}
	h.resized(s, newSize)
	h.account.Uncharge(largeCost(size) - largeCost(newSize))
}

// growLarge extends a large block in place, if that is possible.
//
//go:norace
func (h *Heap) growLarge(s *span.Span, newSize uintptr) bool {
	p, size := s.Base, s.Size
	from, to := unitsOf(size), unitsOf(newSize)
	cost := largeCost(newSize) - largeCost(size)
	if !h.account.TryCharge(cost) {
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
		h.account.Uncharge(cost)
		return false
	}
	if h.huge && s.Space == 0 && to > from {
		span.Huge(p, from, to)
	}
	h.setBodies(p, from, to)
	h.resized(s, newSize)
	return true
}

// growAlone makes the block at p, of class c and alone in its span s, a large block of newSize
// bytes, if the units behind it are free. The caller holds the lock of the large blocks.
//
//go:norace
func (h *Heap) growAlone(s *span.Span, p uintptr, c uint8, newSize uintptr) bool {
	cl := &h.classes[c]
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if !h.takeAlone(s, p, c) {
		return false
	}
	if !h.extendAlone(p, c, newSize) {
		atomic.StoreUint32(&s.Carved, 1)
		return false
	}
	cl.out--
	s.Filled = false
	h.becomeLarge(s, newSize, 0)
	if h.huge {
		span.Huge(p, 1, unitsOf(newSize))
	}
	return true
}

// reclass gives the block at p, which is alone in its span s, the class to, whose blocks are alone too, and larger. It
// returns p, or 0 if another goroutine frees or resizes the block, or if there is no memory.
//
//go:norace
func (h *Heap) reclass(s *span.Span, p uintptr, to uint8) uintptr {
	kind := s.LoadTag() - h.id<<span.KindBits
	if !isAlone(kind) || uint8(kind) >= to {
		return 0 // freed, and used for something else
	}
	race.Enter()
	defer race.Leave()
	from := uint8(kind)
	h.classes[from].mu.Lock() // the smaller class first
	defer h.classes[from].mu.Unlock()
	h.classes[to].mu.Lock()
	defer h.classes[to].mu.Unlock()
	if !h.takeAlone(s, p, from) {
		return 0
	}
	defer atomic.StoreUint32(&s.Carved, 1)
	sc, cost := &sizeclass.Classes[to], spanCost(to)-spanCost(from)
	if !h.account.TryCharge(cost) {
		return 0
	}
	if span.Commit(s.Base, sc.SpanBytes()) != nil {
		h.account.Uncharge(cost)
		return 0
	}
	s.Inverse, s.Shift, s.Filled = sc.Inverse, uint32(sc.Shift), false
	atomic.StoreUintptr(&s.Size, uintptr(sc.Size))
	s.StoreTag(h.classes[to].tag)
	h.classes[from].out--
	h.classes[to].out++
	return p
}

// takeAlone takes the block at p, of class c and alone in its span s, from all that might free it. It returns false,
// and changes nothing, if it is not in use. The caller holds the lock of the class.
//
// From here on no cache takes the block from a Free that is called at the same time, by mistake. Else the block
// might be in use with another size, and in the list of a cache. A store of 1 to s.Carved gives it back.
//
//go:norace
func (h *Heap) takeAlone(s *span.Span, p uintptr, c uint8) bool {
	cl := &h.classes[c]
	if s.LoadTag() != cl.tag || s.Base != p || s.Listed || s.Carved != 1 {
		return false
	}
	atomic.StoreUint32(&s.Carved, 0)
	if block.At(p).IsFree(p, cl.factor) {
		atomic.StoreUint32(&s.Carved, 1)
		return false
	}
	return true
}

// extendAlone takes the units behind the block at p, of class c, for newSize bytes in all, and charges
// the account for them. It reports whether it could.
//
//go:norace
func (h *Heap) extendAlone(p uintptr, c uint8, newSize uintptr) bool {
	cost := largeCost(newSize) - spanCost(c)
	if newSize >= span.OwnMapping || !h.account.TryCharge(cost) {
		return false
	}
	if !span.Extend(p, 1, unitsOf(newSize)-1, newSize) {
		h.account.Uncharge(cost)
		return false
	}
	return true
}

// becomeLarge makes s the record of a large block in use, and counts it. space is the size of its
// mapping, or 0.
//
//go:norace
func (h *Heap) becomeLarge(s *span.Span, size, space uintptr) {
	h.setBodies(s.Base, 1, unitsOf(size))
	s.Space, s.Sampled = space, false
	s.Size = size
	s.StoreTag(h.id<<span.KindBits | span.KindLarge)
	h.large.blocks++
	h.large.bytes += int64(size)
}

// resized records the new size of a large block.
//
//go:norace
func (h *Heap) resized(s *span.Span, newSize uintptr) {
	h.large.bytes += int64(newSize) - int64(s.Size)
	atomic.StoreUintptr(&s.Size, newSize)
}

// movedLeast is the size in bytes from which the pages of a block in units may move to a mapping. A
// copy of a smaller one takes about as long.
const movedLeast = 1 << 20

// mustMove reports whether the pages of the block of s, which lies in units, are to move to a mapping.
// A copy is faster where most pages have memory: it is to warm pages, and leaves warm pages. So they
// move if few have, or if short says that there is no memory for a copy.
//
//go:norace
func mustMove(s *span.Span, short bool) bool {
	return s.Size >= movedLeast && span.Moves() &&
		(short || uintptr(osmem.Resident(s.Base, s.Size))*osmem.PageSize < s.Size/16)
}

// moveLarge moves the pages of a block to a larger mapping. The pages of the old size are
// there once at any time, so the account needs the difference only.
//
//go:norace
func (h *Heap) moveLarge(s *span.Span, newSize uintptr) uintptr {
	cost := largeCost(newSize) - largeCost(s.Size)
	if !h.account.TryCharge(cost) {
		return 0
	}
	to, _, err := h.placeLarge(newSize, 1, false)
	if err != nil {
		h.account.Uncharge(cost)
		return 0
	}
	move := span.MoveUnits
	if s.Space != 0 {
		move = span.MoveMapping
	}
	if !move(s.Base, to, s.Size) {
		h.unplaceLarge(span.Find(to), false)
		h.account.Uncharge(cost)
		return 0
	}
	h.unplaceLarge(s, false)
	return to
}
