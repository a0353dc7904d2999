package heap

import (
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// mustBeOpen panics if h was destroyed, or was not made by NewHeap.
func (h *Heap) mustBeOpen(op string) {
	if h.closed.Load() || h.id == 0 {
		h.panicNotOpen(op)
	}
}

// panicNotOpen is apart from mustBeOpen so that the compiler can inline that.
func (h *Heap) panicNotOpen(op string) {
	if h.closed.Load() {
		panicMisuse(op, 0, "the heap is destroyed")
	}
	panicMisuse(op, 0, "the heap was not made by NewHeap")
}

// A verdict says what an address is to a heap.
type verdict int

const (
	blockLive      verdict = iota // the start of a block in use
	blockInside                   // the inside of a block
	blockFree                     // the start of a free block
	spanUncarved                  // in a span, behind all blocks that were ever handed out
	spanChunk                     // in a block that a FixedBlock has taken as a chunk
	spanOtherHeap                 // in a span of another heap
	spanReturned                  // in a span that was given back, or of a destroyed heap
	addressUnused                 // in address space of package span that was never handed out
	addressUnknown                // in no span
)

// anyHeap is no heap's id. It stands for all of them.
const anyHeap = 0

// judge returns what p is to the heap with that id, and the record of its unit,
// or nil if the unit has none.
//
//go:norace
func judge(p, id uintptr) (*span.Span, verdict) {
	s := span.Lookup(p)
	if s == nil {
		return nil, addressUnknown
	}
	tag := s.LoadTag()
	switch {
	case tag == 0 && atomic.LoadUintptr(&s.Was) != 0:
		return s, spanReturned
	case tag == 0:
		return s, addressUnused
	case atomic.LoadUintptr(&s.Chunk) != 0:
		// A FixedBlock takes its chunk out of the map before it frees it.
		return s, spanChunk
	case tag>>span.KindBits != id && id != anyHeap:
		return s, spanOtherHeap
	case tag&span.KindMask == span.KindLarge && p == s.Base, tag&span.KindMask == span.KindGuarded && p == s.Base:
		return s, blockLive
	case tag&span.KindMask >= span.KindGuarded:
		return s, blockInside
	}
	off := uint32(p) % span.UnitSize
	i := sizeclass.Index(off, s.Inverse, uint8(s.Shift))
	if i >= atomic.LoadUint32(&s.Carved) {
		if off/uint32(s.Size) < atomic.LoadUint32(&s.Carved) && off%uint32(s.Size) != 0 {
			return s, blockInside
		}
		return s, spanUncarved
	}
	if block.At(p).IsFree(p, block.FactorOf(tag)) {
		return s, blockFree
	}
	return s, blockLive
}

// mustOwn returns the record of the unit of p, the start of a live block of h. It
// panics if p is anything else.
//
//go:norace
func (h *Heap) mustOwn(op string, p uintptr) *span.Span {
	s, v := judge(p, h.id)
	if v != blockLive {
		panicNotLive(op, p, v, s)
	}
	return s
}

// panicNotLive panics with what judge found about p: p is not a live block.
//
//go:norace
func panicNotLive(op string, p uintptr, v verdict, s *span.Span) {
	if report := guardReport(p, v); report != "" {
		panicMisuse(op, p, "%s", report)
	}
	switch v {
	case blockInside:
		start, size := s.Base, s.Size
		if s.LoadTag()&span.KindMask < span.KindBody && size != 0 { // it may have gone back since judge looked
			start += (p - start) / size * size
		} else {
			s = span.Find(start)
		}
		panicMisuse(op, p, "%#x is inside the block at %#x (%d bytes), %d bytes after its start; pass the pointer that Malloc returned",
			p, start, s.Size, p-start)
	case blockFree:
		panicMisuse(op, p, "the block at %#x (%d bytes) is free already; it is freed twice, or used after it was freed", p, s.Size)
	case spanUncarved:
		panicMisuse(op, p, "%#x is in memory of the heap that was not handed out; the block is free already, or the pointer is wrong", p)
	case spanChunk:
		panicMisuse(op, p, "%#x is in a chunk that a FixedBlock has taken from a heap; pass its blocks to that FixedBlock", p)
	case spanOtherHeap:
		panicMisuse(op, p, "%#x belongs to another heap; use the heap that allocated the block", p)
	case spanReturned:
		panicMisuse(op, p, "%#x is in memory that a heap has given back; the block is free already, or its heap is destroyed", p)
	}
	panicMisuse(op, p, "%#x is %s; it is not from a heap", p, WhatIs(p))
}

// WhatIs describes an address that is no block of the allocator that was asked.
func WhatIs(p uintptr) string {
	switch {
	case p < 4096:
		return "a small number, not an address"
	case span.FindChunk(p) != 0:
		return "a block of another allocator"
	case span.Reserved(p):
		switch _, v := judge(p, anyHeap); v {
		case addressUnused, addressUnknown:
			return "in address space that was never handed out"
		case spanReturned:
			return "in memory that a heap has given back"
		}
		return "in memory of a heap"
	}
	if name, ok := mappingOf(p); ok {
		return name
	}
	// Go's heap starts at one place and grows from there (runtime/malloc.go,
	// arena hints), so an address that shares the upper bits with a Go object
	// most likely is one, too.
	const near = 32
	if sample := uintptr(unsafe.Pointer(new([64]byte))); uint64(sample)>>near == uint64(p)>>near && ^uintptr(0)>>near != 0 {
		return "a Go pointer"
	}
	return "a Go pointer, C memory, or a stray number"
}
