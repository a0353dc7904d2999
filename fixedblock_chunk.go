package cheap

import (
	"math"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/poison"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// A fixedChunk is the record of a chunk of a [FixedBlock]. It is outside the Go heap and
// outside the chunk. The span map leads to it, so it can be found from any address. Only
// the goroutine that uses the FixedBlock uses the record; other goroutines read the id.
//
// Free blocks that were handed out before are on a list. The first word of such a block
// is the address of the next one, or base+noBlock, XORed with the allocator's key,
// multiplied by linkFactor, and XORed with the block's own address. A word that decodes
// to an address in the chunk counts as a link.
//
// If a write after free changes the word by d, decoding changes the address by the
// product of d and linkInverse. If d has low bits, the product has high bits, because
// linkInverse has bits everywhere. If d has only high bits, the product has only high
// bits. So the address is far away, whichever bytes are written.
//
// One in 2^48 of all words looks like a link by chance if chunks have 64 KiB, and one in
// 2^16 on 32-bit systems; in larger chunks more words do. So if a block looks free, Free
// searches the list for the block before it panics.
type fixedChunk struct {
	_ [span.EntrySize]byte // the map's

	base   uintptr // of the chunk, and of its first block
	size   uintptr // in bytes
	carved uintptr // blocks that have been handed out at least once: those in front
	free   uintptr // the first block of the list, or base+noBlock

	// How many frees there may be before the chunk's place among the others changes:
	// the number of live blocks, plus bias. So Free has one number to check. bias is 0
	// in an available chunk, 1 in the current one, which therefore stays, and in a full
	// chunk such that the next free makes slack 0.
	slack int

	id uintptr // FixedBlock.id
	_  [64 - span.EntrySize - 6*wordSize]byte

	bias int
	n    uintptr        // blocks that fit
	raw  unsafe.Pointer // the block of the inner allocator
	full bool           // not available, and not current

	nextAvail, prevAvail *fixedChunk
	place                int // in FixedBlock.all
}

const (
	linkFactor  = 0x9E3779B97F4A7C15 & math.MaxUint // 2^64 divided by the golden ratio
	linkInverse = 0xF1DE83E19937733D & math.MaxUint // linkFactor*linkInverse is 1

	// An address plus noBlock is the address of no block.
	noBlock = 1

	fixedChunkSize = 128
	wordSize       = unsafe.Sizeof(uintptr(0))
)

var _ [fixedChunkSize - unsafe.Sizeof(fixedChunk{})]byte

// noChunk stands for no chunk: it contains no block and has none to give. It is never
// written to.
var noChunk = fixedChunk{free: noBlock}

// live returns the number of blocks that are handed out.
func (c *fixedChunk) live() int { return c.slack - c.bias }

// setBias changes bias and keeps the number of live blocks.
func (c *fixedChunk) setBias(bias int) {
	c.slack += bias - c.bias
	c.bias = bias
}

// allocSlow is Malloc if no block came back to the current chunk, with CHEAP_CHECK, and for
// mistakes.
func (f *FixedBlock) allocSlow(size int) unsafe.Pointer {
	if uint(size) > uint(f.max) {
		panicMisuse("FixedBlock.Malloc", 0, "size %d; want 0 to %d", size, f.max)
	}
	c := f.cur
	if c.free&noBlock != 0 && c.carved >= c.n { // above n by a second goroutine only
		if !f.refill() {
			return nil
		}
		c = f.cur
	}
	if c.free&noBlock == 0 {
		if f.watched() {
			return f.allocWatched(c)
		}
		return f.Malloc(size)
	}
	p := osmem.Pointer(c.base + c.carved*f.stride) // in the chunk: carved < n
	poison.Unpoison(uintptr(p), f.stride)
	*(*uintptr)(p) = 0 // the memory may be that of an earlier chunk, and look like a link
	c.carved++
	c.slack++
	return p
}

// refill replaces the current chunk, which is full, by one that is not full. It returns
// false if there is no memory.
func (f *FixedBlock) refill() bool {
	f.mustBeUsable("Malloc")
	if c := f.cur; c != &noChunk {
		c.full = true
		c.setBias(1 - c.live())
		f.cur = &noChunk
	}
	c := f.avail
	if c == nil {
		if c = f.newChunk(); c == nil {
			return false
		}
		mustBeUnshared("FixedBlock", f.cur == &noChunk)
	} else {
		f.unlink(c)
		if c.live() == 0 {
			f.empty--
		}
	}
	c.setBias(1)
	f.cur = c
	return true
}

// freeSlow is Free of a block that is not in the chunk of the last one, and for mistakes.
func (f *FixedBlock) freeSlow(ptr unsafe.Pointer) {
	if ptr == nil {
		return
	}
	f.mustBeUsable("Free")
	p := uintptr(ptr)
	c := f.find(p)
	if c == nil || f.index(p-c.base) >= c.carved {
		f.panicNotLive(c, p)
	}
	if f.looksUp() {
		// The innermost chunk at a block of f is c, unless the block is the chunk of
		// another FixedBlock, which takes it out of the map before it frees it.
		if span.FindChunk(p) != uintptr(unsafe.Pointer(c)) {
			panicMisuse("FixedBlock.Free", p, "%#x is in a chunk that another FixedBlock has taken from this one; pass its blocks to that FixedBlock", p)
		}
		if f.watched() {
			f.fillFreed(c, p)
		}
		f.last = c
		defer func() { f.last = &noChunk }()
	}
	f.Free(ptr) // c is the last chunk now
}

// relist gives a chunk its place among the others after a free that made slack 0: a chunk
// that was full has a free block now, and any other chunk has no live block left.
func (f *FixedBlock) relist(c *fixedChunk) {
	if c.full {
		c.full = false
		c.setBias(0)
		if c.live() > 0 {
			f.linkFront(c)
			return
		}
	} else {
		f.unlink(c)
	}
	// Behind the chunks that are in use, so that it is used last.
	f.linkRear(c)
	f.empty++
	// Two at a time, because the number that may stay shrinks with the number of chunks.
	for n := 0; n < 2 && f.empty > 1+len(f.all)/4; n++ {
		c := f.rear
		f.unlink(c)
		f.empty--
		f.release(c)
	}
}

// find returns the chunk that p is in, and makes it the last one unless looksUp. It
// returns nil if there is none.
func (f *FixedBlock) find(p uintptr) *fixedChunk {
	if c := f.last; c != &noChunk && p-c.base < f.chunkSize {
		return c
	}
	for m := span.FindChunk(p); m != 0; m = span.OuterChunk(m) {
		// Records stay mapped, and all begin alike.
		if c := (*fixedChunk)(osmem.Pointer(m)); c.id == f.id {
			if !f.looksUp() {
				f.last = c
			}
			return c
		}
	}
	return nil
}

// request returns the least size to ask of the inner allocator for a chunk.
func (f *FixedBlock) request(inner Allocator) uintptr {
	if _, ok := inner.(AlignedAllocator); !ok {
		return f.overRequest()
	}
	// A FixedBlock, and a type that embeds one, aligns no further than its blocks are.
	if b, ok := inner.(interface{ blockAlign() uintptr }); ok && b.blockAlign() < f.chunkSize {
		return f.overRequest()
	}
	return f.chunkSize
}

func (f *FixedBlock) blockAlign() uintptr { return f.align }

// overRequest returns the size of a block, aligned to 8, that contains a chunk wherever
// it starts.
func (f *FixedBlock) overRequest() uintptr { return 2*f.chunkSize - 8 }

// rawChunk returns memory from the inner allocator, and the chunk in it, or nil.
func (f *FixedBlock) rawChunk() (raw unsafe.Pointer, base uintptr) {
	size := f.chunkSize
	if a, ok := f.inner.(AlignedAllocator); ok {
		if p := a.AlignedMalloc(int(size), int(size)); p != nil {
			if uintptr(p)&(size-1) == 0 {
				return p, uintptr(p)
			}
			f.inner.Free(p) // inner aligns to less, though it must not
		}
	}
	over := f.overRequest()
	if b, ok := f.inner.(BoundedAllocator); ok && over > uintptr(b.MaxSize()) {
		return nil, 0
	}
	p := f.inner.Malloc(int(over))
	if uintptr(p)&7 != 0 {
		f.inner.Free(p)
		panicMisuse("FixedBlock.Malloc", uintptr(p), "the inner allocator returned %#x, which is no multiple of 8; its blocks must be aligned to 8 or more", p)
	}
	return p, (uintptr(p) + size - 1) &^ (size - 1)
}

// newChunk returns a chunk that is not available yet, or nil.
func (f *FixedBlock) newChunk() *fixedChunk {
	raw, base := f.rawChunk()
	if raw == nil {
		return nil
	}
	m, err := span.AllocMeta(fixedChunkSize)
	if err != nil {
		f.inner.Free(raw)
		return nil
	}
	c := (*fixedChunk)(osmem.Pointer(m)) // zeroed, ours, and large enough
	c.base, c.size, c.free = base, f.chunkSize, base+noBlock
	c.n, c.raw, c.id = f.chunkSize/f.stride, raw, f.id
	if err := span.EnterChunk(base, f.chunkSize, m); err != nil {
		span.FreeMeta(m, fixedChunkSize)
		f.inner.Free(raw)
		return nil
	}
	poison.Poison(base, f.chunkSize)
	c.place = len(f.all)
	f.all = append(f.all, c)
	return c
}

// release gives a chunk back to the inner allocator. The chunk is not on the list of
// available chunks, or that list is no longer used.
func (f *FixedBlock) release(c *fixedChunk) {
	last := len(f.all) - 1
	f.all[c.place], f.all[last].place = f.all[last], c.place
	f.all = f.all[:last]
	if f.last == c {
		f.last = &noChunk
	}
	raw, m := c.raw, uintptr(unsafe.Pointer(c))
	poison.Unpoison(c.base, f.chunkSize)
	span.LeaveChunk(c.base, f.chunkSize, m)
	span.FreeMeta(m, fixedChunkSize)
	f.inner.Free(raw)
}

// linkFront puts c in front of the available chunks.
func (f *FixedBlock) linkFront(c *fixedChunk) {
	c.prevAvail, c.nextAvail = nil, f.avail
	if f.avail != nil {
		f.avail.prevAvail = c
	} else {
		f.rear = c
	}
	f.avail = c
}

// linkRear puts c behind the available chunks.
func (f *FixedBlock) linkRear(c *fixedChunk) {
	c.prevAvail, c.nextAvail = f.rear, nil
	if f.rear != nil {
		f.rear.nextAvail = c
	} else {
		f.avail = c
	}
	f.rear = c
}

// unlink takes c out of the available chunks.
func (f *FixedBlock) unlink(c *fixedChunk) {
	if c.prevAvail == nil {
		f.avail = c.nextAvail
	} else {
		c.prevAvail.nextAvail = c.nextAvail
	}
	if c.nextAvail == nil {
		f.rear = c.prevAvail
	} else {
		c.nextAvail.prevAvail = c.prevAvail
	}
}

// panicDamaged panics because the first free block of c was written to. It drops the list
// before, because the link cannot be trusted: the blocks on it are lost, and the program
// may go on.
//
//go:noinline
func (f *FixedBlock) panicDamaged(c *fixedChunk) {
	p := c.free
	c.free = c.base + noBlock
	panicMisuse("FixedBlock.Malloc", p, "the free block at %#x (%d bytes) was written to after it was freed; look for a pointer that is used after Free, for a write beyond the end of the block before it, or for two goroutines that use the FixedBlock", p, f.stride)
}

// mustNotBeFree panics if the block at p, which looks free, is free.
//
//go:noinline
func (f *FixedBlock) mustNotBeFree(c *fixedChunk, p uintptr) {
	q := c.free
	for range c.carved {
		if q == p {
			f.panicNotLive(c, p)
		}
		// The list ends at a block that was written to.
		if q&noBlock != 0 || f.index(q-c.base) >= c.carved {
			return
		}
		q = f.link(q, *(*uintptr)(osmem.Pointer(q)))
	}
}

// panicNotLive panics and says what p is: not a live block of f. c is its chunk, or nil.
//
//go:noinline
func (f *FixedBlock) panicNotLive(c *fixedChunk, p uintptr) {
	const op = "FixedBlock.Free"
	if c == nil {
		panicMisuse(op, p, "%#x is %s; this allocator has no block there: it was freed before, or is from another allocator", p, heap.WhatIs(p))
	}
	i := (p - c.base) / f.stride
	start := c.base + i*f.stride
	switch {
	case i >= c.carved:
		panicMisuse(op, p, "%#x is in memory of this allocator that was never handed out; the pointer is wrong", p)
	case p != start:
		panicMisuse(op, p, "%#x is inside the block at %#x (%d bytes), %d bytes after its start; pass the pointer that Malloc returned", p, start, f.stride, p-start)
	}
	panicMisuse(op, p, "the block at %#x (%d bytes) is free already; it is freed twice, or used after it was freed", p, f.stride)
}
