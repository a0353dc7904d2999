package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/heap/fill"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/poison"
)

// fillsFreed says whether an Arena and a FixedBlock fill memory that is freed. It is true if
// CHEAP_CHECK is set.
var fillsFreed = heap.Checks()

// fillRest fills the free part of the chunks, if CHEAP_CHECK is set, and has the address sanitizer
// report each access to it.
func (a *Arena) fillRest() {
	if fillsFreed || poison.Build {
		a.fillChunks()
	}
}

// fillChunks is fillRest where that does anything.
func (a *Arena) fillChunks() {
	fillUnused(a.rest.Base, uintptr(a.rest.Left))
	for _, c := range a.mem.chunks[a.cur+1:] {
		fillUnused(uintptr(c.base), uintptr(c.size))
	}
}

// fillUnused is fillRest of n bytes at p.
func fillUnused(p, n uintptr) {
	if fillsFreed {
		poison.Unpoison(p, n)
		fill.Freed.Write(unsafe.Slice((*byte)(osmem.Pointer(p)), n)) // of the arena's chunk
	}
	poison.Poison(p, n)
}
