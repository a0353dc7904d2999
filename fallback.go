package cheap

import "unsafe"

// A SizedAllocator is an [Allocator] with a largest size, which can tell its
// own memory from any other. It can be a tier of a [Fallback]. [FixedBlock] is
// one.
type SizedAllocator interface {
	Allocator

	// MaxSize is the largest size that Malloc takes. It does not change.
	MaxSize() int

	// Owns reports whether ptr, which may be any number, points into memory of
	// this allocator. It does so in constant time.
	Owns(ptr unsafe.Pointer) bool
}

// A Fallback is an [Allocator] of two tiers. What fits goes to the first, the
// rest falls through to the second; Free finds the way back from the address.
// The second tier may be a Fallback itself:
//
//	small, err := cheap.NewFixedBlock(heap, 64, 16, 0)
//	...
//	large, err := cheap.NewFixedBlock(heap, 1024, 16, 0)
//	...
//	a := cheap.NewFallback(small, cheap.NewFallback(large, heap))
//
// A Fallback holds no memory and no state of its own: it may be used from
// several goroutines at once if both tiers may.
type Fallback struct {
	first SizedAllocator
	rest  Allocator
	max   int // first.MaxSize()

	// What Destroy has done so far; not used elsewhere.
	firstDestroyed, destroyed bool
}

var _ AlignedAllocator = (*Fallback)(nil)

// NewFallback returns a Fallback that sends what fits to first and the rest to
// rest. Its Destroy destroys both.
func NewFallback(first SizedAllocator, rest Allocator) *Fallback {
	return &Fallback{first: first, rest: rest, max: first.MaxSize()}
}

// Malloc returns a block of the first tier, or, if size does not fit there or
// the tier has no memory, one of the second.
func (f *Fallback) Malloc(size int) unsafe.Pointer {
	if size <= f.max {
		if p := f.first.Malloc(size); p != nil {
			return p
		}
	}
	return f.rest.Malloc(size)
}

// AlignedMalloc is Malloc of a block whose address is a multiple of align, a
// power of two. It returns nil if no tier that size fits in can align so. An
// align that is no power of two panics.
func (f *Fallback) AlignedMalloc(size, align int) unsafe.Pointer {
	checkAlign("Fallback.AlignedMalloc", align)
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

// Free gives a block back to the tier that it came from. A nil pointer is
// ignored. Mistakes are found by the tiers.
func (f *Fallback) Free(ptr unsafe.Pointer) {
	if f.first.Owns(ptr) {
		f.first.Free(ptr)
		return
	}
	f.rest.Free(ptr)
}

// Destroy destroys the first tier and then the second. It stops at the first
// error, and goes on from there when it is called again. After that it returns
// [ErrDestroyed].
func (f *Fallback) Destroy() error {
	if f.destroyed {
		return ErrDestroyed
	}
	if !f.firstDestroyed {
		if err := f.first.Destroy(); err != nil {
			return err
		}
		f.firstDestroyed = true
	}
	if err := f.rest.Destroy(); err != nil {
		return err
	}
	f.destroyed = true
	return nil
}
