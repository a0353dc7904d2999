package batch

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// A units is the inner allocator of the store. It allocates units of package span, as
// heaps do; the memory of idle units goes back to the system after a while. The store
// does not allocate from a heap, because a heap may call package pace, and the store is
// used with locks of this package held.
type units struct{}

// Malloc is not called: the store asks for aligned chunks.
func (units) Malloc(size int) unsafe.Pointer { return nil }

// AlignedMalloc returns a unit.
func (units) AlignedMalloc(size, align int) unsafe.Pointer {
	if size != span.UnitSize || align > span.UnitSize {
		return nil
	}
	base, err := takeUnit()
	if err != nil {
		return nil
	}
	nameUnit(base)
	return osmem.Pointer(base) // a unit that is handed out to this caller alone
}

// Free gives a unit back.
func (units) Free(chunk unsafe.Pointer) {
	unnameUnit(uintptr(chunk))
	giveUnit(uintptr(chunk))
}

// Trim does nothing.
func (units) Trim() {}

// named are the units that bear the name of owners in /proc/self/smaps. They are in regions
// that bear the name of heaps. Each run of named units may be one more mapping, and Go's
// runtime ends the program when it cannot have another mapping. So there are at most
// mostNamed named units. It is under store.mu.
var named map[uintptr]struct{}

const mostNamed = 1024

func nameUnit(base uintptr) {
	if !osmem.Names() || len(named) == mostNamed {
		return
	}
	if named == nil {
		named = map[uintptr]struct{}{}
	}
	named[base] = struct{}{}
	osmem.Name(base, span.UnitSize, osmem.Owners)
}

func unnameUnit(base uintptr) {
	if _, ok := named[base]; ok {
		delete(named, base)
		osmem.Name(base, span.UnitSize, osmem.Heap)
	}
}
