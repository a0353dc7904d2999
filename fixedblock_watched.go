package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/fill"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/poison"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// With CHEAP_CHECK a freed block of a FixedBlock is filled, and verified before it is handed out
// again. Each call takes the slow path then. Malloc does so because bound is 0, and Free because
// last is noChunk.

// boundOf returns FixedBlock.bound where the largest size is size.
func boundOf(size int) uint {
	if fillsFreed {
		return 0
	}
	return uint(size) + 1
}

// looksUp reports whether Free looks up each block in the map, so that last is noChunk between
// calls: a block of f may be the chunk of another FixedBlock, or CHEAP_CHECK is set.
func (f *FixedBlock) looksUp() bool { return f.stride >= span.UnitSize || f.watched() }

// watched reports whether freed blocks of f are filled. NewFixedBlock decides.
func (f *FixedBlock) watched() bool { return f.bound == 0 }

// behindLink returns the bytes of the block at p behind its first word.
func (f *FixedBlock) behindLink(p uintptr) []byte {
	return unsafe.Slice((*byte)(osmem.Pointer(p+wordSize)), f.stride-wordSize) // a block of a chunk of f
}

// allocWatched returns the first free block of c. It panics if the block was written to.
func (f *FixedBlock) allocWatched(c *fixedChunk) unsafe.Pointer {
	p := c.free
	poison.Unpoison(p, f.stride)
	b := f.behindLink(p)
	if from, to := fill.Freed.Changed(b); from < to {
		fill.Freed.Write(b) // the next call hands it out
		d := fill.Damage{Block: p, Size: f.stride, From: wordSize + uintptr(from), To: wordSize + uintptr(to), Exact: true}
		panicMisuse("FixedBlock.Malloc", p, "%s", d.Reason())
	}
	f.bound = 1
	defer func() { f.bound = 0 }()
	return f.Malloc(0)
}

// fillFreed fills the block of c at p, which is about to be freed.
func (f *FixedBlock) fillFreed(c *fixedChunk, p uintptr) {
	if f.link(p, *(*uintptr)(osmem.Pointer(p)))-c.base < c.size {
		f.mustNotBeFree(c, p)
	}
	fill.Freed.Write(f.behindLink(p))
}
