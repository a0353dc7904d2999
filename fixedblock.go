package cheap

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/poison"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// A FixedBlock allocates blocks of one size, in constant time. It takes chunks from an
// inner allocator and divides them.
//
// The first word of a free block is the link to the next free block, encoded so that
// user data, or a link with some bytes that were written to, is very unlikely to look like a
// link. So a FixedBlock detects a block that is freed twice, and a free block whose first
// word was written to. It does not touch blocks before it hands them out for the first
// time.
//
// One goroutine at a time may use a FixedBlock. If two do, blocks have two owners, or are
// found to be written to. A build with -race reports that; else Malloc panics if another
// goroutine takes a chunk while it does. A FixedBlock is made by [NewFixedBlock]; the zero
// value is not usable.
type FixedBlock struct {
	// For Malloc and Free.
	cur     *fixedChunk // the chunk that Malloc takes from, or noChunk
	last    *fixedChunk // the chunk of the block that was freed last, or noChunk
	bound   uint        // sizes below it are served at once: max+1, or 0 with CHEAP_CHECK
	key     uintptr     // part of each encoded link
	inverse uintptr     // see index
	rotate  int         // see index

	max       int     // largest size, at most stride
	stride    uintptr // from one block to the next, in bytes
	align     uintptr
	chunkSize uintptr // a power of two

	id    uintptr // in the records of chunks; each FixedBlock has its own
	inner Allocator

	all   []*fixedChunk // all chunks; each knows its place
	avail *fixedChunk   // the first chunk that has free blocks and is not current; mostly the fullest first
	rear  *fixedChunk   // the last of these
	empty int           // how many of avail have no live block

	destroyed bool
}

var _ interface {
	AlignedAllocator
	BoundedAllocator
} = (*FixedBlock)(nil)

// fixedBlockIDs is the last id that was given to a FixedBlock.
var fixedBlockIDs atomic.Uintptr

// FixedBlockOptions configure a [FixedBlock]. BlockSize is required.
type FixedBlockOptions struct {
	// BlockSize is the largest size that Malloc accepts, in bytes.
	BlockSize int

	// Align is the alignment of all blocks, a power of two. 0 means 16; less than 8
	// means 8.
	Align int

	// ChunkSize is the least size, in bytes, of the chunks that are taken from the
	// inner allocator. It is rounded up to a power of two and to 64 KiB.
	ChunkSize int
}

// NewFixedBlock returns an allocator of blocks of one size. The distance from one
// block to the next is BlockSize, rounded up to a multiple of the alignment and of 8;
// see [FixedBlock.Stride].
//
// The chunks that it takes from inner are aligned to their size. An inner allocator
// with AlignedMalloc is asked for that alignment; from any other allocator twice as
// much is taken. Empty chunks go back to inner, except for the one that Malloc takes
// from, one more, and a quarter of all chunks: this avoids releasing and reacquiring a
// chunk repeatedly. A FixedBlock never destroys inner.
//
// NewFixedBlock panics if inner is nil, if an option is negative or too large, if Align
// is not a power of two, or if inner is a [BoundedAllocator] whose blocks are too small
// for a chunk. It takes no memory.
func NewFixedBlock(inner Allocator, o FixedBlockOptions) *FixedBlock {
	const op = "NewFixedBlock"
	mustHaveInner(op, inner)
	if o.Align == 0 {
		o.Align = 16
	}
	heap.MustBePowerOfTwo(op, o.Align)
	const most = 1 << (bits.UintSize - 3) // the allocator can ask for a chunk of twice that
	if o.BlockSize <= 0 || max(o.BlockSize, o.Align, o.ChunkSize) > most || o.ChunkSize < 0 {
		panicMisuse(op, 0, "blocks of %d bytes, aligned to %d, in chunks of %d; want 0 < BlockSize, 0 <= ChunkSize, and none above %d",
			o.BlockSize, o.Align, o.ChunkSize, uint(most))
	}
	unit := uintptr(max(o.Align, 8))
	stride := (uintptr(o.BlockSize) + unit - 1) &^ (unit - 1)
	shift := bits.TrailingZeros(uint(stride))
	f := &FixedBlock{
		cur:       &noChunk,
		last:      &noChunk,
		bound:     boundOf(o.BlockSize),
		max:       o.BlockSize,
		key:       uintptr(rand.Uint64()),
		inverse:   inverse(stride >> shift),
		rotate:    -shift,
		stride:    stride,
		align:     unit,
		chunkSize: 1 << bits.Len(uint(max(span.UnitSize, stride, uintptr(o.ChunkSize)))-1),
		id:        fixedBlockIDs.Add(1),
		inner:     inner,
	}
	if b, ok := inner.(BoundedAllocator); ok && f.request(inner) > uintptr(b.MaxSize()) {
		panicMisuse(op, 0, "chunks of %d bytes do not fit in the largest block of the inner allocator, %d bytes; use a Fallback as the inner allocator", f.chunkSize, b.MaxSize())
	}
	return f
}

// MaxSize returns the largest size that Malloc accepts, in bytes:
// FixedBlockOptions.BlockSize.
func (f *FixedBlock) MaxSize() int { return f.max }

// Stride returns the distance from one block to the next, in bytes: MaxSize, rounded up.
// All of it is usable.
func (f *FixedBlock) Stride() int { return int(f.stride) }

// Malloc returns a block, or nil if the inner allocator has no memory for a chunk. It
// panics if size is negative or larger than [FixedBlock.MaxSize].
func (f *FixedBlock) Malloc(size int) unsafe.Pointer {
	c := f.cur
	p := c.free
	if p&noBlock != 0 || uint(size) >= f.bound {
		return f.allocSlow(size)
	}
	b := (*uintptr)(osmem.Pointer(p)) // a free block of the chunk, because the link to it was checked
	next := f.link(p, *b)
	if next-c.base >= c.size {
		f.panicDamaged(c)
	}
	poison.Unpoison(p, f.stride)
	*b = 0 // a live block must not look free
	c.free = next
	c.slack++
	return unsafe.Pointer(b)
}

// AlignedMalloc is like Malloc, for an address that is a multiple of align. It returns
// nil if the blocks are not aligned that far. It panics if align is not a power of two.
func (f *FixedBlock) AlignedMalloc(size, align int) unsafe.Pointer {
	heap.MustBePowerOfTwo("FixedBlock.AlignedMalloc", align)
	if uintptr(align) > f.align {
		return nil
	}
	return f.Malloc(size)
}

// Free frees a block. It ignores a nil ptr. It panics if ptr is not a live block of this
// FixedBlock: a block of another allocator, the inside of a block, or a block that is
// free already.
func (f *FixedBlock) Free(ptr unsafe.Pointer) {
	p := uintptr(ptr)
	c := f.last
	if f.index(p-c.base) >= c.carved {
		f.freeSlow(ptr)
		return
	}
	b := (*uintptr)(ptr) // a block of the chunk, by its index
	if f.link(p, *b)-c.base < c.size {
		f.mustNotBeFree(c, p)
	}
	poison.Poison(p+wordSize, f.stride-wordSize)
	*b = f.word(p, c.free)
	c.free = p
	c.slack--
	if c.slack == 0 {
		f.relist(c)
	}
}

// Contains reports whether ptr, which may have any value, points into a chunk of this
// FixedBlock.
func (f *FixedBlock) Contains(ptr unsafe.Pointer) bool {
	p := uintptr(ptr)
	return f.index(p-f.last.base) < f.last.carved || f.find(p) != nil
}

// Destroy gives all chunks back to the inner allocator. If there are live blocks, it
// does nothing and returns a [LiveError]. After a Destroy that returned nil, Destroy and
// DestroyAll return [ErrDestroyed], and Malloc and Free panic.
func (f *FixedBlock) Destroy() error {
	if f.destroyed {
		return ErrDestroyed
	}
	if live := f.liveBlocks(); live > 0 {
		return &LiveError{Op: "FixedBlock.Destroy", Blocks: int64(live), Bytes: int64(live) * int64(f.stride)}
	}
	return f.DestroyAll()
}

// liveBlocks returns the number of blocks that are handed out.
func (f *FixedBlock) liveBlocks() int {
	n := 0
	for _, c := range f.all {
		n += c.live()
	}
	return n
}

// DestroyAll is like [FixedBlock.Destroy], but frees live blocks, too. The blocks must not
// be used afterwards.
func (f *FixedBlock) DestroyAll() error {
	if f.destroyed {
		return ErrDestroyed
	}
	for len(f.all) > 0 {
		f.release(f.all[len(f.all)-1])
	}
	f.cur = &noChunk
	f.avail, f.rear, f.empty = nil, nil, 0
	f.destroyed = true
	return nil
}

// mustBeUsable panics if f is destroyed.
func (f *FixedBlock) mustBeUsable(method string) {
	if f.destroyed {
		panicMisuse("FixedBlock."+method, 0, "the allocator is destroyed")
	}
}

// word returns the first word of the free block at p, where next is the next free
// block; see fixedChunk.
func (f *FixedBlock) word(p, next uintptr) uintptr {
	return (next^f.key)*linkFactor ^ p
}

// link returns the address of the free block behind the one at p, which begins with
// word.
func (f *FixedBlock) link(p, word uintptr) uintptr {
	return (word^p)*linkInverse ^ f.key
}

// index returns off divided by the stride if there is no remainder, and otherwise a
// number that is larger than any index of a block.
//
// The stride is odd<<shift. Multiplication by the inverse of odd modulo the word size
// divides the multiples of odd, and rotation by shift divides the multiples of 1<<shift.
// Both map different words to different words. So the multiples get the small results,
// and all other words get large ones.
func (f *FixedBlock) index(off uintptr) uintptr {
	return uintptr(bits.RotateLeft(uint(off*f.inverse), f.rotate))
}

// inverse returns the number whose product with odd is 1 modulo the word size.
func inverse(odd uintptr) uintptr {
	x := odd // correct in the lowest 3 bits; each step doubles the correct bits
	for range 5 {
		x *= 2 - odd*x
	}
	return x
}
