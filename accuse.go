package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/span"
)

// accuse panics and says what p is, which is no live block of h.
//
//go:norace
func (h *Heap) accuse(op string, p uintptr, v verdict) {
	switch v {
	case inside:
		s := span.Find(p)
		start := s.Base
		if s.LoadTag()&span.KindMask < span.KindBody {
			start += (p - s.Base) / s.Size * s.Size
		} else {
			s = span.Find(start)
		}
		misuse(op, p, "%#x lies inside the block at %#x (%d bytes), %d bytes behind its start; pass the pointer that Malloc returned",
			p, start, s.Size, p-start)
	case free:
		misuse(op, p, "the block at %#x (%d bytes) is free already; it is freed twice, or used after it was freed", p, span.Find(p).Size)
	case uncarved:
		misuse(op, p, "%#x lies in memory of this heap that it has not handed out; the block there is free already, or the pointer is wrong", p)
	case otherHeap:
		misuse(op, p, "%#x belongs to another heap; free a block with the heap that allocated it", p)
	case returned:
		misuse(op, p, "%#x lies in memory that a heap has given back; the block there is free already, or its heap was destroyed", p)
	}
	misuse(op, p, "%#x is %s; no heap gave it out", p, whatIs(p))
}

// whatIs describes an address that lies in no span.
func whatIs(p uintptr) string {
	switch {
	case p < 4096:
		return "a small number, not an address"
	case span.FindChunk(p) != 0:
		return "a block of another allocator"
	}
	if name, ok := mappingOf(p); ok {
		return name
	}
	// Go's heap starts at one place and grows from there (runtime/malloc.go,
	// arena hints), so what shares the upper bits with a Go object most likely
	// is one, too.
	const near = 32
	if sample := uintptr(unsafe.Pointer(new([64]byte))); uint64(sample)>>near == uint64(p)>>near && ^uintptr(0)>>near != 0 {
		return "a Go pointer"
	}
	return "a Go pointer, C memory, or a stray number"
}
