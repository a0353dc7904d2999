package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
)

// An Allocator allocates memory that lies outside the Go heap. The garbage
// collector neither moves nor scans this memory, and C code may keep pointers
// to it.
//
// Every allocator of this module is an Allocator. The documentation of each
// type says whether several goroutines may use it at the same time: a [Heap]
// allows it, the other types do not unless they say so.
//
// Who uses an allocator need not be able to end it, so how it ends is not part of the
// interface: a [Heap], a [Local], a [FixedBlock] and an [Arena] have Destroy, a
// [Fallback] and an allocator of C hold nothing.
//
// Memory from an Allocator must not hold the only reference to Go memory, because
// the garbage collector does not scan it.
type Allocator interface {
	// Malloc returns a block of at least size bytes, or nil if there is no
	// memory for it. The caller owns the block until it passes it to Free. The
	// contents are undefined. A size of 0 gives a distinct block, which must be
	// freed like any other. A negative size panics.
	Malloc(size int) unsafe.Pointer

	// Free frees a block. It ignores a nil pointer. It panics if ptr is not a
	// live block of this allocator and the allocator can detect that.
	Free(ptr unsafe.Pointer)
}

// The interfaces below are optional methods. Code that gets an [Allocator] and
// can use one of them looks for it with a type assertion: [New], [MakeSlice],
// [Append], [Arena] and [FixedBlock] do. A [Heap] and a [Local] have all of them
// but those of [BoundedAllocator]. The methods mean what they mean for a Heap.

// An AlignedAllocator is an [Allocator] whose blocks can have a chosen alignment.
type AlignedAllocator interface {
	Allocator

	// AlignedMalloc is like Malloc, for an address that is a multiple of align.
	// It returns nil if the allocator cannot align that far. It panics if align
	// is not a power of two.
	AlignedMalloc(size, align int) unsafe.Pointer
}

// A BoundedAllocator is an [Allocator] with a largest size, which can tell
// whether an address lies in its memory. It can be the first tier of a
// [Fallback]. A [FixedBlock] is one.
type BoundedAllocator interface {
	Allocator

	// MaxSize returns the largest size that Malloc accepts, in bytes. It never
	// changes.
	MaxSize() int

	// Contains reports whether ptr, which may have any value, points into the
	// memory of this allocator: to a live block, a free block, or the inside of
	// one. It takes constant time.
	Contains(ptr unsafe.Pointer) bool
}

// A CallocAllocator is an [Allocator] that returns zeroed blocks, and knows which
// memory is zero already.
type CallocAllocator interface {
	Allocator

	// Calloc returns a zeroed block for count elements of size bytes each, or
	// nil if there is no memory for it or the product overflows. It panics if
	// one of the numbers is negative.
	Calloc(count, size int) unsafe.Pointer
}

// A ReallocAllocator is an [Allocator] that can resize a block.
type ReallocAllocator interface {
	Allocator

	// Realloc resizes the block at ptr to at least size bytes and returns its
	// address, which may have changed. The contents are kept, up to the smaller of
	// the two sizes. If there is no memory it returns nil, and the block at ptr
	// stays as it is. With a nil ptr Realloc is Malloc. A size of 0 gives a block
	// of size 0.
	Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer
}

// A TryAllocator is an [Allocator] that says why there is no memory.
type TryAllocator interface {
	Allocator

	// TryMalloc fails where Malloc does, with nil and an error. The error wraps
	// [ErrNoMemory] or [ErrLimit].
	TryMalloc(size int) (unsafe.Pointer, error)
}

// A UsableSizeAllocator is an [Allocator] that knows the size of its blocks.
type UsableSizeAllocator interface {
	Allocator

	// UsableSize returns the size in bytes of the block at ptr, which is at
	// least the size that was asked for; the caller may use all of it. It
	// returns 0 for nil.
	UsableSize(ptr unsafe.Pointer) int
}

var _, _ interface {
	AlignedAllocator
	CallocAllocator
	ReallocAllocator
	TryAllocator
	UsableSizeAllocator
} = (*Heap)(nil), (*Local)(nil)

// Pointer returns the address addr as a pointer. It is for addresses outside the
// Go heap that a program has as numbers: a block whose address is kept in an
// index without pointers, or a resource that a release function of package own
// gets. In these cases a conversion by unsafe.Pointer(addr) is correct as well,
// but go vet reports it; and with the tag cheap_gomem, in which blocks are Go
// memory, the checks of -race end the program.
//
// addr must not be the address of Go memory: a number does not keep Go memory
// alive, and the garbage collector may have reused it.
//
//go:nosplit
func Pointer(addr uintptr) unsafe.Pointer { return osmem.Pointer(addr) }
