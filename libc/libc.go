//go:build cgo

package libc

/*
// These functions neither keep their arguments nor call back into Go. They are
// static functions of this file, so no other code can break that promise.
#cgo noescape cheap_libc_malloc
#cgo nocallback cheap_libc_malloc
#cgo noescape cheap_libc_calloc
#cgo nocallback cheap_libc_calloc
#cgo noescape cheap_libc_realloc
#cgo nocallback cheap_libc_realloc
#cgo noescape cheap_libc_memalign
#cgo nocallback cheap_libc_memalign
#cgo noescape cheap_libc_free
#cgo nocallback cheap_libc_free

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// Not C.malloc, which cgo makes end the program when memory is out.
static void *cheap_libc_malloc(size_t size) {
	return malloc(size);
}

static void *cheap_libc_calloc(size_t count, size_t size) {
	return calloc(count, size);
}

static void *cheap_libc_realloc(uintptr_t ptr, size_t size) {
	return realloc((void *)ptr, size);
}

// cheap_libc_memalign returns memory that free accepts. aligned_alloc would do on
// most systems, but requires a size that is a multiple of the alignment, and
// macOS has it only since 10.15. Windows has no such function: free does not
// accept memory of _aligned_malloc.
static void *cheap_libc_memalign(size_t size, size_t align) {
#ifdef _WIN32
	const size_t natural = 2 * sizeof(void *);
#else
	const size_t natural = _Alignof(max_align_t);
#endif
	if (align <= natural) {
		return malloc(size);
	}
#ifdef _WIN32
	return NULL;
#else
	void *ptr;
	return posix_memalign(&ptr, align, size) == 0 ? ptr : NULL;
#endif
}

// Addresses of blocks are passed as numbers: cgo checks for every pointer that is
// passed whether it points to Go memory with Go pointers in it, which costs 5 ns
// and is useless for a block of C.
static void cheap_libc_free(uintptr_t ptr) {
	free((void *)ptr);
}

*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// Allocator is the allocator of the C library. C code may free its blocks, and
// [Allocator.Free] may free blocks that C code took from malloc.
//
// The zero value is ready for use. It has no state, so all values are the same
// allocator. All methods may be called from any goroutine.
//
// The C library detects no mistakes. To free a pointer that it did not return, or
// a block twice, is undefined behaviour, as in C.
type Allocator struct{}

var _ cheap.AlignedAllocator = Allocator{}

// Malloc returns a block of size bytes with undefined contents, or nil if the C
// library has no memory. A size of 0 returns a distinct block. Malloc panics if
// size is negative.
func (Allocator) Malloc(size int) unsafe.Pointer {
	// The C library may return NULL for a size of 0, which would mean that memory
	// is out.
	if size <= 0 {
		size = mustNotBeNegative("Malloc", size)
	}
	return C.cheap_libc_malloc(C.size_t(size))
}

// Calloc returns a block of count*size zeroed bytes, or nil if the product
// overflows or the C library has no memory. It panics if an argument is negative.
func (Allocator) Calloc(count, size int) unsafe.Pointer {
	if count <= 0 {
		count = mustNotBeNegative("Calloc", count)
	}
	if size <= 0 {
		size = mustNotBeNegative("Calloc", size)
	}
	return C.cheap_libc_calloc(C.size_t(count), C.size_t(size))
}

// Realloc resizes the block at ptr to size bytes and returns its address, which
// may change. The contents are kept up to the smaller of the two sizes. If the
// result is nil, the C library has no memory, and the old block is unchanged;
// otherwise ptr is no longer valid. If ptr is nil, Realloc is Malloc. A size of 0
// returns a block, and does not free it. Realloc panics if size is negative.
func (Allocator) Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer {
	if size <= 0 {
		size = mustNotBeNegative("Realloc", size)
	}
	return C.cheap_libc_realloc(C.uintptr_t(uintptr(ptr)), C.size_t(size))
}

// AlignedMalloc is [Allocator.Malloc] of a block whose address is a multiple of
// align. [Allocator.Free] and free of C accept the block. AlignedMalloc panics if
// align is not a power of two.
//
// On Windows, whose C library has no such function, AlignedMalloc returns nil for
// an align of more than two pointers.
func (Allocator) AlignedMalloc(size, align int) unsafe.Pointer {
	if size <= 0 {
		size = mustNotBeNegative("AlignedMalloc", size)
	}
	if align <= 0 || align&(align-1) != 0 {
		panicMisuse("Allocator.AlignedMalloc", "the alignment %d is not a power of two", align)
	}
	return C.cheap_libc_memalign(C.size_t(size), C.size_t(align))
}

// Free frees a block. If ptr is nil, it does nothing.
func (Allocator) Free(ptr unsafe.Pointer) {
	C.cheap_libc_free(C.uintptr_t(uintptr(ptr)))
}

// Trim is [Trim].
func (Allocator) Trim() { Trim() }

// mustNotBeNegative returns 1 for a size of 0. It panics for a negative size, in the name
// of a method of Allocator.
func mustNotBeNegative(method string, size int) int {
	if size < 0 {
		panicMisuse("Allocator."+method, "the size %d is negative", size)
	}
	return 1
}

// panicMisuse panics with a [cheap.MisuseError] in the name of a function or method
// of this package.
func panicMisuse(name, format string, args ...any) {
	panic(&cheap.MisuseError{Op: "libc." + name, Reason: fmt.Sprintf(format, args...)})
}
