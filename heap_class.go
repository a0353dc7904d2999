package cheap

import (
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// class is the part of a heap for one size class, beside the caches. All of it is
// under mu, except for tag and factor.
//
// Summed over the spans of the class, and as long as no free block was written
// to and none was freed twice at the same time:
//
//	carved blocks = NumFree of the spans + blocks in magazines + out
//	blocks in use = out − blocks in caches
type class struct {
	mu sync.Mutex

	tag    uintptr // of the class's spans; written once
	factor uint64  // factorOf(tag)

	// spans is the first of the spans that have blocks to give: blocks that
	// came back, or blocks that are still to be carved.
	spans uintptr

	depot // as caches gave them back, for the next cache that needs one

	out     int64  // blocks given to caches and callers, less those that came back
	mallocs uint64 // calls of Malloc that were served past a cache

	_ [48]byte // two classes do not share a cache line
}

// spanCost is the number of bytes that a span of class c holds from the system,
// record included.
func spanCost(c uint8) int64 {
	return int64(sizeclass.Classes[c].SpanBytes()) + recordBytes
}

// recordBytes is the metadata of a unit.
const recordBytes = 128

// get returns a block, what its canary said, and more blocks for a cache: about
// want in all. They are a magazine, blocks that came back to a span, blocks that it carves, or
// blocks of a new span. Where blocks were written to it loses them, and takes others.
//
//go:norace
func (cl *class) get(h *Heap, c uint8, want int) (p uintptr, was blockState, more magazine, err error) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if h.closed.Load() {
		return 0, 0, magazine{}, ErrDestroyed
	}
	for {
		var got magazine
		if cl.numFull > 0 {
			got = cl.takeFull(c)
		} else {
			if cl.spans == 0 {
				if err := cl.grow(h, c); err != nil {
					return 0, 0, magazine{}, err
				}
			}
			s := span.At(cl.spans)
			if s.NumFree > 0 {
				got = cl.takeFree(h, s, want)
			} else {
				got = cl.carve(h, s, want)
			}
			if s.NumFree == 0 && s.Carved == s.Blocks {
				cl.unlist(s)
			}
			if got.n == 0 {
				continue
			}
		}
		b := blockAt(got.list)
		if !b.isCached(got.list, cl.factor) {
			h.noteDamage(got.list)
			continue
		}
		cl.out += int64(got.n)
		cl.mallocs++
		b.canary = 0
		return got.list, stateOf(b.link), magazine{nextOf(b.link), got.n - 1}, nil
	}
}

// takeFree takes at most n of the blocks that came back to s. It takes none if
// one of them was written to, or is in use because it was freed twice; then all of
// them are lost, and with them the span, which never gets all its blocks back.
//
//go:norace
func (cl *class) takeFree(h *Heap, s *span.Span, n int) magazine {
	taken := magazine{list: s.Free}
	for p := s.Free; ; {
		b := blockAt(p)
		if !b.isSorted(p, cl.factor) {
			h.noteDamage(p)
			s.Free, s.NumFree = 0, 0
			return magazine{}
		}
		b.canary ^= sortedBit
		next := nextOf(b.link)
		taken.n++
		if next == 0 || taken.n == n {
			b.setCached(p, 0, stateOf(b.link), cl.factor)
			s.Free = next
			s.NumFree -= uint32(taken.n)
			if next == 0 && s.NumFree != 0 {
				h.noteTwice(taken.list)
				s.NumFree = 0
			}
			return taken
		}
		p = next
	}
}

// carve makes at most n new blocks of s, and none that begins behind the page
// that the first of them ends in, so that the heap touches no page before it
// needs it.
//
//go:norace
func (cl *class) carve(h *Heap, s *span.Span, n int) magazine {
	first := uintptr(s.Carved)
	start := s.Base + first*s.Size
	pageEnd := osmem.RoundPage(start + s.Size)
	made := int((pageEnd - start + s.Size - 1) / s.Size)
	made = min(made, n, int(s.Blocks-s.Carved))
	state := stateNew
	if s.Fresh {
		state |= stateZeroed
	}
	next := uintptr(0)
	for i := made - 1; i >= 0; i-- {
		p := start + uintptr(i)*s.Size
		blockAt(p).setCached(p, next, state, cl.factor)
		next = p
	}
	// Not before the blocks have their canaries: Free relies on it.
	atomic.StoreUint32(&s.Carved, s.Carved+uint32(made))
	return magazine{next, made}
}

// grow takes a span from package span. The caller holds the lock.
//
//go:norace
func (cl *class) grow(h *Heap, c uint8) error {
	cost := spanCost(c)
	if !h.account.TryCharge(cost) {
		return ErrLimit
	}
	sc := &sizeclass.Classes[c]
	base, fresh, filled, err := span.AllocCarved(sc.SpanBytes())
	if err != nil {
		h.account.Uncharge(cost)
		return noMemory(err)
	}
	if cl.tag&span.KindSampled != 0 && !fresh {
		h.sampled.Load().warm.Add(1)
	}
	s := span.Find(base)
	s.ForgetChunk()
	s.Size, s.Base = uintptr(sc.Size), base
	s.Inverse, s.Shift, s.Blocks = sc.Inverse, uint32(sc.Shift), sc.Blocks
	s.Free, s.NumFree, s.Fresh, s.Filled = 0, 0, fresh, filled && !fresh
	s.StoreTag(cl.tag)
	cl.list(s)
	h.grew.Store(true)
	return nil
}

// putOne takes back the block at p, which is not in a cache; s is the record of
// its unit. It returns false, and changes nothing, if p is no live block of
// class c: another goroutine may have freed it, and its span, since the caller
// looked.
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
	if blockAt(p).isFree(p, cl.factor) {
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
	released := false
	cl.mu.Lock()
	if h.closed.Load() {
		cl.mu.Unlock()
		return
	}
	cl.out -= int64(b.n)
	p, left := b.list, b.n
	for p != 0 && left > 0 {
		s := span.Find(p)
		if s.LoadTag() != cl.tag { // its span went back after it was sorted by way of another list
			h.noteTwice(p)
			break
		}
		// A run is the first blocks of the list that are in s, have the canary of a block in a list
		// of a cache, and follow each other. They keep their links, but for the last one. So for the
		// others the canary is computed once, and the record of the span is written to once for all
		// of them. Each has the canary of a sorted block before the next is looked at, which may be
		// the same.
		first, last, n := p, uintptr(0), 0
		for n < left && (p^first)>>span.UnitShift == 0 {
			b := blockAt(p)
			link := b.link
			if b.canary != checksum(p, link, cl.factor) {
				break
			}
			b.canary ^= sortedBit
			last, p = p, nextOf(link)
			n++
		}
		if n == 0 {
			cl.noteNotCached(h, p)
			break
		}
		b := blockAt(last)
		b.setSorted(last, s.Free, stateOf(b.link), cl.factor)
		s.Free = first
		s.NumFree += uint32(n)
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
	cl.mu.Unlock()
	if released {
		span.Decay()
	}
}

// noteNotCached notes why the block at p, in a list of a cache, has not the canary of
// such a block: it was sorted by way of another list, or it was written to.
//
//go:norace
func (cl *class) noteNotCached(h *Heap, p uintptr) {
	if blockAt(p).isFree(p, cl.factor) {
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
	blockAt(p).setSorted(p, s.Free, 0, cl.factor)
	s.Free = p
	s.NumFree++
	if s.NumFree == s.Carved || !s.Listed {
		released = cl.cameBack(h, s)
	}
	return released
}

// cameBack is the end of giveBack for a span that is not in the list of the class,
// or whose blocks are all back.
//
//go:norace
func (cl *class) cameBack(h *Heap, s *span.Span) (released bool) {
	switch {
	case s.NumFree < s.Carved:
		cl.list(s)
		return false
	case s.NumFree == s.Carved && cl.isWhole(s): // more than there are: one was counted twice
		cl.release(h, s)
		return true
	}
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
		if !blockAt(p).isSorted(p, cl.factor) {
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
		if !blockAt(p).isSorted(p, cl.factor) {
			h.noteDamage(p)
			return
		}
		p = nextOf(blockAt(p).link)
	}
	h.noteTwice(s.Free)
}

// lose takes n blocks that were free in a cache out of the counts.
//
//go:norace
func (cl *class) lose(n int) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.out -= int64(n)
}

// forgetAll drops all blocks of the class, whose heap is closed. A goroutine that
// waits for the lock sees that the heap is closed once it has the lock; a
// goroutine that had the lock before is done.
//
//go:norace
func (cl *class) forgetAll() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for cl.numFull > 0 {
		cl.takeFull(uint8(cl.tag))
	}
	cl.spans, cl.out = 0, 0
}

// releaseFreePages gives the memory of the class's free blocks back to the
// system, except for the page that begins each block. It is for classes whose
// blocks are pages long.
//
//go:norace
func (cl *class) releaseFreePages() {
	if atomic.LoadUintptr(&cl.spans) == 0 {
		return
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for a := cl.spans; a != 0; a = span.At(a).Next {
		s := span.At(a)
		p := s.Free
		for n := s.NumFree; n > 0 && p != 0; n-- {
			b := blockAt(p)
			if !b.isSorted(p, cl.factor) {
				return // the goroutine that takes the block reports the damage
			}
			next, was := nextOf(b.link), stateOf(b.link)
			if was&stateZeroed == 0 && span.Hollow(p+sizeclass.Quantum, s.Size-sizeclass.Quantum) {
				b.setSorted(p, next, was|stateZeroed, cl.factor)
			}
			p = next
		}
	}
}

// release gives s back to package span. No block of s is in use or in a cache.
//
//go:norace
func (cl *class) release(h *Heap, s *span.Span) {
	if s.Listed {
		cl.unlist(s)
	}
	base, cost := s.Base, spanCost(uint8(s.Tag)&^span.KindSampled)
	filled := h.checked != nil && h.fillSpan(s)
	retire(s)
	if filled {
		span.FreeFilled(base, 1)
	} else {
		span.FreeCarved(base)
	}
	h.account.Uncharge(cost)
}

// retire makes s a span of no heap. From then on, Free detects every address in
// it.
//
//go:norace
func retire(s *span.Span) {
	atomic.StoreUint32(&s.Carved, 0)
	s.Free, s.NumFree, s.Listed = 0, 0, false
	s.StoreTag(0)
}

// list puts s at the head of the class's list.
//
//go:norace
func (cl *class) list(s *span.Span) {
	s.Listed = true
	s.Prev, s.Next = 0, cl.spans
	if cl.spans != 0 {
		span.At(cl.spans).Prev = s.Addr()
	}
	cl.spans = s.Addr()
}

// unlist takes s out of the class's list.
//
//go:norace
func (cl *class) unlist(s *span.Span) {
	s.Listed = false
	if s.Prev != 0 {
		span.At(s.Prev).Next = s.Next
	} else {
		cl.spans = s.Next
	}
	if s.Next != 0 {
		span.At(s.Next).Prev = s.Prev
	}
	s.Prev, s.Next = 0, 0
}
