package sample

import "sync/atomic"

// A Tracer is told of each sample. Its methods are called by the goroutine that allocates or
// frees, without the lock of the package, but maybe with locks of a heap held: they must not
// allocate from heaps, free, or wait for a goroutine that does. For each address the calls come
// in the order of the events.
type Tracer interface {
	// Alloc is called before the allocator returns the block. weight is how many blocks the
	// sample stands for.
	Alloc(p, size uintptr, weight float64)

	// Free is called before the block can be handed out again. It is called also for
	// blocks that were sampled before the Tracer was set.
	Free(p uintptr)
}

var tracer atomic.Pointer[Tracer]

// SetTracer sets the Tracer, or none if t is nil, and returns the old one. An event during
// the call is told to either of the two.
func SetTracer(t Tracer) (old Tracer) {
	var p *Tracer
	if t != nil {
		p = &t
	}
	if p = tracer.Swap(p); p != nil {
		old = *p
	}
	return old
}
