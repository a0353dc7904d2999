package cheap

import (
	"math"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/poison"
	"github.com/cheapgo/cheap/internal/watch/leaks"
)

// arenaMemory is all memory that an arena must give back. It does not refer to its
// Arena, so the cleanup of a pooled arena may hold it.
type arenaMemory struct {
	inner     Allocator
	chunkSize int
	chunks    []arenaChunk
	large     []arenaChunk // blocks with a chunk of their own, the oldest first
	pooled    bool         // of an arena of the pool

	// All blocks are in [lo, hi); other memory may be there, too.
	lo, hi uintptr
}

// An arenaChunk is memory from the inner allocator.
type arenaChunk struct {
	raw  unsafe.Pointer // the block of inner
	base unsafe.Pointer // the first aligned address in it; for a chunk, the second
	size int            // usable bytes from base, a multiple of 16
}

// newChunk adds a chunk, and returns false if there is no memory for it.
func (m *arenaMemory) newChunk() bool {
	raw := m.inner.Malloc(m.chunkSize)
	if raw == nil {
		return false
	}
	m.count(1)
	// No block begins where the chunk does: inner would take the block for the chunk,
	// and Free of inner would take the memory of all its blocks.
	pad := 16 + int(-uintptr(raw)&15)
	m.chunks = append(m.chunks, m.note(arenaChunk{raw, unsafe.Add(raw, pad), (m.chunkSize - pad) &^ 15}))
	c := m.chunks[len(m.chunks)-1]
	poison.Poison(uintptr(c.base), uintptr(c.size))
	return true
}

// newLarge returns a block with a chunk of its own, or nil.
func (m *arenaMemory) newLarge(size, align int) unsafe.Pointer {
	raw := m.rawLarge(size, align)
	if raw == nil {
		return nil
	}
	m.count(1)
	p := unsafe.Add(raw, int(-uintptr(raw)&uintptr(align-1))) // rawLarge made room for that
	m.large = append(m.large, m.note(arenaChunk{raw, p, size}))
	return p
}

// rawLarge returns memory that has room for size bytes at a multiple of align, or nil.
func (m *arenaMemory) rawLarge(size, align int) unsafe.Pointer {
	maxSize := math.MaxInt
	if b, ok := m.inner.(BoundedAllocator); ok {
		maxSize = b.MaxSize()
	}
	if size > maxSize {
		return nil
	}
	if align > 16 {
		if inner, ok := m.inner.(AlignedAllocator); ok {
			if p := inner.AlignedMalloc(size, align); p != nil {
				if uintptr(p)&uintptr(align-1) == 0 {
					return p
				}
				m.inner.Free(p) // inner aligns to less, though it must not
			}
		}
	} else if p := m.inner.Malloc(size); p == nil || uintptr(p)%16 == 0 {
		return p
	} else {
		m.inner.Free(p) // inner aligns to less than 16
	}
	if size > maxSize-(align-1) {
		return nil
	}
	return m.inner.Malloc(size + align - 1)
}

// count counts the blocks of inner that pooled arenas have.
func (m *arenaMemory) count(n int64) {
	if m.pooled {
		leaks.ArenaBlocks.Add(n)
	}
}

// note extends the range of the arena's blocks by c.
func (m *arenaMemory) note(c arenaChunk) arenaChunk {
	m.lo = min(m.lo, uintptr(c.base))
	m.hi = max(m.hi, uintptr(c.base)+uintptr(c.size))
	return c
}

// forgetRange makes the range empty.
func (m *arenaMemory) forgetRange() { m.lo, m.hi = math.MaxUint, 0 }

// noteAll makes the range that of the chunks.
func (m *arenaMemory) noteAll() {
	m.forgetRange()
	for _, c := range m.chunks {
		m.note(c)
	}
}

// freeLarge gives the blocks of m.large from index n on back.
func (m *arenaMemory) freeLarge(n int) { m.large = m.free(m.large, n) }

// freeChunks gives the chunks from index n on back.
func (m *arenaMemory) freeChunks(n int) { m.chunks = m.free(m.chunks, n) }

// free gives the elements of list from index n on back, and returns the rest. If Free of
// inner panics, because the program has freed an element before, the next call goes on
// behind that element.
func (m *arenaMemory) free(list []arenaChunk, n int) []arenaChunk {
	for i := n; i < len(list); i++ {
		raw := list[i].raw
		poison.Unpoison(uintptr(list[i].base), uintptr(list[i].size))
		list[i] = arenaChunk{}
		if raw != nil {
			m.count(-1)
		}
		m.inner.Free(raw) // ignores nil
	}
	return list[:n]
}

// freeAll gives everything back.
func (m *arenaMemory) freeAll() {
	m.freeLarge(0)
	m.freeChunks(0)
	m.forgetRange()
}
