package memory

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// UsableSize returns how many bytes the block at p has, which is at least what
// was asked for; all of them may be used. p is the first byte of a slice that
// Malloc, Calloc or Realloc of any Allocator returned. It is 0 for nil.
//
// It costs a look-up for each Allocator that has blocks: in a program with one,
// a few nanoseconds.
func UsableSize(p *byte) int { return UnsafeUsableSize(unsafe.Pointer(p)) }

// UintptrUsableSize is like UsableSize except that its argument is a uintptr.
func UintptrUsableSize(p uintptr) int { return UnsafeUsableSize(pointer(p)) }

// UnsafeUsableSize is like UsableSize except that its argument is an
// unsafe.Pointer.
func UnsafeUsableSize(p unsafe.Pointer) int {
	if p == nil {
		return 0
	}
	// With one heap the block is that one's, and who asks for its size does not
	// close it meanwhile.
	if h := heaps.only.Load(); h != nil {
		return h.UsableSize(p)
	}
	return heaps.usableSize(p)
}

// heaps are those of all Allocators that have one. They are here because a block
// of a cheap.Heap does not say which heap it belongs to.
var heaps registry

type registry struct {
	// mu is held for writing while the list changes, and for reading while it
	// is gone through: a heap that is on it is not destroyed.
	mu   sync.RWMutex
	list []*cheap.Heap

	only atomic.Pointer[cheap.Heap] // the one on the list, if there is one
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
		misuse("memory.Close", nil, "a copy of the Allocator has been closed already")
	}
	r.list = slices.Delete(r.list, i, i+1)
	r.setOnly()
}

// setOnly follows a change of the list. The caller holds mu.
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
	misuse("memory.UsableSize", p, "no Allocator has a block there")
	return 0
}
