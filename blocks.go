package cheap

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// RoundUp returns the usable size, in bytes, of the block that a [Heap] returns
// for a request of size bytes: the block size of its class, or for more than
// 32 KiB whole pages of the system. Above 128 bytes at most an eighth of size
// is added. A negative size panics, and one that overflows when it is rounded.
func RoundUp(size int) int {
	if size < 0 {
		misuse("RoundUp", 0, "negative size %d", size)
	}
	if size <= sizeclass.MaxSize {
		return int(sizeclass.Classes[sizeclass.Of(size)].Size)
	}
	if rounded := int(osmem.RoundPage(uintptr(size))); rounded > 0 {
		return rounded
	}
	misuse("RoundUp", 0, "%d bytes rounded up to pages are more than an int can be", size)
	return 0
}

// product returns count*size, or -1 where that is more than an int can be.
func product(op string, count, size int) int {
	if count < 0 || size < 0 {
		misuse(op, 0, "negative count or size (%d × %d)", count, size)
	}
	hi, lo := bits.Mul(uint(count), uint(size))
	if hi != 0 || int(lo) < 0 {
		return -1
	}
	return int(lo)
}

// Calloc returns a zeroed block for count elements of size bytes each, or nil
// as [Heap.Malloc] does and when the product overflows. Memory that comes
// fresh from the operating system is zero already and is not written to again.
func (h *Heap) Calloc(count, size int) unsafe.Pointer {
	n := product("Heap.Calloc", count, size)
	h.begin("Heap.Calloc")
	defer h.end()
	if n < 0 {
		return nil
	}
	p, was, err := h.malloc("Heap.Calloc", n, sizeclass.Quantum)
	if err != nil {
		return nil
	}
	return zero(p, n, was)
}

// begin and end enclose what writes to a block after it was taken and before its
// caller has it. Destroy waits for it.
//
//go:norace
func (h *Heap) begin(op string) {
	if race.On {
		race.Enter()
		defer race.Leave()
	}
	h.busy.Add(1)
	if h.closed.Load() || h.id == 0 {
		h.busy.Add(-1)
		h.check(op)
	}
}

//go:norace
func (h *Heap) end() {
	if race.On {
		race.Enter()
		defer race.Leave()
	}
	h.busy.Add(-1)
}

// zero clears the first n bytes of the block at p, of which its mark said was.
//
//go:norace
func zero(p uintptr, n int, was uint64) unsafe.Pointer {
	if was&zeroed != 0 {
		n = min(n, sizeclass.Quantum)
	}
	ptr := osmem.Pointer(p)
	clear(unsafe.Slice((*byte)(ptr), n)) // a block has room for what was asked for
	return ptr
}

// AlignedMalloc is [Heap.Malloc] of a block whose address is a multiple of
// align, which has to be a power of two.
func (h *Heap) AlignedMalloc(size, align int) unsafe.Pointer {
	checkAlign("Heap.AlignedMalloc", align)
	p, _, _ := h.malloc("Heap.AlignedMalloc", size, align)
	return osmem.Pointer(p)
}

func checkAlign(op string, align int) {
	if align <= 0 || align&(align-1) != 0 {
		misuse(op, 0, "the alignment %d is not a power of two", align)
	}
}

// Realloc makes the block at ptr one of at least size bytes, and returns where
// it is then: at the same address if its class or the memory behind it allows.
// The contents stay, up to the smaller of the two sizes. Where there is no
// memory it returns nil, and the block at ptr stays as it is.
//
// A nil ptr makes it Malloc. A size of 0 gives a block of size 0, it does not
// free. What is no live block of this heap panics as in [Heap.Free]. A block
// from AlignedMalloc keeps its alignment only as long as it is not moved.
func (h *Heap) Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer {
	return h.realloc("Heap.Realloc", ptr, size, h.Malloc, h.Free)
}

//go:norace
func (h *Heap) realloc(op string, ptr unsafe.Pointer, size int, malloc func(int) unsafe.Pointer, free func(unsafe.Pointer)) unsafe.Pointer {
	h.check(op)
	if size < 0 {
		misuse(op, uintptr(ptr), "negative size %d", size)
	}
	if ptr == nil {
		return malloc(size)
	}
	p := uintptr(ptr)
	s := h.mustOwn(op, p)
	old := s.Size
	large := s.LoadTag()&span.KindMask == span.KindLarge
	if !large && uintptr(size) <= old && uintptr(RoundUp(size)) > old/2 {
		return ptr // it fits, and a smaller class would not save half of it
	}
	h.begin(op)
	defer h.end()
	if large {
		if size > sizeclass.MaxSize && uintptr(size) <= maxLarge {
			newSize := osmem.RoundPage(uintptr(size))
			if newSize == old {
				return ptr
			}
			if instrumented {
				h.freeing(p)
			}
			to := h.resizeLarge(p, newSize)
			if to != 0 {
				if instrumented {
					handedOut(to, carved)
				}
				return osmem.Pointer(to)
			}
		}
	}
	to := malloc(size)
	if to == nil {
		if uintptr(size) <= old {
			return ptr // a smaller block would be better, but this one serves
		}
		return nil
	}
	n := min(old, uintptr(size))
	copyBlock(to, ptr, n)
	free(ptr)
	return to
}

// copyBlock copies n bytes between two blocks of at least as many.
//
//go:norace
func copyBlock(to, from unsafe.Pointer, n uintptr) {
	copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
}

// FreeSized is [Heap.Free] of a block that was allocated with the given size,
// or reallocated to it. A size that the block cannot have been asked for
// panics.
func (h *Heap) FreeSized(ptr unsafe.Pointer, size int) {
	if ptr == nil {
		return
	}
	h.check("Heap.FreeSized")
	p := uintptr(ptr)
	if s := h.mustOwn("Heap.FreeSized", p); size < 0 || uintptr(size) > s.Size {
		misuse("Heap.FreeSized", p, "the block at %#x has %d bytes; it was not allocated with size %d", p, s.Size, size)
	}
	h.Free(ptr)
}

// UsableSize returns how many bytes the block at ptr has, which may be more
// than were asked for; all of them may be used. It is 0 for nil. What is no
// live block of this heap panics as in [Heap.Free].
func (h *Heap) UsableSize(ptr unsafe.Pointer) int {
	if ptr == nil {
		return 0
	}
	h.check("Heap.UsableSize")
	return int(h.mustOwn("Heap.UsableSize", uintptr(ptr)).Size)
}

// Owns reports whether ptr is the start of a live block of this heap. It may be
// called with any pointer.
func (h *Heap) Owns(ptr unsafe.Pointer) bool {
	h.check("Heap.Owns")
	return h.judge(uintptr(ptr)) == live
}

// A verdict says what an address is to a heap.
type verdict int

const (
	live       verdict = iota // the start of a block in use
	inside                    // the inside of a block
	free                      // a block that is free
	uncarved                  // in a span, but behind all blocks that were ever handed out
	otherHeap                 // in a span of another heap
	returned                  // in a span that was given back, or of a destroyed heap
	notOurs                   // in no span
	heapUnused                // in address space of ours that was never handed out
)

// judge says what p is.
//
//go:norace
func (h *Heap) judge(p uintptr) verdict {
	s := span.Lookup(p)
	if s == nil {
		return notOurs
	}
	tag := s.LoadTag()
	switch {
	case tag == 0 && atomic.LoadUintptr(&s.Was) != 0:
		return returned
	case tag == 0:
		return heapUnused
	case tag>>span.KindBits != h.id:
		return otherHeap
	case tag&span.KindMask == span.KindLarge && p == s.Base:
		return live
	case tag&span.KindMask >= span.KindBody:
		return inside
	}
	off := uint32(p) % span.UnitSize
	i := sizeclass.Index(off, s.Inverse, uint8(s.Shift))
	if i >= atomic.LoadUint32(&s.Carved) {
		if off/uint32(s.Size) < atomic.LoadUint32(&s.Carved) && off%uint32(s.Size) != 0 {
			return inside
		}
		return uncarved
	}
	if b := blockAt(p); b.odd(p, b.next) <= zeroed|carved {
		return free
	}
	return live
}

// mustOwn returns the record of the span that p is a live block of. It panics
// if p is none.
//
//go:norace
func (h *Heap) mustOwn(op string, p uintptr) *span.Span {
	if v := h.judge(p); v != live {
		h.accuse(op, p, v)
	}
	return span.Find(p)
}
