package heap

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/heap/fill"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// # What the bytes of a checked heap hold
//
//	the borders of a block              0xB6
//	a block that is handed out          0xA5
//	a block in quarantine               a word that depends on its address, and then 0xDF
//	a block that has left it            the same, until the block is handed out again
//	a large block that has left it      0xDF, in all of its units
//	a span that has gone back           0xDF, in all of its unit
//
// The word detects that one freed block was copied over another. Units keep their bytes while no
// heap has them (span.FreeFilled), unless the system takes their memory, which reads as 0 then.

// freedWord is the first word of the contents of a freed block. Its upper bytes are those of
// fill.Freed, so it is no address.
func (hd *checkedHeader) freedWord() [8]byte {
	x := hd.size ^ uint64(hd.user())*block.MixFactor
	x = (x ^ x>>32) * block.MixFactor >> 16
	var b [8]byte
	for i := range b {
		b[i] = byte(x >> (8 * i))
	}
	b[0] |= 0x80 // no zero, small number or letter: one of these that is written is a change
	b[6], b[7] = fill.Freed[0], fill.Freed[0]
	return b
}

// fillFreed fills the contents of a block that is freed.
func (hd *checkedHeader) fillFreed() {
	b, word := hd.content(), hd.freedWord()
	fill.Freed.Write(b[copy(b, word[:]):])
}

// changedFreed returns the range of bytes of the contents that fillFreed has not left.
func (hd *checkedHeader) changedFreed() (from, to int) {
	b, word := hd.content(), hd.freedWord()
	n := min(len(b), len(word))
	if from, to = fill.Freed.Changed(b[n:]); from < to {
		from, to = n+from, n+to
	}
	for i := n - 1; i >= 0; i-- {
		if b[i] != word[i] {
			from, to = i, max(to, i+1)
		}
	}
	return from, to
}

// fillUnits fills the units of the large block at base, which leaves the quarantine.
func fillUnits(s *span.Span, base uintptr) {
	size := uintptr(unitsOf(s.Size)) * span.UnitSize
	if s.Space != 0 || span.Commit(base, size) != nil {
		return
	}
	fill.Freed.Write(unsafe.Slice((*byte)(osmem.Pointer(base)), size)) // the units are the block's
	s.Filled = true
}

// mustBeAsFreed panics if the block at base, which the heap is about to hand out, was written to
// since it has left the quarantine. was is the state of the free block. The lock is held; it is
// not if mustBeAsFreed panics.
func (c *checked) mustBeAsFreed(op string, base uintptr, was block.State) {
	s := span.Find(base)
	var at uintptr
	var report string
	switch {
	case s.LoadTag()&span.KindMask == span.KindLarge:
		if s.Filled {
			at, report = writtenUnits(s, base)
			s.Filled = false // from now on
		}
	case was&block.New != 0 && s.Filled && was&block.Zeroed == 0:
		b := unsafe.Slice((*byte)(osmem.Pointer(base+sizeclass.Quantum)), s.Size-sizeclass.Quantum)
		if from, to := fill.Freed.Changed(b); from < to {
			at, report = base, writtenText(base, s.Size, from+sizeclass.Quantum, to+sizeclass.Quantum)
		}
	case was&block.New != 0: // nothing is known of the memory
	case was&block.Zeroed != 0: // its pages were released
		b := unsafe.Slice((*byte)(osmem.Pointer(base+sizeclass.Quantum)), s.Size-sizeclass.Quantum)
		if from, to := fill.Zero.Changed(b); from < to {
			at, report = base, writtenText(base, s.Size, from+sizeclass.Quantum, to+sizeclass.Quantum)
		}
	default: // not c.writtenFree, which poisons the block again
		hd := headerAt(base)
		if hd.checksum != hd.checksumOf() {
			at, report = c.writtenOver(base)
		}
		if report == "" {
			at, report = hd.user(), hd.writtenFree()
		}
	}
	if report != "" {
		c.blank(base, lost)
		c.mu.Unlock()
		panicMisuse(op, at, "%s", report)
	}
}

// writtenUnits says what was written to of the units of the large block at base since fillUnits has
// filled them, and where that is; or "". A page that the system has taken is zero.
func writtenUnits(s *span.Span, base uintptr) (at uintptr, report string) {
	b := unsafe.Slice((*byte)(osmem.Pointer(base)), s.Size)
	first, last := 0, 0
	for off := 0; off < len(b); off += len(fill.Freed) {
		page := b[off:min(len(b), off+len(fill.Freed))]
		from, to := fill.Freed.Changed(page)
		if from == to {
			continue
		}
		if f, t := fill.Zero.Changed(page); f == t {
			continue
		} else if page[0] == 0 && page[len(page)-1] == 0 {
			from, to = f, t
		}
		if last == 0 {
			first = off + from
		}
		last = off + to
	}
	if last == 0 {
		return 0, ""
	}
	return base, writtenText(base, s.Size, first, last)
}

// fillSpan fills the unit of a span, all of whose blocks are free and which is about to go back. It
// notes the first block that was written to. The caller holds the lock of the class.
//
//go:norace
func (h *Heap) fillSpan(s *span.Span) bool {
	if race.Told {
		return false // the detector does not know that the users of the blocks are done with them
	}
	for p := s.Free; p != 0 && h.damaged.Load() == nil; {
		link := block.At(p).Link
		if block.StateOf(link) == 0 { // it has the header of its last user
			hd := headerAt(p)
			if from, to, exact := hd.written(); from < to {
				h.note(fill.Damage{Block: p, Size: s.Size, From: from, To: to, Exact: exact})
			}
		}
		p = block.NextOf(link)
	}
	if span.Commit(s.Base, span.UnitSize) != nil {
		return false
	}
	fill.Freed.Write(unsafe.Slice((*byte)(osmem.Pointer(s.Base)), span.UnitSize)) // the unit is the heap's
	return true
}

// written returns the range of bytes that were written to of a block that has left the quarantine,
// from its start. exact is that of damage.
//
//go:norace
func (hd *checkedHeader) written() (from, to uintptr, exact bool) {
	if hd.checksum != hd.checksumOf() {
		return sizeclass.Quantum, headerBytes, false
	}
	user := hd.user() - uintptr(unsafe.Pointer(hd))
	before, behind := hd.borders()
	if f, t := fill.Border.Changed(before); f < t {
		return user - uintptr(borderBefore) + uintptr(f), user - uintptr(borderBefore) + uintptr(t), true
	}
	if f, t := hd.changedFreed(); f < t {
		return user + uintptr(f), user + uintptr(t), true
	}
	if f, t := fill.Border.Changed(behind); f < t {
		return user + uintptr(hd.size) + uintptr(f), user + uintptr(hd.size) + uintptr(t), true
	}
	return 0, 0, true
}

// writtenText is the report of a write to a free block that has no header any more.
func writtenText(base, size uintptr, from, to int) string {
	return fmt.Sprintf("the free block at %#x (%d bytes) was written to after it was freed: %d bytes from byte %d on; look for a pointer that is used after Free",
		base, size, to-from, from)
}

// blank gives the block at base, which no caller has, a header and no contents, in that state.
func (c *checked) blank(base uintptr, state uint32) {
	hd, s := headerAt(base), span.Find(base)
	if s.LoadTag()&span.KindMask == span.KindLarge {
		s.Filled = false // it has a header
	}
	*hd = checkedHeader{state: state, front: uint32(bits.TrailingZeros(headerBytes)), whole: uint64(s.Size)}
	hd.checksum = hd.checksumOf()
	before, behind := hd.borders()
	fill.Border.Write(before)
	fill.Border.Write(behind)
}
