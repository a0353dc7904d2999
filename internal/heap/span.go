package heap

import (
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// spanCost is the number of bytes that a span of class c holds from the system, whole pages,
// record included.
func spanCost(c uint8) int64 {
	return int64(osmem.RoundPage(sizeclass.Classes[c].SpanBytes())) + recordBytes
}

// recordBytes is the metadata of a unit.
const recordBytes = 128

// grow takes a span from package span. The caller holds the lock.
//
//go:norace
func (cl *class) grow(h *Heap, c uint8) error {
	cost := spanCost(c)
	if !h.account.TryCharge(cost) {
		return errLimit
	}
	sc := &sizeclass.Classes[c]
	var base uintptr
	var fresh, filled bool
	var err error
	if isAlone(uintptr(c)) { // its pages are touched in any order, as those of a large block
		base, fresh, filled, err = span.AllocFilled(1, 1, sc.SpanBytes())
	} else {
		base, fresh, filled, err = span.AllocCarved(sc.SpanBytes())
	}
	if err != nil {
		h.account.Uncharge(cost)
		return noMemory(err)
	}
	if h.huge {
		span.Huge(base, 0, 1)
	}
	if cl.tag&span.KindSampled != 0 && !fresh {
		h.sampled.Load().warm.Add(1)
	}
	s := span.Find(base)
	s.ForgetChunk()
	s.Size, s.Base = uintptr(sc.Size), base
	s.Inverse, s.Shift, s.Blocks = sc.Inverse, uint32(sc.Shift), sc.Blocks
	s.Free, s.NumFree, s.Runs, s.Fresh, s.Filled = 0, 0, 0, fresh, filled && !fresh
	s.StoreTag(cl.tag)
	cl.list(s)
	h.regions.Add(base)
	return nil
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
	cl.uncount(uint8(cl.tag))
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
			b := block.At(p)
			if !b.IsSorted(p, cl.factor) {
				return // the goroutine that takes the block reports the damage
			}
			next, was := block.NextOf(b.Link), block.StateOf(b.Link)
			if was&block.Zeroed == 0 && span.Hollow(p+sizeclass.Quantum, s.Size-sizeclass.Quantum) {
				b.SetSorted(p, next, was|block.Zeroed, cl.factor)
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
	c := uint8(s.Tag) &^ span.KindSampled
	base, cost := s.Base, spanCost(c)
	filled := h.checked != nil && h.fillSpan(s)
	retire(s)
	switch {
	case filled:
		span.FreeFilled(base, 1)
	case isAlone(uintptr(c)):
		span.Free(base, 1)
	default:
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

// keep leaves s, whose block is alone in it and free, in the list of the class, for the next block, if no
// other span is there. It reports whether it did. Without that, a pair of Malloc and Free would take a span
// from package span, and give it back. The caller holds the lock.
//
//go:norace
func (cl *class) keep(h *Heap, s *span.Span) bool {
	if cl.spans != 0 || s.Blocks > 1 || cl.tag&span.KindSampled != 0 || h.checked != nil {
		return false
	}
	if !cl.counted.Load() {
		if !span.Blocks.Keep(spanCost(uint8(cl.tag))) {
			return false
		}
		cl.counted.Store(true)
	}
	cl.list(s)
	return true
}

// dropKept gives the span that keep has left back; if rested is set, only if it was there at the last such
// call. Callers look at counted first, as they look at numFull.
//
//go:norace
func (cl *class) dropKept(h *Heap, c uint8, rested bool) {
	cl.mu.Lock()
	kept := cl.counted.Load() && !h.closed.Load() && cl.spans != 0
	if kept && rested && !cl.rested {
		cl.rested = true
	} else {
		if kept {
			if s := span.At(cl.spans); s.NumFree == s.Carved && cl.isWhole(s) {
				cl.release(h, s)
			}
		}
		cl.uncount(c)
	}
	cl.mu.Unlock()
	if kept {
		span.Decay()
	}
}

// uncount takes back what keep has counted as spare.
//
//go:norace
func (cl *class) uncount(c uint8) {
	if cl.counted.Load() {
		cl.counted.Store(false)
		cl.rested = false
		span.Blocks.Drop(spanCost(c))
	}
}
