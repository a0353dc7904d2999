package heap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/heap/fill"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// noteDamage records that the free block at p was written to. The caller has
// taken the block, and what its link led to, out of all lists and counts. It may
// hold locks; the panic comes from mustBeUndamaged.
//
//go:norace
func (h *Heap) noteDamage(p uintptr) {
	if h.damaged.Load() == nil {
		h.note(h.lookAtDamage(p))
	}
}

// noteTwice is noteDamage for a block that was freed twice at the same time. The
// block is the one at p, or one that p's list leads to.
func (h *Heap) noteTwice(p uintptr) { h.note(fill.Damage{Block: p, Twice: true}) }

// note records d, unless something is recorded already.
//
//go:norace
func (h *Heap) note(d fill.Damage) { h.damaged.CompareAndSwap(nil, &d) }

// mustBeUndamaged panics if noteDamage or noteTwice was called since the last such
// panic. It frees the block at p before, unless p is 0: the caller gets the panic
// instead of the block.
func (h *Heap) mustBeUndamaged(p uintptr) {
	if h.damaged.Load() != nil {
		h.panicDamaged(p)
	}
}

// panicDamaged is apart from mustBeUndamaged so that the compiler can inline that.
//
//go:noinline
func (h *Heap) panicDamaged(p uintptr) {
	d := h.damaged.Swap(nil)
	if d == nil {
		return // another goroutine has panicked with it
	}
	if h.checked != nil {
		h.checked.panicDamaged(p, d)
	} else if p != 0 {
		h.freeSlow("Heap.Free", nil, p)
	}
	panicMisuse("Heap", d.Block, "%s", d.Reason())
}

// lookAtDamage returns what was written to of the free block at p.
//
//go:norace
func (h *Heap) lookAtDamage(p uintptr) fill.Damage {
	s := span.Find(p)
	tag := s.LoadTag()
	d := fill.Damage{Block: p, Size: s.Size, To: sizeclass.Quantum}
	if tag>>span.KindBits != h.id || tag&span.KindMask >= span.KindGuarded {
		return d // its span went back: a list led there because a block was freed twice
	}
	d.From, d.To, d.Exact = headDamage(p, tag)
	if d.From == d.To { // the canary is right, but not that of the list that the block is in
		d.To, d.Exact = sizeclass.Quantum, false
	}
	return d
}

// headDamage returns which of the first 16 bytes of the free block at p were written
// to, those in [from, to): none if the canary is right. tag is that of its span.
//
// As long as the canary is what the heap wrote, it says what the link was. A link that
// it says by accident leads nowhere. If the link leads somewhere, and half of the canary is
// what the link asks for, the rest of the canary was written to. Otherwise both words may
// have been, and exact is false.
//
//go:norace
func headDamage(p, tag uintptr) (from, to uintptr, exact bool) {
	b, factor := block.At(p), block.FactorOf(tag)
	if b.IsFree(p, factor) {
		return 0, 0, true
	}
	for bit := range uint64(block.SortedBit + 1) {
		if link := block.Invert(p, b.Canary^bit, factor); mayBeLink(link, tag) {
			from, to, _ = changedBytes(link, b.Link)
			return from, to, true
		}
	}
	const word = unsafe.Sizeof(b.Link)
	if mayBeLink(b.Link, tag) {
		// The low bytes of a canary depend on the low bits of the link alone, so that they
		// are right does not say that the link is.
		most := word/2 - 1
		for bit := range uint64(block.SortedBit + 1) {
			if f, t, same := changedBytes(block.Checksum(p, b.Link, factor)^bit, b.Canary); same > most {
				from, to, most = word+f, word+t, same
			}
		}
		if to != 0 {
			return from, to, true
		}
	}
	return 0, sizeclass.Quantum, false
}

// mayBeLink reports whether a block in a span with that tag may have the link: whether
// it leads to a block of the same class and heap, or ends a list.
//
//go:norace
func mayBeLink(link uint64, tag uintptr) bool {
	next := block.NextOf(link)
	if uint64(next) != link&^uint64(block.StateBits) {
		return false // more than an address
	}
	if next == 0 {
		return true
	}
	s := span.Lookup(next)
	return s != nil && s.LoadTag() == tag && startsBlock(s, next)
}

// changedBytes returns the range of bytes in memory in which two words differ, and how
// many bytes do not differ.
//
//go:norace
func changedBytes(was, is uint64) (from, to, same uintptr) {
	change := was ^ is
	for i, c := range (*[8]byte)(unsafe.Pointer(&change)) { // in the order of memory
		switch {
		case c == 0:
			same++
			continue
		case to == 0:
			from = uintptr(i)
		}
		to = uintptr(i) + 1
	}
	return from, to, same
}
