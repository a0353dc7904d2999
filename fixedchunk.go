package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/span"
)

// A fixedChunk is the record of a chunk of a [FixedBlock]. It lies outside the
// Go heap and outside the chunk, and the span map leads to it, so that it can be
// found for any address. The goroutine that uses the FixedBlock uses it; others
// only read the id.
//
// The free blocks that have been handed out before are on a list. The first word
// of each is the address of the next one, or base+noBlock, with its bytes
// reversed, xored with its own address and the allocator's key. What decodes to
// an address in the chunk is taken for a link. The bytes are reversed so that a
// write after free that changes the word a little, as counting down does, leads
// far out of the chunk.
//
// Of the words that a live block may hold, one in 2^48 looks like a link by
// chance when chunks are of 64 KiB, and one in 2^16 on 32-bit systems; in larger
// chunks, more do. So a block that looks free is looked for on the list before
// anything is said about it.
type fixedChunk struct {
	_ [span.EntrySize]byte // the map's

	base   uintptr // of the chunk, and of its first block
	size   uintptr // in bytes
	carved uintptr // blocks that have been handed out at least once: those in front
	free   uintptr // the first block of the list, or base+noBlock

	// How many more frees there may be before the chunk's place among the
	// others changes: the number of live blocks, plus bias, which is 0 in an
	// available chunk. In the current one it is 1, so that it stays; in one that
	// is full, such that the next free brings slack to 0.
	slack int

	id uintptr // FixedBlock.id
	_  [64 - span.EntrySize - 6*wordSize]byte

	bias int
	n    uintptr        // blocks that fit
	raw  unsafe.Pointer // what the inner allocator gave
	full bool           // not available, and not current

	nextAvail, prevAvail *fixedChunk
	nextAll, prevAll     *fixedChunk
}

const (
	// noBlock, added to an address, makes it that of no block.
	noBlock = 1

	fixedChunkSize = 128
	wordSize       = unsafe.Sizeof(uintptr(0))
)

var _ [fixedChunkSize - unsafe.Sizeof(fixedChunk{})]byte

// noChunk stands in where there is no chunk: no block is in it and none is to be
// had. It is never written to.
var noChunk = fixedChunk{free: noBlock}

// live returns the number of blocks that are handed out.
func (c *fixedChunk) live() int { return c.slack - c.bias }

// setBias changes bias and leaves the number of live blocks as it is.
func (c *fixedChunk) setBias(bias int) {
	c.slack += bias - c.bias
	c.bias = bias
}

// mallocSlow is Malloc where no block has come back to the current chunk, and
// for mistakes.
func (f *FixedBlock) mallocSlow(size int) unsafe.Pointer {
	if uint(size) > f.max {
		misuse("FixedBlock.Malloc", 0, "%d bytes; blocks are of %d", size, f.max)
	}
	c := f.cur
	if c.carved == c.n {
		if !f.refill() {
			return nil
		}
		if c = f.cur; c.free&noBlock == 0 {
			return f.Malloc(size)
		}
	}
	p := osmem.Pointer(c.base + c.carved*f.stride) // in the chunk: carved < n
	*(*uintptr)(p) = 0                             // the memory may be as it was when it was this chunk before
	c.carved++
	c.slack++
	return p
}

// refill replaces the current chunk, which is full, by one that is not. It
// returns false if there is no memory.
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

// freeSlow is Free where the block is not in the chunk of the one before, and for
// mistakes.
func (f *FixedBlock) freeSlow(ptr unsafe.Pointer) {
	if ptr == nil {
		return
	}
	f.mustBeUsable("Free")
	p := uintptr(ptr)
	c := f.find(p)
	if c == nil || f.index(p-c.base) >= c.carved {
		f.accuse(c, p)
	}
	f.Free(ptr) // c is the last chunk now
}

// settle gives a chunk its place after a free that has brought slack to 0: one
// that was full has a free block now, and another one has no live block left.
func (f *FixedBlock) settle(c *fixedChunk) {
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
	// Behind those that are still in use, so that it is the last to be used.
	f.linkRear(c)
	f.empty++
	// Two at a time, since what may stay shrinks with what there is.
	for n := 0; n < 2 && f.empty > 1+f.chunks/4; n++ {
		c := f.rear
		f.unlink(c)
		f.empty--
		f.release(c)
	}
}

// find returns the chunk that p lies in, and makes it the last one, or returns
// nil.
func (f *FixedBlock) find(p uintptr) *fixedChunk {
	if c := f.last; c != &noChunk && p-c.base < f.chunkSize {
		return c
	}
	for m := span.FindChunk(p); m != 0; m = span.OuterChunk(m) {
		// Records stay mapped, and all begin alike.
		if c := (*fixedChunk)(osmem.Pointer(m)); c.id == f.id {
			f.last = c
			return c
		}
	}
	return nil
}

// request returns how much is to be asked of the inner allocator for a chunk, at
// least.
func (f *FixedBlock) request(inner Allocator) uintptr {
	if _, ok := inner.(AlignedAllocator); !ok {
		return f.overRequest()
	}
	// A FixedBlock, and what embeds one, aligns no further than its blocks are.
	if b, ok := inner.(interface{ blockAlign() uintptr }); ok && b.blockAlign() < f.chunkSize {
		return f.overRequest()
	}
	return f.chunkSize
}

func (f *FixedBlock) blockAlign() uintptr { return f.align }

// overRequest returns how many bytes have a chunk in them wherever they lie, if
// they are aligned to 8.
func (f *FixedBlock) overRequest() uintptr { return 2*f.chunkSize - 8 }

// rawChunk returns memory from the inner allocator, and the chunk in it, or nil.
func (f *FixedBlock) rawChunk() (raw unsafe.Pointer, base uintptr) {
	size := f.chunkSize
	if a, ok := f.inner.(AlignedAllocator); ok {
		if p := a.AlignedMalloc(int(size), int(size)); p != nil {
			return p, uintptr(p)
		}
	}
	over := f.overRequest()
	if s, ok := f.inner.(SizedAllocator); ok && over > uintptr(s.MaxSize()) {
		return nil, 0
	}
	p := f.inner.Malloc(int(over))
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
	c.nextAll = f.all
	if f.all != nil {
		f.all.prevAll = c
	}
	f.all = c
	f.chunks++
	return c
}

// release gives a chunk back to the inner allocator. It is not on the list of
// available ones, or that list is not used any more.
func (f *FixedBlock) release(c *fixedChunk) {
	if c.prevAll == nil {
		f.all = c.nextAll
	} else {
		c.prevAll.nextAll = c.nextAll
	}
	if c.nextAll != nil {
		c.nextAll.prevAll = c.prevAll
	}
	f.chunks--
	if f.last == c {
		f.last = &noChunk
	}
	raw, m := c.raw, uintptr(unsafe.Pointer(c))
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

// abandon panics because the first free block of c has been written to. The
// list is given up before, as there is no telling where it goes on: its blocks
// are not handed out again, and the program may go on.
//
//go:noinline
func (f *FixedBlock) abandon(c *fixedChunk) {
	p := c.free
	c.free = c.base + noBlock
	misuse("FixedBlock.Malloc", p, "the free block at %#x (%d bytes) has been written to; something uses it after it was freed, or writes beyond the block in front of it", p, f.stride)
}

// suspect panics if the block at p, which looks free, is.
//
//go:noinline
func (f *FixedBlock) suspect(c *fixedChunk, p uintptr) {
	q := c.free
	for range c.carved {
		if q == p {
			f.accuse(c, p)
		}
		// Behind a block that has been written to there is nothing.
		if q&noBlock != 0 || f.index(q-c.base) >= c.carved {
			return
		}
		q = f.link(q, *(*uintptr)(osmem.Pointer(q)))
	}
}

// accuse panics and says what p is, which is no live block of f. Its chunk is c,
// if it has one.
//
//go:noinline
func (f *FixedBlock) accuse(c *fixedChunk, p uintptr) {
	const op = "FixedBlock.Free"
	if c == nil {
		misuse(op, p, "%#x is %s; this allocator has no block there: it was freed before, or another allocator gave it out", p, whatIs(p))
	}
	i := (p - c.base) / f.stride
	start := c.base + i*f.stride
	switch {
	case i >= c.carved:
		misuse(op, p, "%#x lies in memory of this allocator that it has never handed out; the pointer is wrong", p)
	case p != start:
		misuse(op, p, "%#x lies inside the block at %#x (%d bytes), %d bytes behind its start; pass the pointer that Malloc returned", p, start, f.stride, p-start)
	}
	misuse(op, p, "the block at %#x (%d bytes) is free already; it is freed twice, or used after it was freed", p, f.stride)
}
