package ledger

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/span"
)

// A units is the inner allocator of the store: units of address space, which heaps have
// their spans from, and which go back to the system when they are idle for a while. No
// heap is below the store, because to allocate from one may call package pace, with locks
// of this package held.
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
	return osmem.Pointer(base) // a unit that is handed out to this caller alone
}

// Free gives a unit back.
func (units) Free(chunk unsafe.Pointer) { giveUnit(uintptr(chunk)) }

// Trim does nothing.
func (units) Trim() {}

// Destroy does nothing.
func (units) Destroy() error { return nil }
