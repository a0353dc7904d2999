package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// The attacks that read or write where the program has no block.
var writeAttacks = []attack{
	{"a write of 1 byte behind a block", func(a *attacked) {
		a.invert(a.end(), 1)
		a.h.Free(a.p)
	}, "the byte belongs to a neighbour or to no block"},
	{"a write of 8 bytes behind a block", func(a *attacked) {
		a.invert(a.end(), 8)
		a.h.Free(a.p)
	}, "likewise"},
	{"a write of 1 byte behind a block, whose neighbour is free", func(a *attacked) {
		a.h.Free(a.behind)
		a.invert(a.end(), 1)
	}, ""},
	{"a write of 8 bytes behind a block, whose neighbour is free", func(a *attacked) {
		a.h.Free(a.behind)
		a.invert(a.end(), 8)
	}, ""},
	{"a write of 8 bytes before a block, whose neighbour is free", func(a *attacked) {
		a.h.Free(a.before)
		a.invert(-8, 8)
	}, ""},
	{"a write over the three blocks behind a block, of which every second is free", func(a *attacked) {
		all := a.mallocs(64)
		for i := 0; i < len(all); i += 2 {
			a.h.Free(all[i])
		}
		a.p = all[1]
		a.invert(a.end(), 3*a.size)
		for i := 1; i < len(all); i += 2 {
			a.h.Free(all[i])
		}
	}, ""},
	{"a write to the first 8 bytes of a freed block", func(a *attacked) {
		a.h.Free(a.p)
		a.invert(0, 8)
	}, ""},
	{"a write of 1 byte to the first 8 of a freed block", func(a *attacked) {
		a.h.Free(a.p)
		testheap.RawBytes(a.p, 8)[5] ^= 0x40
	}, ""},
	{"a write of 1 byte to the second half of a freed block", func(a *attacked) {
		a.h.Free(a.p)
		a.invert(a.size*3/4, 1)
	}, ""},
	{"a write to a freed block that another P has freed", func(a *attacked) {
		elsewhere(func() { a.h.Free(a.p) })
		a.invert(0, 8)
	}, ""},
	{"a write to a freed block on its way from the cache of one P to that of another", func(a *attacked) {
		elsewhere(a.sendOff)
		a.invert(0, 8)
	}, "large blocks have no caches"},
	{"a write of two words to a freed block in the middle of a list", func(a *attacked) {
		for _, p := range a.listOf64() {
			a.h.Free(p)
		}
		words := unsafe.Slice((*uint64)(a.p), 2)
		words[0], words[1] = 0xFEED_BEEF, 0x0BAD_CAFE
	}, ""},
	{"a write to a freed block after Trim", func(a *attacked) {
		a.h.Free(a.p)
		a.h.Trim()
		a.invert(0, 8)
	}, "what the system has had, and reads as zero, is not verified"},
	{"a freed block is cleared", func(a *attacked) {
		a.h.Free(a.p)
		clear(testheap.RawBytes(a.p, a.size))
	}, "a large block is zero in whole pages then, as it may be after a Trim"},
	{"the second half of a freed block is cleared", func(a *attacked) {
		a.h.Free(a.p)
		clear(testheap.RawBytes(a.p, a.size)[a.size/2:])
	}, "likewise"},
	{"a freed block is inverted in place", func(a *attacked) {
		a.h.Free(a.p)
		a.invert(0, min(a.size, 1024))
	}, ""},
	{"another block's contents are copied over a freed block", func(a *attacked) {
		q := a.malloc()
		a.h.Free(q)
		a.h.Free(a.p)
		copy(testheap.RawBytes(a.p, 16), testheap.RawBytes(q, 16))
	}, ""},
	{"a write to a block that Realloc has moved", func(a *attacked) {
		a.move()
		a.invert(0, 8)
	}, ""},
	{"a write to a block that was freed and allocated again", func(a *attacked) {
		a.h.Free(a.p)
		q := a.malloc()
		a.invert(0, 1)
		a.h.Free(q)
	}, "the memory is that of a live block"},
	{"a write behind the new end after Realloc to half", func(a *attacked) {
		p := a.half()
		a.invert(a.size-1, 1)
		a.h.Free(p)
	}, "a block that stays in place keeps its room"},
	{"a write to a block of size 0", func(a *attacked) {
		a.p = a.h.Malloc(0)
		a.invert(0, 1)
		a.h.Free(a.p)
	}, "it has 16 bytes"},
	{"a read of a freed block", func(a *attacked) {
		a.fill()
		a.h.Free(a.p)
		a.mustBeGone(a.size - 8)
	}, "for reads, \"now\" means that the contents are gone"},
	{"a read before the old end, after Realloc to half", func(a *attacked) {
		a.fill()
		a.half()
		a.mustBeGone(a.size - 8)
	}, "a block that stays in place keeps its room"},
	{"a read of a new block whose memory was another's", func(a *attacked) {
		all := append(a.mallocs(min(300, 4<<20/a.size)), a.p) // more than can be guarded
		for _, a.p = range all {
			a.fill()
			a.h.Free(a.p)
		}
		a.p = a.malloc()
		a.mustBeGone(a.size - 8)
	}, ""},
	{"a read behind a block", func(a *attacked) {
		a.p, a.behind = a.behind, a.p
		a.fill()
		a.p, a.behind = a.behind, a.p
		a.mustBeGone(a.end())
	}, "a string without a final 0 goes on in the neighbour"},
}

// end is the offset of the first byte behind the block.
func (a *attacked) end() int { return a.h.UsableSize(a.p) }

// invert changes n bytes from offset off of the block on.
func (a *attacked) invert(off, n int) {
	b := testheap.RawBytes(unsafe.Add(a.p, off), n)
	for i := range b {
		b[i] ^= 0xFF
	}
}

const contents = 0x77

// fill fills the block.
func (a *attacked) fill() {
	b := testheap.RawBytes(a.p, a.size)
	for i := range b {
		b[i] = contents
	}
}

// mustBeGone reads 8 bytes from offset off on. The program notices something if they are
// not what fill has written.
func (a *attacked) mustBeGone(off int) {
	for _, c := range testheap.RawBytes(unsafe.Add(a.p, off), 8) {
		if c != contents {
			panic(errNoticed)
		}
	}
}

// half makes the block half as large.
func (a *attacked) half() unsafe.Pointer { return a.h.Realloc(a.p, a.size/2) }

// listOf64 returns 64 blocks, with the one that is attacked in the middle.
func (a *attacked) listOf64() []unsafe.Pointer {
	all := a.mallocs(63)
	return append(append(all[:32:32], a.p), all[32:]...)
}

// sendOff frees the block and others, more than a cache has room for. So the batch of the first of
// them has left the cache of this P, and waits for another cache.
func (a *attacked) sendOff() {
	n := 0
	if a.size <= sizeclass.MaxSize && !heap.Checks() && a.side == noSide { // else it is in no batch
		n = 5000
	}
	for _, p := range append([]unsafe.Pointer{a.p}, a.mallocs(n)...) {
		a.h.Free(p)
	}
}
