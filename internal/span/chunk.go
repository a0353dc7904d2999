package span

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/osmem"
)

// A chunk is memory that an allocator has from another one and divides by
// itself: from a heap, whose span it is part of, from C, or from an allocator
// that has it in a chunk of its own. Entering it in the map lets that
// allocator find its record by the address of a block.

var errAddress = errors.New("cheap: address beyond what the span map covers")

// An entry is the head of a chunk's record, which the owner of the chunk
// allocates with AllocMeta; it has to begin with these two words.
type entry struct {
	outer uintptr // record of the chunk that this one lies in, or 0
	_     uintptr
}

// EntrySize is how many bytes at the start of a chunk's record belong to this
// package.
const EntrySize = 16

// chunks is held while the Chunk words of records change.
var chunks sync.Mutex

// EnterChunk enters the chunk of size bytes at base, both multiples of
// UnitSize, with the record at meta. A chunk that lies in another one is
// entered after it.
//
//go:norace
func EnterChunk(base, size, meta uintptr) error {
	if err := Init(); err != nil {
		return err
	}
	if err := ensure(base, size); err != nil {
		return err
	}
	chunks.Lock()
	defer chunks.Unlock()
	// All units of a chunk lie in the same outer chunk, because that is one
	// block of it.
	(*entry)(osmem.Pointer(meta)).outer = Find(base).Chunk
	for a := base; a < base+size; a += UnitSize {
		atomic.StoreUintptr(&Find(a).Chunk, meta)
	}
	return nil
}

// LeaveChunk takes a chunk out of the map again. It must be the innermost one.
//
//go:norace
func LeaveChunk(base, size, meta uintptr) {
	chunks.Lock()
	defer chunks.Unlock()
	outer := (*entry)(osmem.Pointer(meta)).outer
	for a := base; a < base+size; a += UnitSize {
		atomic.StoreUintptr(&Find(a).Chunk, outer)
	}
}

// FindChunk returns the record of the innermost chunk that addr lies in, or 0.
func FindChunk(addr uintptr) uintptr {
	if s := Lookup(addr); s != nil {
		return atomic.LoadUintptr(&s.Chunk)
	}
	return 0
}

// OuterChunk returns the record of the chunk that the chunk with the record at
// meta lies in, or 0.
func OuterChunk(meta uintptr) uintptr { return (*entry)(osmem.Pointer(meta)).outer }
