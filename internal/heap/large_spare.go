package heap

import (
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// A large block that was freed stays with the heap for a while, for the next one of the same size: without
// that, a pair of Malloc and Free takes the lock of package span twice, and changes its sums. Such a block is
// spare. It is given back when the heap grows, or one of its blocks does; at a limit; in Trim; and by the
// second tick.

// largeSpares are the spare large blocks of a heap, under Heap.large.mu.
type largeSpares struct {
	spans   [4]largeSpare // those freed last at the end
	n       int
	bytes   uintptr
	counted uintptr // what span.Blocks counts: the most that bytes was since the last tick
	unasked int     // spans[:unasked] were there at the last tick
}

type largeSpare struct {
	size   uintptr
	record uintptr // of the span, whose tag is 0
}

const mostSpare = 256 << 10 // how many bytes of a heap may be spare; span.Blocks bounds those of all heaps

// keepLarge makes the block of s, which is freed, spare. It returns false, and changes nothing, if the
// block must go back.
//
//go:norace
func (h *Heap) keepLarge(s *span.Span) bool {
	l := &h.large.spares
	bytes := l.bytes + s.Size
	if bytes > mostSpare || l.n == len(l.spans) || s.Space != 0 || h.checked != nil {
		return false
	}
	if bytes > l.counted {
		if !span.Blocks.Keep(int64(bytes - l.counted)) {
			return false
		}
		l.counted = bytes
	}
	h.endLarge(s)
	l.bytes = bytes
	l.spans[l.n] = largeSpare{s.Size, s.Addr()}
	l.n++
	return true
}

// takeLarge returns a spare block of size bytes at a multiple of align, or 0 if there is none.
//
//go:norace
func (h *Heap) takeLarge(size, align uintptr) uintptr {
	l := &h.large.spares
	for i := l.n - 1; i >= 0; i-- {
		if l.spans[i].size != size {
			continue
		}
		if s := span.At(l.spans[i].record); s.Base&(align-1) == 0 && !h.closed.Load() {
			l.remove(i)
			h.becomeLarge(s, size, 0)
			h.large.mallocs++
			return s.Base
		}
	}
	return 0
}

//go:norace
func (l *largeSpares) remove(i int) {
	l.bytes -= l.spans[i].size
	copy(l.spans[i:], l.spans[i+1:l.n])
	l.n--
	if i < l.unasked {
		l.unasked--
	}
}

// dropSpare gives a spare block back.
//
//go:norace
func (h *Heap) dropSpare(i int) {
	s := h.large.spares.spans[i]
	h.large.spares.remove(i)
	span.Free(span.At(s.record).Base, unitsOf(s.size)) // the record may be another heap's at once
	h.account.Uncharge(largeCost(s.size))
}

// dropSpares gives all of them back. It reports whether there were any.
//
//go:norace
func (h *Heap) dropSpares() bool {
	any := h.large.spares.n > 0
	for h.large.spares.n > 0 {
		h.dropSpare(0)
	}
	return any
}

// reclaimLarge gives all spare blocks back; if unasked is set, those that were there at the last such call.
//
//go:norace
func (h *Heap) reclaimLarge(unasked bool) {
	race.Enter()
	h.large.mu.Lock()
	l := &h.large.spares
	for l.unasked > 0 || l.n > 0 && !unasked {
		h.dropSpare(0)
	}
	l.unasked = l.n
	l.uncount()
	h.large.mu.Unlock()
	race.Leave()
}

// uncount takes back what span.Blocks counts and is no longer spare.
//
//go:norace
func (l *largeSpares) uncount() {
	span.Blocks.Drop(int64(l.counted - l.bytes))
	l.counted = l.bytes
}
