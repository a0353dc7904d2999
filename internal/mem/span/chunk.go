package span

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/mem/osmem"
)

// A chunk is memory that an allocator takes from another one and divides itself. It may
// be part of a span of a heap, be memory of C, or be a block in a chunk of yet another
// allocator. The allocator enters the chunk in the map, so that it finds the record of
// the chunk by the address of a block.

var errAddress = errors.New("cheap: address beyond what the span map covers")

// An entry is what the record of a chunk begins with. The allocator that owns the chunk
// makes the record, with AllocMeta.
type entry struct {
	outer uintptr // record of the chunk that this one is in, or 0
	_     uintptr
}

// EntrySize is how many bytes at the start of a chunk's record belong to this
// package.
const EntrySize = 16

// chunks is held while the Chunk words of records change.
var chunks sync.Mutex

// EnterChunk enters the chunk of size bytes at base, both multiples of UnitSize, with
// the record at meta. A chunk that is in another one is entered after that one.
//
//go:norace
func EnterChunk(base, size, meta uintptr) error {
	mustBeChunk("span.EnterChunk", base, size, meta)
	if err := Init(); err != nil {
		return err
	}
	if err := ensure(base, size); err != nil {
		return err
	}
	chunks.Lock()
	defer chunks.Unlock()
	// All units of a chunk are in the same outer chunk, because the chunk is one
	// block of it.
	(*entry)(osmem.Pointer(meta)).outer = Find(base).Chunk
	for a := base; a < base+size; a += UnitSize {
		atomic.StoreUintptr(&Find(a).Chunk, meta)
	}
	return nil
}

// mustBeChunk panics if a chunk cannot have size bytes at base, or its record cannot be at meta.
//
//go:norace
func mustBeChunk(op string, base, size, meta uintptr) {
	osmem.Must(base%UnitSize == 0, op, "base", base)
	osmem.Must(size > 0 && size%UnitSize == 0, op, "size", size)
	osmem.Must(meta != 0 && meta%metaAlign == 0, op, "meta", meta)
}

// LeaveChunk takes a chunk out of the map. It must be the innermost one.
//
//go:norace
func LeaveChunk(base, size, meta uintptr) {
	mustBeChunk("span.LeaveChunk", base, size, meta)
	chunks.Lock()
	defer chunks.Unlock()
	outer := (*entry)(osmem.Pointer(meta)).outer
	for a := base; a < base+size; a += UnitSize {
		// Else a heap has taken the memory anew, see ForgetChunk.
		if s := Find(a); s.Chunk == meta {
			atomic.StoreUintptr(&s.Chunk, outer)
		}
	}
}

// ForgetChunk removes a unit, which a heap has just taken, from all chunks. The unit
// is in a chunk only if the allocator of the chunk has lost its memory without
// LeaveChunk: the heap or the allocator below it was destroyed.
//
//go:norace
func (s *Span) ForgetChunk() {
	if atomic.LoadUintptr(&s.Chunk) != 0 {
		chunks.Lock()
		atomic.StoreUintptr(&s.Chunk, 0)
		chunks.Unlock()
	}
}

// FindChunk returns the record of the innermost chunk that addr is in, or 0.
func FindChunk(addr uintptr) uintptr {
	if s := Lookup(addr); s != nil {
		return atomic.LoadUintptr(&s.Chunk)
	}
	return 0
}

// OuterChunk returns the record of the chunk around the chunk whose record is at meta,
// or 0.
func OuterChunk(meta uintptr) uintptr { return (*entry)(osmem.Pointer(meta)).outer }
