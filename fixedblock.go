package cheap

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/span"
)

// A FixedBlock hands out blocks of one size, in constant time. It takes chunks
// from another allocator and divides them.
//
// A block that is free holds the link to the next free one in its first word,
// encoded such that hardly anything else looks like it. So a block that is freed
// twice is found out, and so is one whose first word was written to after it was
// freed. Blocks that have never been handed out are not touched.
//
// A FixedBlock may be used by one goroutine at a time. The zero value is not
// ready for use; see [NewFixedBlock].
type FixedBlock struct {
	// For Malloc and Free.
	cur     *fixedChunk // Malloc takes from it; noChunk where there is none
	last    *fixedChunk // that of the last block freed, or noChunk
	max     uint        // largest size, at most stride
	key     uintptr     // what links are encoded with
	inverse uintptr     // see index
	rotate  int         //

	stride    uintptr // from one block to the next, in bytes
	align     uintptr
	chunkSize uintptr // a power of two

	id    uintptr // in the records of chunks; of no other FixedBlock
	inner Allocator

	all    *fixedChunk // all chunks
	avail  *fixedChunk // those with free blocks, but for the current one; the fullest are in front, mostly
	rear   *fixedChunk // the last of these
	chunks int         // how many there are
	empty  int         // how many of avail have no live block

	destroyed bool
}

var _ interface {
	AlignedAllocator
	SizedAllocator
} = (*FixedBlock)(nil)

// fixedBlockIDs is the last id that was given to a FixedBlock.
var fixedBlockIDs atomic.Uintptr

// NewFixedBlock returns an allocator of blocks of blockSize bytes, aligned to
// align, a power of two, or to 16 if align is 0. Sizes are rounded up to a
// multiple of the alignment and of 8.
//
// It takes chunks from inner whose size is a power of two, at least pageSize
// bytes and at least 64 KiB, and which are aligned to their size. An inner
// allocator with AlignedMalloc is asked for that; from another one twice as
// much is taken. Chunks that are empty go back to inner, but for the one that
// Malloc takes from, another, and a quarter of all, so that a program on the
// brink of needing one more is not slow. Inner is never destroyed.
func NewFixedBlock(inner Allocator, blockSize, align, pageSize int) (*FixedBlock, error) {
	if align == 0 {
		align = 16
	}
	const most = 1 << (bits.UintSize - 3) // a chunk of twice that can still be asked for
	switch {
	case inner == nil:
		return nil, errors.New("cheap: NewFixedBlock: no inner allocator")
	case blockSize <= 0 || blockSize > most:
		return nil, fmt.Errorf("cheap: NewFixedBlock: a block size of %d bytes", blockSize)
	case align < 0 || align > most || align&(align-1) != 0:
		return nil, fmt.Errorf("cheap: NewFixedBlock: the alignment %d is no power of two", align)
	case pageSize < 0 || pageSize > most:
		return nil, fmt.Errorf("cheap: NewFixedBlock: a page size of %d bytes", pageSize)
	}
	unit := uintptr(max(align, 8))
	stride := (uintptr(blockSize) + unit - 1) &^ (unit - 1)
	shift := bits.TrailingZeros(uint(stride))
	f := &FixedBlock{
		cur:       &noChunk,
		last:      &noChunk,
		max:       uint(blockSize),
		key:       uintptr(rand.Uint64()),
		inverse:   inverse(stride >> shift),
		rotate:    -shift,
		stride:    stride,
		align:     unit,
		chunkSize: 1 << bits.Len(uint(max(span.UnitSize, stride, uintptr(pageSize)))-1),
		id:        fixedBlockIDs.Add(1),
		inner:     inner,
	}
	if s, ok := inner.(SizedAllocator); ok && f.request(inner) > uintptr(s.MaxSize()) {
		return nil, fmt.Errorf("cheap: NewFixedBlock: chunks of %d bytes do not fit the inner allocator's largest block, %d bytes", f.chunkSize, s.MaxSize())
	}
	return f, nil
}

// MaxSize returns the largest size that Malloc takes: the block size that was
// asked for.
func (f *FixedBlock) MaxSize() int { return int(f.max) }

// BlockSize returns the distance from one block to the next in bytes, which is
// MaxSize, rounded up.
func (f *FixedBlock) BlockSize() int { return int(f.stride) }

// Malloc returns a block, or nil when the inner allocator has no memory for a
// chunk. A size that is negative or larger than [FixedBlock.MaxSize] panics.
func (f *FixedBlock) Malloc(size int) unsafe.Pointer {
	c := f.cur
	p := c.free
	if p&noBlock != 0 || uint(size) > f.max {
		return f.mallocSlow(size)
	}
	b := (*uintptr)(osmem.Pointer(p)) // a free block of the chunk: the link to it was looked at
	next := f.link(p, *b)
	if next-c.base >= c.size {
		f.abandon(c)
	}
	if poisoning {
		mustBeFilled("FixedBlock.Malloc", p, p+wordSize, f.stride-wordSize)
	}
	*b = 0 // a live block must not look free
	c.free = next
	c.slack++
	return unsafe.Pointer(b)
}

// AlignedMalloc is Malloc of a block whose address is a multiple of align, a
// power of two. It returns nil if the blocks are not aligned that far. An align
// that is no power of two panics.
func (f *FixedBlock) AlignedMalloc(size, align int) unsafe.Pointer {
	checkAlign("FixedBlock.AlignedMalloc", align)
	if uintptr(align) > f.align {
		return nil
	}
	return f.Malloc(size)
}

// Free gives a block back. A nil ptr is ignored. What is no live block of this
// FixedBlock panics: another's block, an address within a block, a block that
// is free already.
func (f *FixedBlock) Free(ptr unsafe.Pointer) {
	p := uintptr(ptr)
	c := f.last
	if f.index(p-c.base) >= c.carved {
		f.freeSlow(ptr)
		return
	}
	b := (*uintptr)(ptr) // a block of the chunk, by its index
	if f.link(p, *b)-c.base < c.size {
		f.suspect(c, p)
	}
	if poisoning {
		fillFree(p+wordSize, f.stride-wordSize)
	}
	*b = f.word(p, c.free)
	c.free = p
	c.slack--
	if c.slack == 0 {
		f.settle(c)
	}
}

// Owns reports whether ptr, which may be any number, points into a chunk of
// this FixedBlock.
func (f *FixedBlock) Owns(ptr unsafe.Pointer) bool {
	p := uintptr(ptr)
	return f.index(p-f.last.base) < f.last.carved || f.find(p) != nil
}

// Destroy gives all chunks back to the inner allocator. If there are live
// blocks, it returns a [LiveError] and does nothing. A second Destroy returns
// [ErrDestroyed], and any other use afterwards panics.
func (f *FixedBlock) Destroy() error {
	if f.destroyed {
		return ErrDestroyed
	}
	if live := f.liveBlocks(); live > 0 {
		return &LiveError{Op: "FixedBlock.Destroy", Blocks: live, Bytes: int64(live) * int64(f.stride)}
	}
	f.DestroyAll()
	return nil
}

// liveBlocks returns the number of blocks that are handed out.
func (f *FixedBlock) liveBlocks() int {
	n := 0
	for c := f.all; c != nil; c = c.nextAll {
		n += c.live()
	}
	return n
}

// DestroyAll is Destroy that frees live blocks too.
func (f *FixedBlock) DestroyAll() {
	f.mustBeUsable("DestroyAll")
	for f.all != nil {
		f.release(f.all)
	}
	f.cur = &noChunk
	f.avail, f.rear, f.empty = nil, nil, 0
	f.destroyed = true
}

func (f *FixedBlock) mustBeUsable(method string) {
	if f.destroyed {
		misuse("FixedBlock."+method, 0, "the allocator is destroyed")
	}
}

// word returns what the first word of the free block at p is when the next one is
// at next; see fixedChunk.
func (f *FixedBlock) word(p, next uintptr) uintptr {
	return uintptr(bits.ReverseBytes(uint(next))) ^ p ^ f.key
}

// link returns the address of the block behind that at p, which begins with
// word.
func (f *FixedBlock) link(p, word uintptr) uintptr {
	return uintptr(bits.ReverseBytes(uint(word ^ p ^ f.key)))
}

// index returns off divided by the distance of blocks if there is no remainder,
// and a huge number, larger than any index of a block, if there is.
//
// The distance is odd<<shift. Multiplication by the inverse of odd modulo the
// word size divides what is a multiple of odd, and rotation by shift what is a
// multiple of 1<<shift. Both map different words to different words, so as the
// small results belong to the multiples, all others get large ones.
func (f *FixedBlock) index(off uintptr) uintptr {
	return uintptr(bits.RotateLeft(uint(off*f.inverse), f.rotate))
}

// inverse returns the number that, multiplied with odd, gives 1 modulo the word
// size.
func inverse(odd uintptr) uintptr {
	x := odd // right in the lowest 3 bits, and each step doubles that
	for range 5 {
		x *= 2 - odd*x
	}
	return x
}
