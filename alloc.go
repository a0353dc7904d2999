package cheap

import "unsafe"

// An Allocator gives out memory that lies outside the Go heap, that the
// garbage collector neither moves nor scans, and that C code may keep.
//
// Every allocator of this module is one. Whether it may be used from several
// goroutines at once is said by its type; [Heap] may, the others may not
// unless they say so.
//
// Memory from an Allocator must not hold the only reference to Go memory: the
// collector does not look there.
type Allocator interface {
	// Malloc returns a block of at least size bytes, or nil when there is no
	// memory for it. The block belongs to the caller until it is given to
	// Free. Its contents are undefined. A size of 0 gives a distinct block that
	// can be freed; a negative size panics.
	Malloc(size int) unsafe.Pointer

	// Free gives a block back. A nil pointer is ignored. A pointer that the
	// allocator did not give out, or that is free already, panics where the
	// allocator can tell.
	Free(ptr unsafe.Pointer)

	// Destroy gives back what the allocator holds. It returns an error, and
	// gives back nothing, if it finds blocks that were never freed.
	Destroy() error
}

// An AlignedAllocator is an [Allocator] that can be asked for an alignment.
// Allocators that are built on another one look for this method before they
// allocate more than they need and align within it.
type AlignedAllocator interface {
	Allocator

	// AlignedMalloc is Malloc of a block whose address is a multiple of align,
	// a power of two. An align that is not one panics.
	AlignedMalloc(size, align int) unsafe.Pointer
}
