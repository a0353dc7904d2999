package memory

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// UsableSize returns the size in bytes of the block at p, which is at least the
// requested size. All of it may be used. p is the first byte of a slice that Malloc,
// Calloc or Realloc of any Allocator returned, or nil, for which UsableSize returns 0.
//
// UsableSize looks the block up in each Allocator that has blocks. In a program with
// one Allocator that takes a few nanoseconds.
func UsableSize(p *byte) int { return UnsafeUsableSize(unsafe.Pointer(p)) }

// UintptrUsableSize is like UsableSize except that its argument is a uintptr.
func UintptrUsableSize(p uintptr) int { return UnsafeUsableSize(cheap.Pointer(p)) }

// UnsafeUsableSize is like UsableSize except that its argument is an
// unsafe.Pointer.
func UnsafeUsableSize(p unsafe.Pointer) int {
	if p == nil {
		return 0
	}
	// If there is one heap, the block belongs to it. The caller must not close it at
	// the same time.
	if h := heaps.only.Load(); h != nil {
		return h.UsableSize(p)
	}
	return heaps.usableSize(p)
}

// heaps has the heaps of all Allocators. It is needed because a block of a
// cheap.Heap does not tell which heap it belongs to.
var heaps registry

type registry struct {
	// mu is held for writing while the list changes, and for reading while it is
	// searched, so that no heap on it is destroyed.
	mu   sync.RWMutex
	list []*cheap.Heap

	only atomic.Pointer[cheap.Heap] // the only heap on the list, or nil
}

func (r *registry) add(h *cheap.Heap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, h)
	r.setOnly()
}

func (r *registry) remove(h *cheap.Heap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.list, h)
	if i < 0 {
		misuse("memory.Close", nil, "a copy of the Allocator is closed already; close one copy only")
	}
	r.list = slices.Delete(r.list, i, i+1)
	r.setOnly()
}

// setOnly sets only after a change of the list. The caller holds mu.
func (r *registry) setOnly() {
	if len(r.list) == 1 {
		r.only.Store(r.list[0])
	} else {
		r.only.Store(nil)
	}
}

func (r *registry) usableSize(p unsafe.Pointer) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, h := range r.list {
		if h.Owns(p) {
			return h.UsableSize(p)
		}
	}
	misuse("memory.UsableSize", p, "no Allocator has a block there; pass the start of a live block")
	return 0
}
