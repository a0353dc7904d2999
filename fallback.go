package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap"
)

// A Fallback is an [Allocator] of two tiers. A request that fits goes to the first
// tier, any other to the second; Free recognizes the tier by the address. The second
// tier may be a Fallback, too:
//
//	small := cheap.NewFixedBlock(heap, cheap.FixedBlockOptions{BlockSize: 64})
//	large := cheap.NewFixedBlock(heap, cheap.FixedBlockOptions{BlockSize: 1024})
//	a := cheap.NewFallback(small, cheap.NewFallback(large, heap))
//
// A Fallback holds no memory, so it has no end: who made the tiers destroys them.
// Several goroutines may use it at the same time if they may use both tiers.
type Fallback struct {
	first BoundedAllocator
	rest  Allocator
	max   int // first.MaxSize()
}

var _ AlignedAllocator = (*Fallback)(nil)

// NewFallback returns a Fallback with the given tiers. It panics if a tier is nil.
func NewFallback(first BoundedAllocator, rest Allocator) *Fallback {
	mustHaveInner("NewFallback", first)
	mustHaveInner("NewFallback", rest)
	return &Fallback{first: first, rest: rest, max: first.MaxSize()}
}

// Malloc returns a block of the first tier. If size does not fit there, or the first
// tier has no memory, it returns a block of the second tier.
func (f *Fallback) Malloc(size int) unsafe.Pointer {
	if size <= f.max {
		if p := f.first.Malloc(size); p != nil {
			return p
		}
	}
	return f.rest.Malloc(size)
}

// AlignedMalloc is like Malloc, for an address that is a multiple of align. It returns
// nil if no tier that size fits in can align that far. It panics if align is not a
// power of two.
func (f *Fallback) AlignedMalloc(size, align int) unsafe.Pointer {
	heap.MustBePowerOfTwo("Fallback.AlignedMalloc", align)
	if first, ok := f.first.(AlignedAllocator); ok && size <= f.max {
		if p := first.AlignedMalloc(size, align); p != nil {
			return p
		}
	}
	if rest, ok := f.rest.(AlignedAllocator); ok {
		return rest.AlignedMalloc(size, align)
	}
	return nil
}

// Free frees a block in the tier that it came from. It ignores a nil pointer. The
// tiers detect mistakes.
func (f *Fallback) Free(ptr unsafe.Pointer) {
	if f.first.Contains(ptr) {
		f.first.Free(ptr)
		return
	}
	f.rest.Free(ptr)
}
