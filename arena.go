package cheap

import "unsafe"

// An Arena hands out blocks that are freed all at once. It takes chunks from
// another allocator and cuts block after block off them, which costs a
// subtraction and a compare.
//
// Blocks are aligned to 16. They are freed by [Arena.Reset], [Arena.FreeAll] or
// [Arena.Destroy], or, those that are younger than a [Mark], by
// [Arena.Release]; [Arena.Free] frees nothing by itself.
//
// An Arena may be used by one goroutine at a time. The zero value is not ready
// for use; see [NewArena], and [GetArena] for one that serves a single call of a
// C function.
type Arena struct {
	// The current chunk, whose first left bytes are free: blocks are cut off at
	// their end, so that rounding down aligns them and one number is all there
	// is to check and to change. base is aligned to 16. An arena that must not
	// be used has nothing left, so that Malloc need not ask.
	base unsafe.Pointer
	left int

	// Of an arena that belongs to the pool: what left is when the first chunk is
	// entered, where it waits, or nil, and whether it must be settled before.
	firstLeft int
	home      *arenaBox
	unsettled bool

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
	arenaDestroyed            //
)

// arenaMark is what a Mark that has not become stale stands for.
type arenaMark struct {
	serial uint64
	cur    int // these three: as in the arena, and len(mem.large), then
	left   int
	large  int
}

// A Mark is a moment in the life of an [Arena]: see [Arena.Mark].
type Mark struct {
	arena  *Arena
	index  int // in arena.marks
	serial uint64
}

const (
	arenaChunkSize = 64 << 10 // where 0 is asked for
	arenaMinChunk  = 256
)

var _ AlignedAllocator = (*Arena)(nil)

// NewArena returns an arena that takes chunks of chunkSize bytes from inner, or
// of 64 KiB if chunkSize is 0. A block that is larger than a quarter of a chunk
// and does not fit in the rest of the current one is taken from inner by
// itself, so at most a quarter of a chunk is lost at its end.
//
// The arena shares inner with whoever else uses it, and never destroys it. An
// arena that is dropped without [Arena.Destroy] keeps its chunks for good.
func NewArena(inner Allocator, chunkSize int) *Arena {
	if chunkSize < 0 {
		misuse("NewArena", 0, "the chunk size %d is negative", chunkSize)
	}
	if chunkSize == 0 {
		chunkSize = arenaChunkSize
	}
	chunkSize = max(chunkSize, arenaMinChunk)
	if s, ok := inner.(SizedAllocator); ok {
		chunkSize = min(chunkSize, s.MaxSize())
		if chunkSize < arenaMinChunk {
			misuse("NewArena", 0, "blocks of up to %d bytes are all that the inner allocator has, and chunks are at least %d; use a Fallback", chunkSize, arenaMinChunk)
		}
	}
	a := &Arena{mem: &arenaMemory{inner: inner, chunkSize: chunkSize}}
	a.mem.forgetRange()
	a.empty()
	return a
}

// Malloc returns a block of size bytes with undefined contents, or nil when
// the inner allocator has no memory. A size of 0 gives a distinct block; a
// negative size panics.
func (a *Arena) Malloc(size int) unsafe.Pointer {
	left := a.left
	if uint(size-1) >= uint(left) { // 0 and negative sizes are huge here
		return a.mallocSlow(size)
	}
	left = (left - size) &^ 15
	a.left = left
	return unsafe.Add(a.base, left) // in the chunk: 0 <= left, and below what was left
}

// mallocSlow is Malloc where the current chunk does not suffice, for a size of
// 0, and for mistakes.
//
//go:noinline
func (a *Arena) mallocSlow(size int) unsafe.Pointer {
	a.mustBeUsable("Malloc")
	if size < 0 {
		misuse("Arena.Malloc", 0, "the size %d is negative", size)
	}
	size = max(size, 1)
	return a.malloc(size, 16)
}

// AlignedMalloc is Malloc of a block whose address is a multiple of align, a
// power of two. An align that is not one panics.
func (a *Arena) AlignedMalloc(size, align int) unsafe.Pointer {
	a.mustBeUsable("AlignedMalloc")
	checkAlign("Arena.AlignedMalloc", align)
	if size < 0 {
		misuse("Arena.AlignedMalloc", 0, "the size %d is negative", size)
	}
	size = max(size, 1)
	return a.malloc(size, max(align, 16))
}

// malloc returns a block of size bytes, more than 0, aligned to align.
func (a *Arena) malloc(size, align int) unsafe.Pointer {
	m := a.mem
	if p := a.cut(size, align); p != nil {
		return p
	}
	a.unsettled = true
	if size > m.chunkSize/4 || align > m.chunkSize/4 {
		return m.newLarge(size, align)
	}
	if a.cur+1 == len(m.chunks) && !m.newChunk() {
		return nil
	}
	a.enter(a.cur + 1)
	return a.cut(size, align) // there is room for twice that
}

// cut takes a block off the current chunk, or returns nil.
func (a *Arena) cut(size, align int) unsafe.Pointer {
	if size > a.left {
		return nil
	}
	left := a.left - size
	left -= int((uintptr(a.base) + uintptr(left)) & uintptr(align-1))
	if left < 0 {
		return nil
	}
	a.left = left
	return unsafe.Add(a.base, left) // in the chunk, as in Malloc
}

// enter makes chunk i the current one. All of it is free.
func (a *Arena) enter(i int) {
	c := &a.mem.chunks[i]
	a.cur, a.base, a.left = i, c.base, c.size
}

// empty leaves the arena without a current chunk.
func (a *Arena) empty() {
	a.cur, a.base, a.left = -1, nil, 0
}

// poisonRest fills all that is free in the chunks, in builds that check.
func (a *Arena) poisonRest() {
	if !poisoning {
		return
	}
	fillFree(uintptr(a.base), uintptr(a.left))
	for _, c := range a.mem.chunks[a.cur+1:] {
		fillFree(uintptr(c.base), uintptr(c.size))
	}
}

// Free checks that ptr can be a block of the arena, and frees nothing: the
// block stays until all are freed, or those since a [Mark]. A nil ptr is
// ignored. What the arena can tell at once to be none of its live blocks
// panics: a misaligned address, one outside of all its chunks, one in the
// current chunk that is not handed out.
func (a *Arena) Free(ptr unsafe.Pointer) {
	a.mustBeUsable("Free")
	if ptr == nil {
		return
	}
	p := uintptr(ptr)
	if p%16 != 0 {
		misuse("Arena.Free", p, "%#x is not the start of a block: it is not aligned to 16; was it moved?", p)
	}
	if p-uintptr(a.base) < uintptr(a.left) {
		misuse("Arena.Free", p, "%#x is not handed out; was it freed before, by Reset or Release?", p)
	}
	if p < a.mem.lo || p >= a.mem.hi {
		misuse("Arena.Free", p, "%#x lies outside of the arena; free it with the allocator that it came from", p)
	}
}

// Mark returns a mark for [Arena.Release] to go back to. Marks nest.
func (a *Arena) Mark() Mark {
	a.mustBeUsable("Mark")
	a.unsettled = true
	now := arenaMark{0, a.cur, a.left, len(a.mem.large)}
	// Where nothing was allocated since the last mark, it is the last mark. So
	// a loop of Mark, work and Release does not pile marks up.
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

// Release frees all blocks that were allocated since m was taken. Marks taken
// since become stale; m itself can be released again later. A stale mark and
// one of another arena panic.
func (a *Arena) Release(m Mark) {
	a.mustBeUsable("Release")
	if m.arena != a {
		misuse("Arena.Release", 0, "the mark was taken from another arena")
	}
	if m.index >= len(a.marks) || a.marks[m.index].serial != m.serial {
		misuse("Arena.Release", 0, "the mark is stale: an older one was released, or the arena reset, since it was taken")
	}
	then := a.marks[m.index]
	a.marks = a.marks[:m.index+1]
	a.mem.freeLarge(then.large)
	if then.cur < 0 {
		a.empty()
	} else {
		a.enter(then.cur)
		a.left = then.left
	}
	a.poisonRest()
}

// Reset frees all blocks and keeps the chunks for those to come. Blocks that
// had a chunk of their own go back to the inner allocator. It takes time for
// each chunk. Marks become stale.
func (a *Arena) Reset() {
	a.mustBeUsable("Reset")
	a.unsettled = true
	a.marks = a.marks[:0]
	a.mem.freeLarge(0)
	a.mem.noteAll()
	a.empty()
	a.poisonRest()
}

// FreeAll frees all blocks and gives all chunks back to the inner allocator.
// The arena can be used on. It takes time for each chunk. Marks become stale.
func (a *Arena) FreeAll() {
	a.mustBeUsable("FreeAll")
	a.unsettled = true
	a.marks = a.marks[:0]
	a.mem.freeAll()
	a.empty()
}

// Destroy is FreeAll for the last time: blocks of an arena need not be freed
// before. Any use afterwards panics, but for a second Destroy, which returns
// [ErrDestroyed]. The inner allocator is not destroyed.
//
// An arena from [GetArena] goes back with [Arena.Put]; destroying it panics.
func (a *Arena) Destroy() error {
	if a.state == arenaDestroyed {
		return ErrDestroyed
	}
	if a.state != arenaReady {
		misuse("Arena.Destroy", 0, "the arena belongs to the pool; give it back with Put")
	}
	a.FreeAll()
	a.state = arenaDestroyed
	return nil
}

// mustBeUsable panics where the arena is destroyed or given back.
func (a *Arena) mustBeUsable(method string) {
	switch a.state {
	case arenaDestroyed:
		misuse("Arena."+method, 0, "the arena is destroyed")
	case arenaPut:
		misuse("Arena."+method, 0, "the arena was given back with Put; take one with GetArena")
	}
}
