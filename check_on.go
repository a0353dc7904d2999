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

// firstOther returns the index of the first byte of b that is neither 0 nor pattern, or
// -1 if there is none.
//
//go:norace
func firstOther(b []byte, pattern byte) int {
	const ones = ^uint64(0) / 0xFF
	for i := 0; i < len(b); i++ {
		if i%8 == 0 && len(b)-i >= 8 {
			w := *(*uint64)(unsafe.Pointer(&b[i])) // eight bytes of b
			if w == 0 || w == ones*uint64(pattern) {
				i += 7
				continue
			}
		}
		if b[i] != 0 && b[i] != pattern {
			return i
		}
	}
	return -1
}

// mustBeFilled panics if n bytes at p, in the free block at block, are not as
// fillFree has left them.
func mustBeFilled(op string, block, p, n uintptr) {
	for i, b := range bytesAt(p, n) {
		if b != patternFree {
			panicMisuse(op, block, "byte %d of the free block at %#x is %#x; it was written to after it was freed", p-block+uintptr(i), block, b)
		}
	}
}

// isFilled reports whether n bytes at p, which no caller has, are as fillFree, or the
// system, has left them.
//
//go:norace
func isFilled(p, n uintptr) bool { return firstOther(bytesAt(p, n), patternFree) < 0 }

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

// fillFreeBlock fills the block at p, except for its link and mark. s is the record of
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
// contents. The link and the mark are checked where the block comes off a list. A large
// block has none, and one that is fresh was never handed out before.
//
//go:norace
func (h *Heap) mustBeFilledBlock(p uintptr, fresh bool) {
	if !h.enter() {
		return
	}
	defer h.end()
	s := span.Find(p)
	if s.LoadTag()&span.KindMask < span.KindBody {
		mustBeFilledBytes("Heap.Malloc", p, sizeclass.Quantum, s.Size, fresh)
	} else if !fresh {
		mustBeFilledBytes("Heap.Malloc", p, 0, s.Size, false)
	}
}

// mustBeFilledTail is mustBeFilledBlock for the bytes that the large block at p has
// gained in place behind the first from ones. Those of a mapping are fresh.
//
//go:norace
func mustBeFilledTail(p, from uintptr) {
	if s := span.Find(p); from < s.Size && s.Space == 0 {
		mustBeFilledBytes("Heap.Realloc", p, from, s.Size, false)
	}
}

// mustBeFilledBytes is mustBeFilledBlock for the bytes in [from, to) of the block at p.
//
//go:norace
func mustBeFilledBytes(op string, p, from, to uintptr, fresh bool) {
	all, pattern := bytesAt(p+from, to-from), byte(patternFree)
	if fresh {
		pattern = 0
	}
	if i := firstOther(all, pattern); i >= 0 {
		panicMisuse(op, p, "byte %d of the block at %#x is %#x; it was written to while the block was free", from+uintptr(i), p, all[i])
	}
	if !fresh {
		fill(all, patternNew)
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
		if !b.isSorted(p, factor) || !isFilled(p+sizeclass.Quantum, s.Size-sizeclass.Quantum) {
			h.noteDamage(p)
			return // the link cannot be trusted
		}
		p = nextOf(b.link)
	}
}
