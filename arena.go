package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/bump"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/poison"
)

// An Arena allocates blocks that are freed all at once. It takes chunks from an
// inner allocator and cuts blocks off them, which costs a subtraction and a compare
// for each block.
//
// Blocks are aligned to 16 bytes. [Arena.Reset], [Arena.FreeAll] and [Arena.Destroy]
// free all blocks; [Arena.Release] frees the blocks that were allocated since a
// [Mark]. [Arena.Free] frees nothing.
//
// One goroutine at a time may use an Arena. If two do, blocks have two owners. A build with
// -race reports that; else Malloc panics if another goroutine changes the Arena while it
// takes a chunk. An Arena is made by [NewArena]; the zero value is not usable. [GetArena]
// returns one for the arguments of a single call of a C function.
type Arena struct {
	// The current chunk. An arena that must not be used has nothing left in it, so
	// Malloc needs no other check.
	rest bump.Chunk

	// For an arena of the pool: Left at the start of its first chunk; the box that
	// it waits in, or nil; whether it has left that start; and its life.
	firstLeft int
	home      *arenaBox
	moved     bool
	life      *heap.Life

	state  arenaState
	cur    int // the current chunk's index in mem.chunks; -1 where there is none
	mem    *arenaMemory
	marks  []arenaMark
	serial uint64 // of the last mark
}

type arenaState uint8

const (
	arenaReady     arenaState = iota
	arenaTaken                // from GetArena
	arenaPut                  // with Put
	arenaDestroyed            // by Destroy
)

// arenaMark is the state of an arena that a valid Mark refers to.
type arenaMark struct {
	serial uint64
	cur    int // as in the arena
	left   int // as in the arena
	large  int // len(mem.large)
}

// A Mark records how much of an [Arena] is in use, so that [Arena.Release] can free
// everything that was allocated after it. [Arena.Mark] returns one.
type Mark struct {
	arena  *Arena
	index  int // in arena.marks
	serial uint64
}

const (
	arenaChunkSize = 64 << 10 // the default
	arenaMinChunk  = 256
)

var _ AlignedAllocator = (*Arena)(nil)

// NewArena returns an arena that takes chunks of chunkSize bytes from inner, or of
// 64 KiB if chunkSize is 0. A block that is larger than a quarter of a chunk, and
// does not fit in the rest of the current chunk, gets a chunk of its own; so at most
// a quarter of a chunk is lost at its end. NewArena panics if inner is nil, if
// chunkSize is negative, or if inner is a [BoundedAllocator] that has no blocks of
// 256 bytes.
//
// The arena never destroys inner, and others may use inner, too. If an Arena becomes
// unreachable without [Arena.Destroy], its chunks are never freed.
func NewArena(inner Allocator, chunkSize int) *Arena {
	mustHaveInner("NewArena", inner)
	if chunkSize < 0 {
		panicMisuse("NewArena", 0, "the chunk size %d is negative", chunkSize)
	}
	if chunkSize == 0 {
		chunkSize = arenaChunkSize
	}
	chunkSize = max(chunkSize, arenaMinChunk)
	if b, ok := inner.(BoundedAllocator); ok {
		chunkSize = min(chunkSize, b.MaxSize())
		if chunkSize < arenaMinChunk {
			panicMisuse("NewArena", 0, "the largest block of the inner allocator has %d bytes, and chunks have at least %d; use a Fallback", chunkSize, arenaMinChunk)
		}
	}
	a := &Arena{mem: &arenaMemory{inner: inner, chunkSize: chunkSize}}
	a.mem.forgetRange()
	a.empty()
	return a
}

// Malloc returns a block of size bytes with undefined contents, or nil if the inner
// allocator has no memory. A size of 0 gives a distinct block; a negative size
// panics.
func (a *Arena) Malloc(size int) unsafe.Pointer {
	if p, ok := a.rest.Cut(size); ok {
		poison.Unpoison(p, uintptr(size))
		return osmem.Pointer(p) // in the chunk
	}
	return a.allocSlow(size)
}

// allocSlow is Malloc where the current chunk is too short, for a size of 0, and
// for mistakes.
//
//go:noinline
func (a *Arena) allocSlow(size int) unsafe.Pointer {
	a.mustBeUsable("Malloc")
	if size < 0 {
		panicMisuse("Arena.Malloc", 0, "the size %d is negative", size)
	}
	size = max(size, 1)
	return a.alloc(size, 16)
}

// AlignedMalloc is like Malloc, for an address that is a multiple of align. It panics
// if align is not a power of two.
func (a *Arena) AlignedMalloc(size, align int) unsafe.Pointer {
	a.mustBeUsable("AlignedMalloc")
	heap.MustBePowerOfTwo("Arena.AlignedMalloc", align)
	if size < 0 {
		panicMisuse("Arena.AlignedMalloc", 0, "the size %d is negative", size)
	}
	size = max(size, 1)
	return a.alloc(size, max(align, 16))
}

// alloc returns a block of size bytes, more than 0, aligned to align.
func (a *Arena) alloc(size, align int) unsafe.Pointer {
	m := a.mem
	if p, ok := a.rest.CutAligned(size, align); ok {
		poison.Unpoison(p, uintptr(size))
		return osmem.Pointer(p) // in the chunk
	}
	a.moved = true
	rest := a.rest
	if size > m.chunkSize/4 || align > m.chunkSize/4 {
		p := m.newLarge(size, align)
		mustBeUnshared("Arena", p == nil || a.rest == rest)
		return p
	}
	if a.cur+1 == len(m.chunks) && !m.newChunk() {
		return nil
	}
	mustBeUnshared("Arena", a.rest == rest)
	a.use(a.cur + 1)
	p, _ := a.rest.CutAligned(size, align) // the chunk has room for twice that
	poison.Unpoison(p, uintptr(size))
	return osmem.Pointer(p)
}

// use makes chunk i the current one. All of it is free.
func (a *Arena) use(i int) {
	mustBeUnshared("Arena", i < len(a.mem.chunks))
	c := &a.mem.chunks[i]
	a.cur, a.rest = i, bump.Chunk{Base: uintptr(c.base), Left: c.size}
}

// empty leaves the arena without a current chunk.
func (a *Arena) empty() {
	a.cur, a.rest = -1, bump.Chunk{}
}

// Free frees nothing: the block stays valid until all blocks are freed, or those
// since a [Mark]. It makes an Arena an [Allocator]. Free panics if a cheap check
// shows that ptr is not a live block: if the address is misaligned, outside of all
// chunks, or in the part of the current chunk that was not handed out. It ignores a
// nil ptr.
func (a *Arena) Free(ptr unsafe.Pointer) {
	a.mustBeUsable("Free")
	if ptr == nil {
		return
	}
	p := uintptr(ptr)
	if p%16 != 0 {
		panicMisuse("Arena.Free", p, "%#x is not the start of a block, because it is not aligned to 16; pass the pointer that Malloc returned", p)
	}
	if p-a.rest.Base < uintptr(a.rest.Left) {
		panicMisuse("Arena.Free", p, "%#x is in memory that was not handed out; Reset or Release may have freed the block", p)
	}
	if p < a.mem.lo || p >= a.mem.hi {
		panicMisuse("Arena.Free", p, "%#x is outside of the arena; free the block with the allocator that it came from", p)
	}
}

// Mark returns a mark for [Arena.Release]. Marks nest.
func (a *Arena) Mark() Mark {
	a.mustBeUsable("Mark")
	a.moved = true
	now := arenaMark{0, a.cur, a.rest.Left, len(a.mem.large)}
	// If nothing was allocated since the last mark, the new mark is the last one.
	// So a loop of Mark, work and Release does not add marks.
	if n := len(a.marks); n > 0 {
		now.serial = a.marks[n-1].serial
		if now == a.marks[n-1] {
			return Mark{a, n - 1, now.serial}
		}
	}
	a.serial++
	now.serial = a.serial
	a.marks = append(a.marks, now)
	return Mark{a, len(a.marks) - 1, a.serial}
}

// Release frees all blocks that were allocated since [Arena.Mark] returned m. It
// makes all marks after m stale; m itself can be released again. Release panics if m
// is stale, or of another arena.
func (a *Arena) Release(m Mark) {
	a.mustBeUsable("Release")
	if m.arena != a {
		panicMisuse("Arena.Release", 0, "the mark is of another arena")
	}
	if m.index >= len(a.marks) || a.marks[m.index].serial != m.serial {
		panicMisuse("Arena.Release", 0, "the mark is stale; an older mark was released, or the arena was reset, after it")
	}
	then := a.marks[m.index]
	a.marks = a.marks[:m.index+1]
	a.mem.freeLarge(then.large)
	if then.cur < 0 {
		a.empty()
	} else {
		a.use(then.cur)
		a.rest.Left = then.left
	}
	a.fillRest()
}

// Reset frees all blocks, and keeps the chunks for new blocks. Blocks with a chunk of
// their own go back to the inner allocator. Its cost grows with the number of chunks.
// All marks become stale.
func (a *Arena) Reset() {
	a.mustBeUsable("Reset")
	a.moved = true
	a.marks = a.marks[:0]
	a.mem.freeLarge(0)
	a.mem.noteAll()
	a.empty()
	a.fillRest()
}

// FreeAll frees all blocks and gives all chunks back to the inner allocator. The
// arena can be used again. Its cost grows with the number of chunks. All marks become
// stale.
func (a *Arena) FreeAll() {
	a.mustBeUsable("FreeAll")
	a.moved = true
	a.marks = a.marks[:0]
	a.mem.freeAll()
	a.empty()
}

// Destroy frees all blocks and gives all chunks back to the inner allocator, which it
// does not destroy. Blocks need not be freed before. A second Destroy returns
// [ErrDestroyed]; any other use after Destroy panics.
//
// Destroy panics for an arena from [GetArena], which goes back with [Arena.Put].
func (a *Arena) Destroy() error {
	if a.state == arenaDestroyed {
		return ErrDestroyed
	}
	if a.state != arenaReady {
		panicMisuse("Arena.Destroy", 0, "the arena is from GetArena; give it back with Put")
	}
	a.FreeAll()
	a.state = arenaDestroyed
	return nil
}

// mustBeUsable panics if the arena is destroyed or given back.
func (a *Arena) mustBeUsable(method string) {
	switch a.state {
	case arenaDestroyed:
		panicMisuse("Arena."+method, 0, "the arena is destroyed")
	case arenaPut:
		panicMisuse("Arena."+method, 0, "the arena was given back with Put; call GetArena for another one")
	}
}
