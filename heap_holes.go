package cheap

import (
	"math/bits"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// A hole is a page of a span on which no block in use lies, and whose memory the system has
// back. Blocks that begin in a hole are in no list, and have no mark: a wrong Free could take
// them for blocks in use. So Carved is 0 in the record of a span with holes, and no fast path
// takes its blocks. They are freed by way of the class, which knows the holes.
//
// The lock of the class is held where holes are made and filled. Without it a goroutine may
// look at Carved, Hidden and Holes, in this order: that is the reverse of the order in which
// they are written.

// mayHaveHoles says whether spans get holes. With checks free blocks are filled, and the
// bytes of all of them looked at.
const mayHaveHoles = !checking && !osmem.GoBacked && !osmem.DecommitRevokes

const (
	// holesFrom is the least size of blocks, in bytes, whose spans get holes. Of smaller
	// blocks a page has so many that one of them is in use.
	holesFrom = 128

	// mostHoledSpans is in how many spans of a class holes are looked for at once, with the
	// lock held. It takes a few microseconds for each.
	mostHoledSpans = 64
)

// carvedOf returns how many blocks of s have been carved, whether s has holes or not.
//
//go:norace
func carvedOf(s *span.Span) uint32 {
	if n := atomic.LoadUint32(&s.Carved); n != 0 {
		return n
	}
	return atomic.LoadUint32(&s.Hidden)
}

// pageOf returns the number of the page that p lies on, in its unit.
//
//go:norace
func pageOf(p uintptr) uint32 { return uint32(p % span.UnitSize / osmem.PageSize) }

// inHole reports whether p, in the unit of s, lies in a hole.
//
//go:norace
func inHole(s *span.Span, p uintptr) bool { return atomic.LoadUint32(&s.Holes)>>pageOf(p)&1 != 0 }

// startsVisible is startsBlock for a span that may have holes. A block that begins in a hole
// is free.
//
//go:norace
func startsVisible(s *span.Span, p uintptr) bool {
	return sizeclass.Index(uint32(p)%span.UnitSize, s.Inverse, uint8(s.Shift)) < carvedOf(s) && !inHole(s, p)
}

// makeHoles makes holes in spans of which at least a half is free. A heap with a CheckLevel
// looks at all its blocks, so it has none.
//
//go:norace
func (h *Heap) makeHoles() {
	if h.checked != nil {
		return
	}
	for c := range h.classes {
		if size := sizeclass.Classes[c].Size; mayHaveHoles && holesFrom <= size && size < releasePagesFrom {
			h.classes[c].makeHoles(h)
		}
	}
}

// makeHoles is the part of Heap.makeHoles for a class.
//
//go:norace
func (cl *class) makeHoles(h *Heap) {
	if atomic.LoadUintptr(&cl.spans) == 0 {
		return
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	most := mostHoledSpans
	for a := cl.spans; a != 0 && most > 0; a = span.At(a).Next {
		s := span.At(a)
		if s.NumFree == uint32(s.Tried) || uintptr(s.NumFree)*s.Size < osmem.PageSize ||
			2*(s.NumFree+uint32(s.HoleBlocks)) < carvedOf(s) {
			continue
		}
		most--
		if holes := cl.findHoles(s); holes != 0 {
			cl.dig(h, s, holes)
		}
		s.Tried = uint16(s.NumFree)
	}
}

// blockSet has a bit for each block of a span that may have holes.
type blockSet [span.UnitSize / holesFrom / 64]uint64

//go:norace
func (b *blockSet) add(i uint32) { b[i/64] |= 1 << (i % 64) }

//go:norace
func (b *blockSet) has(i uint32) bool { return b[i/64]>>(i%64)&1 != 0 }

// findHoles returns a bit for each page of s that can become a hole: no block lies on it
// that is in use or in a cache. If a block in the list of s was written to, there are none;
// the goroutine that takes the block reports it.
//
//go:norace
func (cl *class) findHoles(s *span.Span) (holes uint32) {
	var free blockSet
	n := s.NumFree
	for p := s.Free; p != 0; p = nextOf(blockAt(p).link) {
		if n == 0 || !blockAt(p).isSorted(p, cl.factor) {
			return 0
		}
		n--
		free.add(uint32(p-s.Base) / uint32(s.Size))
	}
	if n != 0 {
		return 0
	}
	size, page, carved := uint32(s.Size), uint32(osmem.PageSize), carvedOf(s)
	for j := uint32(0); j*page < carved*size; j++ {
		if s.Holes>>j&1 != 0 {
			continue
		}
		i, last := j*page/size, ((j+1)*page-1)/size
		for i <= last && (i >= carved || free.has(i) || inHole(s, s.Base+uintptr(i*size))) {
			i++
		}
		if i > last {
			holes |= 1 << j
		}
	}
	return holes
}

// dig makes holes of pages of s, which findHoles has found.
//
//go:norace
func (cl *class) dig(h *Heap, s *span.Span, holes uint32) {
	if n := s.Carved; n != 0 {
		atomic.StoreUint32(&s.Hidden, n)
		atomic.StoreUint32(&s.Carved, 0)
	}
	head, last := uintptr(0), uintptr(0)
	for p := s.Free; p != 0; {
		b := blockAt(p)
		next := nextOf(b.link)
		switch {
		case holes>>pageOf(p)&1 != 0:
			s.NumFree--
			s.HoleBlocks++
		case last == 0:
			head, last = p, p
		default:
			l := blockAt(last)
			l.setSorted(last, p, stateOf(l.link), cl.factor)
			last = p
		}
		p = next
	}
	if last != 0 {
		l := blockAt(last)
		l.setSorted(last, 0, stateOf(l.link), cl.factor)
	}
	s.Free = head
	// Before the marks are gone: from here on judge takes the blocks for free ones.
	atomic.StoreUint32(&s.Holes, s.Holes|holes)
	h.holes.Add(int64(bits.OnesCount32(holes)))
	for holes != 0 {
		first := bits.TrailingZeros32(holes)
		n := bits.TrailingZeros32(^(holes >> first))
		osmem.Decommit(s.Base+uintptr(first)*osmem.PageSize, uintptr(n)*osmem.PageSize)
		holes &^= (1<<n - 1) << first
	}
}

// fillHole puts the blocks of the first hole of s back into its list. A block that is not
// zero was written to after it was freed, and is lost.
//
//go:norace
func (cl *class) fillHole(h *Heap, s *span.Span) {
	j := bits.TrailingZeros32(s.Holes)
	start := uintptr(j) * osmem.PageSize
	first := (start + s.Size - 1) / s.Size
	end := min((start+osmem.PageSize+s.Size-1)/s.Size, uintptr(carvedOf(s)))
	for i := end; i > first; i-- {
		p := s.Base + (i-1)*s.Size
		b := blockAt(p)
		s.HoleBlocks--
		if *b != (block{}) {
			h.noteDamage(p)
			continue
		}
		b.setSorted(p, s.Free, 0, cl.factor)
		s.Free = p
		s.NumFree++
	}
	h.holes.Add(-1)
	s.Tried = 0
	// Not before the blocks have their marks, as in carve.
	atomic.StoreUint32(&s.Holes, s.Holes&^(1<<j))
	if s.Holes == 0 {
		atomic.StoreUint32(&s.Carved, s.Hidden)
	}
}

// forgetHoles makes s, which goes back to package span, a span without holes.
//
//go:norace
func forgetHoles(s *span.Span) {
	atomic.StoreUint32(&s.Hidden, 0)
	atomic.StoreUint32(&s.Holes, 0)
	s.HoleBlocks, s.Tried = 0, 0
}
