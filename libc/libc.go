//go:build cgo

package libc

/*
// These functions neither keep their arguments nor call back into Go. They are
// static and ours, so the promise cannot be broken elsewhere.
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
#cgo noescape cheap_libc_trim
#cgo nocallback cheap_libc_trim

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

// Not C.malloc, which cgo treats apart: it ends the program when memory is out.
static void *cheap_libc_malloc(size_t size) {
	return malloc(size);
}

static void *cheap_libc_calloc(size_t count, size_t size) {
	return calloc(count, size);
}

static void *cheap_libc_realloc(uintptr_t ptr, size_t size) {
	return realloc((void *)ptr, size);
}

// cheap_libc_memalign returns memory that free takes. aligned_alloc would do on
// most systems, but wants a size that is a multiple of the alignment, and came
// to macOS late. Windows has no function of this kind: what _aligned_malloc
// returns must not reach free.
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

// Addresses of blocks come as numbers: cgo looks at every pointer that is
// passed, whether it leads to Go memory with Go pointers in it, which costs 5 ns
// and is in vain for a block of C.
static void cheap_libc_free(uintptr_t ptr) {
	free((void *)ptr);
}

static void cheap_libc_trim(void) {
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// Allocator is the allocator of the C library. Blocks may be given to C code,
// which may free them, and blocks that C code took from malloc may be given to
// [Allocator.Free].
//
// The zero value is ready for use. It has no state, so all values are the same
// allocator, and all methods may be called from any goroutine.
//
// The C library trusts its caller. A pointer that it did not give out, or a
// block that is freed twice, is undefined behaviour, as in C.
type Allocator struct{}

var _ cheap.AlignedAllocator = Allocator{}

// Malloc returns a block of size bytes with undefined contents, or nil when the
// C library has no memory. A size of 0 gives a distinct block. A negative size
// panics.
func (Allocator) Malloc(size int) unsafe.Pointer {
	// The C library may answer a size of 0 with NULL, which would read as out
	// of memory.
	if size <= 0 {
		size = atLeast1("Malloc", size)
	}
	return C.cheap_libc_malloc(C.size_t(size))
}

// Calloc returns a block of count*size zero bytes, or nil when the product
// overflows or the C library has no memory. A negative argument panics.
func (Allocator) Calloc(count, size int) unsafe.Pointer {
	if count <= 0 {
		count = atLeast1("Calloc", count)
	}
	if size <= 0 {
		size = atLeast1("Calloc", size)
	}
	return C.cheap_libc_calloc(C.size_t(count), C.size_t(size))
}

// Realloc moves a block to one of size bytes, keeps the contents up to the
// smaller of the two sizes, and returns it. The old pointer is no longer valid
// then, unless the result is nil: nil says that there is no memory, and the old
// block is as it was. A nil ptr makes it Malloc. A size of 0 gives a block of
// size 0, not a freed one. A negative size panics.
func (Allocator) Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer {
	if size <= 0 {
		size = atLeast1("Realloc", size)
	}
	return C.cheap_libc_realloc(C.uintptr_t(uintptr(ptr)), C.size_t(size))
}

// AlignedMalloc is Malloc of a block whose address is a multiple of align, a
// power of two. An align that is not one panics. The block goes to
// [Allocator.Free], or to free in C, like any other.
//
// On Windows, whose C library cannot do that, an align of more than two
// pointers returns nil.
func (Allocator) AlignedMalloc(size, align int) unsafe.Pointer {
	if size <= 0 {
		size = atLeast1("AlignedMalloc", size)
	}
	if align <= 0 || align&(align-1) != 0 {
		misuse("Allocator.AlignedMalloc", "the alignment %d is no power of two", align)
	}
	return C.cheap_libc_memalign(C.size_t(size), C.size_t(align))
}

// Free gives a block back to the C library. A nil pointer is ignored.
func (Allocator) Free(ptr unsafe.Pointer) {
	C.cheap_libc_free(C.uintptr_t(uintptr(ptr)))
}

// Trim asks the C library to give memory that it holds for later back to the
// operating system. It does nothing where the C library is not glibc.
func (Allocator) Trim() {
	C.cheap_libc_trim()
}

// Destroy does nothing and returns nil: the C library keeps no account of who
// allocated what.
func (Allocator) Destroy() error { return nil }

// atLeast1 returns 1 for a size of 0, and panics for one below, in the name of
// a method of Allocator.
func atLeast1(method string, size int) int {
	if size < 0 {
		misuse("Allocator."+method, "the size %d is negative", size)
	}
	return 1
}

// misuse panics with a [cheap.MisuseError] in the name of a function or method
// of this package.
func misuse(name, format string, args ...any) {
	panic(&cheap.MisuseError{Op: "libc." + name, Reason: fmt.Sprintf(format, args...)})
}
