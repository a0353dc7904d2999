package heap

import (
	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// putOne takes back the block at p, which is not in a cache; s is the record of its
// unit. It returns false, and changes nothing, if p is no live block of class c:
// another goroutine may have freed it, and its span, since the caller read the
// record.
//
//go:norace
func (cl *class) putOne(h *Heap, s *span.Span, p uintptr) bool {
	cl.mu.Lock()
	// Under the lock no span leaves the class, so if the tag is that of the class
	// the memory of the block is committed.
	if h.closed.Load() || s.LoadTag() != cl.tag || !startsBlock(s, p) {
		cl.mu.Unlock()
		return false
	}
	if block.At(p).IsFree(p, cl.factor) {
		cl.mu.Unlock()
		return false
	}
	cl.out--
	released := cl.giveBack(h, s, p)
	cl.mu.Unlock()
	if released {
		span.Decay()
	}
	return true
}

// sort gives the blocks of b back to their spans. If one of them was written to,
// the blocks behind it are lost. Blocks of a closed heap are left alone.
//
// If two goroutines freed a block at the same time, neither saw the canary of the
// other, so two caches have the block in their lists, with one link. Here the
// lists part: no block is sorted twice, and no list gives more blocks than it was
// counted for. sort loses the rest of such a list.
//
//go:norace
func (cl *class) sort(h *Heap, b magazine) {
	cl.mu.Lock()
	if h.closed.Load() {
		cl.mu.Unlock()
		return
	}
	cl.out -= int64(b.n)
	released := cl.sortHeld(h, b)
	cl.mu.Unlock()
	if released {
		span.Decay()
	}
}

// sortHeld is sort under the lock, of blocks that out does not count. It reports whether a span went
// back to package span. The caller calls span.Decay then, without the lock.
//
//go:norace
func (cl *class) sortHeld(h *Heap, b magazine) (released bool) {
	p, left := b.list, b.n
	for p != 0 && left > 0 {
		s := span.Find(p)
		if s.LoadTag() != cl.tag { // its span went back after it was sorted by way of another list
			h.noteTwice(p)
			break
		}
		// A run is the first blocks of the list that are in s, have the canary of a block in a list
		// of a cache, and follow each other. They keep their links, except the last one. So for the
		// others the canary is computed once, and the record of the span is written to once for all
		// of them. Each has the canary of a sorted block before the next is checked, which may be
		// the same block.
		first, last, n := p, uintptr(0), 0
		for n < left && (p^first)>>span.UnitShift == 0 {
			b := block.At(p)
			link := b.Link
			if b.Canary != block.Checksum(p, link, cl.factor) {
				break
			}
			b.Canary ^= block.SortedBit
			last, p = p, block.NextOf(link)
			n++
		}
		if n == 0 {
			cl.noteNotCached(h, p)
			break
		}
		b := block.At(last)
		b.SetSorted(last, s.Free, block.StateOf(b.Link), cl.factor)
		s.Free = first
		s.NumFree += uint32(n)
		s.Runs++
		if s.NumFree >= s.Carved || !s.Listed {
			if cl.cameBack(h, s) {
				released = true
			}
		}
		left -= n
	}
	if (p != 0) != (left > 0) {
		h.noteTwice(b.list)
	}
	return released
}

// noteNotCached notes why the block at p, in a list of a cache, has not the canary of
// such a block: it was sorted by way of another list, or it was written to.
//
//go:norace
func (cl *class) noteNotCached(h *Heap, p uintptr) {
	if block.At(p).IsFree(p, cl.factor) {
		h.noteTwice(p)
	} else {
		h.noteDamage(p)
	}
}

// giveBack makes the block at p a free block of its span s. If all carved blocks
// of s are back then, s returns to package span, and giveBack returns true. The
// caller holds the lock.
//
//go:norace
func (cl *class) giveBack(h *Heap, s *span.Span, p uintptr) (released bool) {
	block.At(p).SetSorted(p, s.Free, 0, cl.factor)
	s.Free = p
	s.NumFree++
	s.Runs++
	if s.NumFree == s.Carved || !s.Listed {
		released = cl.cameBack(h, s)
	}
	return released
}

// cameBack is the end of giveBack for a span that is not in the list of the class,
// or whose blocks are all back. It returns true if the span went back, or is kept for a while.
//
//go:norace
func (cl *class) cameBack(h *Heap, s *span.Span) (released bool) {
	switch {
	case s.NumFree < s.Carved:
		cl.list(s)
		return false
	case s.NumFree == s.Carved && cl.isWhole(s):
		if !cl.keep(h, s) {
			cl.release(h, s)
		}
		return true
	}
	// A block was counted twice, or was written to after its free.
	cl.noteNotWhole(h, s)
	s.Free, s.NumFree = 0, 0
	if s.Listed && s.Carved == s.Blocks {
		cl.unlist(s)
	}
	return false
}

// isWhole reports whether each block of s is in the list of s.
//
// NumFree says so, but it counts a block twice that was freed twice and that the
// second goroutine has put on its list when the block was sorted already. If s then
// went to another heap, a block in use would be memory of that heap. And what is
// sorted no cache takes, although its list may have the block, too.
//
//go:norace
func (cl *class) isWhole(s *span.Span) bool {
	end := s.Base + uintptr(s.Carved)*s.Size
	for p := s.Base; p < end; p += s.Size {
		if !block.At(p).IsSorted(p, cl.factor) {
			return false
		}
	}
	return true
}

// noteNotWhole notes why s, whose blocks should all be in its list, is not whole:
// a block of the list was written to, or the list has a block twice.
//
//go:norace
func (cl *class) noteNotWhole(h *Heap, s *span.Span) {
	p := s.Free
	for n := s.NumFree; n > 0 && p != 0; n-- {
		if !block.At(p).IsSorted(p, cl.factor) {
			h.noteDamage(p)
			return
		}
		p = block.NextOf(block.At(p).Link)
	}
	h.noteTwice(s.Free)
}
