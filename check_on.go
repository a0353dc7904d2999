//go:build cheap_check

package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// checking says whether free memory is filled with a pattern, which is verified
// before the memory is handed out again.
const checking = true

const (
	patternFree = 0xDF // in free memory
	patternNew  = 0xCE // in a block that is handed out
)

// bytesAt returns n bytes at p, in a chunk or block that the caller holds.
//
//go:norace
func bytesAt(p, n uintptr) []byte { return unsafe.Slice((*byte)(osmem.Pointer(p)), n) }

// fillFree fills n bytes at p, which no caller uses any more.
//
//go:norace
func fillFree(p, n uintptr) { fill(bytesAt(p, n), patternFree) }

// fill makes all bytes of b the same.
//
//go:norace
func fill(b []byte, pattern byte) {
	for i := range b[:min(len(b), 64)] {
		b[i] = pattern
	}
	for n := 64; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// others returns the range of bytes of b from the first to the last that is not pattern.
// It is empty if all are.
//
//go:norace
func others(b []byte, pattern byte) (from, to uintptr) {
	const word = 8
	all := ^uint64(0) / 0xFF * uint64(pattern)
	// Where the address of b is not a multiple of a word, these loads are not aligned;
	// they are of bytes of b.
	is := func(i int) bool { return *(*uint64)(unsafe.Pointer(&b[i])) == all }
	first, end := 0, len(b)
	for first+word <= end && is(first) {
		first += word
	}
	for first < end && b[first] == pattern {
		first++
	}
	for first+word <= end && is(end-word) {
		end -= word
	}
	for first < end && b[end-1] == pattern {
		end--
	}
	return uintptr(first), uintptr(end)
}

// unfilled returns the range of bytes, among n at p, from the first to the last that a
// program wrote to since the heap, or the system, has left them. No caller has these
// bytes. was is the state of the block that they are in.
//
// Behind the canary, a block that was in use is filled with patternFree. One that was
// carved from memory of the system is 0. Any other is part of a unit that was free: each
// of its pages is filled, or is 0 if the system has had it or the unit never used it.
//
//go:norace
func unfilled(p, n uintptr, was blockState) (from, to uintptr) {
	switch {
	case was&stateZeroed != 0:
		return others(bytesAt(p, n), 0)
	case was&stateNew == 0:
		return others(bytesAt(p, n), patternFree)
	}
	for start := p; start < p+n; {
		end := min(osmem.RoundPage(start+1), p+n)
		if f, t := unfilledPage(bytesAt(start, end-start)); f < t {
			if to == 0 {
				from = start + f - p
			}
			to = start + t - p
		}
		start = end
	}
	return from, to
}

// unfilledPage is unfilled of bytes of one page of a unit that was free. Whether the page
// was filled or 0, most of its bytes still say.
//
//go:norace
func unfilledPage(b []byte) (from, to uintptr) {
	if b[0] == 0 || b[0] == patternFree {
		if from, to = others(b, b[0]); from == to {
			return 0, 0
		}
	}
	zeros := 0
	for _, c := range b {
		switch c {
		case 0:
			zeros++
		case patternFree:
			zeros--
		}
	}
	if zeros > 0 {
		return others(b, 0)
	}
	return others(b, patternFree)
}

// mustBeFilled panics if n bytes at p, in the free block at block, which ends with them,
// are not as fillFree has left them.
func mustBeFilled(op string, block, p, n uintptr) {
	if from, to := others(bytesAt(p, n), patternFree); from < to {
		head := p - block
		panicWritten(op, damage{block: block, size: head + n, from: head + from, to: head + to, exact: true})
	}
}

// enter is begin without a panic: it reports false if the heap is destroyed. Then the
// memory of the block that the caller has in hand may be another heap's.
//
//go:norace
func (h *Heap) enter() bool {
	if race.Told {
		race.Enter()
		defer race.Leave()
	}
	h.busy.Add(1)
	if h.closed.Load() {
		h.busy.Add(-1)
		return false
	}
	return true
}

// mustBeAligned panics if p, an address of a block or several of them ored, is no multiple of what
// blocks are aligned to. Pinned code must not call it.
//
//go:norace
func mustBeAligned(op string, p uintptr) { osmem.Must(p%sizeclass.Quantum == 0, op, "p", p) }

// fillFreeBlock fills the block at p, except for its link and canary. s is the record of
// its unit. A large block is filled when its units go back, because Realloc may keep it.
//
//go:norace
func (h *Heap) fillFreeBlock(s *span.Span, p uintptr) {
	if s.LoadTag()&span.KindMask < span.KindBody && h.enter() {
		fillFree(p+sizeclass.Quantum, s.Size-sizeclass.Quantum)
		h.end()
	}
}

// mustBeFilledBlock panics if the block at p is not as fillFreeBlock, or the system,
// has left it; and then overwrites it, so that no caller relies on its
// contents. The link and the canary are checked where the block comes off a list. A large
// block has none, and one that is fresh was never handed out before. was is what the canary
// said.
//
//go:norace
func (h *Heap) mustBeFilledBlock(p uintptr, was blockState) {
	if !h.enter() {
		return
	}
	defer h.end()
	s := span.Find(p)
	if s.LoadTag()&span.KindMask < span.KindBody {
		mustBeFilledBytes("Heap.Malloc", p, sizeclass.Quantum, s.Size, was)
	} else if was&stateZeroed == 0 {
		mustBeFilledBytes("Heap.Malloc", p, 0, s.Size, was)
	}
}

// mustBeFilledTail is mustBeFilledBlock for the bytes that the large block at p has
// gained in place behind the first from ones. Those of a mapping are fresh.
//
//go:norace
func mustBeFilledTail(p, from uintptr) {
	if s := span.Find(p); from < s.Size && s.Space == 0 {
		mustBeFilledBytes("Heap.Realloc", p, from, s.Size, stateNew)
	}
}

// mustBeFilledBytes is mustBeFilledBlock for the bytes in [from, to) of the block at p.
//
//go:norace
func mustBeFilledBytes(op string, p, from, to uintptr, was blockState) {
	if first, last := unfilled(p+from, to-from, was); first < last {
		panicWritten(op, damage{block: p, size: span.Find(p).Size, from: from + first, to: from + last, exact: true})
	}
	if was&stateZeroed == 0 {
		fill(bytesAt(p+from, to-from), patternNew)
	}
}

// lookAtFree notes the first block of s that was written to while it was free. s has all
// its blocks back. The caller holds the lock of the class.
//
//go:norace
func (h *Heap) lookAtFree(s *span.Span) {
	factor := factorOf(s.LoadTag())
	for p := s.Free; p != 0; {
		b := blockAt(p)
		if !b.isSorted(p, factor) || isWritten(p, s.Size, stateOf(b.link)) {
			h.noteDamage(p)
			return // the link cannot be trusted
		}
		p = nextOf(b.link)
	}
}

// isWritten reports whether bytes behind the canary were written to, in the free block at p
// of size bytes. was is the state of the block.
//
//go:norace
func isWritten(p, size uintptr, was blockState) bool {
	from, to := unfilled(p+sizeclass.Quantum, size-sizeclass.Quantum, was)
	return from < to
}

// lookAtUncarved notes that the first bytes of a block of size bytes, which is about to be
// carved at p from a unit that was free, were written to. What is behind these bytes
// shows when the block is handed out.
//
//go:norace
func (h *Heap) lookAtUncarved(p, size uintptr) {
	if from, to := unfilled(p, sizeclass.Quantum, stateNew); from < to {
		h.note(damage{block: p, size: size, from: from, to: to, exact: true})
	}
}

// fillSpan fills the blocks of s, none of which is in use any more, and the rest of the
// last page that they reach into, so that no page is filled in part.
//
//go:norace
func fillSpan(s *span.Span) { fillFree(s.Base, osmem.RoundPage(uintptr(s.Carved)*s.Size)) }
