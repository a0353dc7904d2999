//go:build cgo

package cgoalloc

/*
// Not C.malloc, which cgo makes end the program when memory is out. The functions
// are not declared nocallback: that costs about 1 ns per call, and a pair of Malloc and
// Free must cost no more than that of the original. The address for free is
// passed as a number, because cgo's check of a pointer would cost 5 ns, too, and
// is useless for a block of C.
#cgo noescape cheap_cgoalloc_malloc
#cgo noescape cheap_cgoalloc_free

#include <stdint.h>
#include <stdlib.h>

static void *cheap_cgoalloc_malloc(size_t size) {
	return malloc(size);
}

static void cheap_cgoalloc_free(uintptr_t ptr) {
	free((void *)ptr);
}
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// An Allocator returns memory that C code may keep. Each is a [cheap.Allocator], which
// has no Destroy; of those of package cheap a Heap, a Local, a FixedBlock and an Arena
// are one of this type.
type Allocator interface {
	// Malloc returns a block of at least size bytes with undefined contents,
	// or nil if there is no memory for it.
	Malloc(size int) unsafe.Pointer

	// Free frees a block. If pointer is nil, it does nothing.
	Free(pointer unsafe.Pointer)

	// Destroy releases all memory of the allocator. It returns an error if it
	// finds blocks that were never freed.
	Destroy() error
}

// DefaultAllocator is the allocator of the C library. C code may free its blocks.
// Its methods may be called from any goroutine.
type DefaultAllocator struct{}

// Malloc returns a block of size bytes from C's malloc, or nil if the C library
// has no memory. A size of 0 returns a distinct block. Malloc panics if size is
// negative.
func (a *DefaultAllocator) Malloc(size int) unsafe.Pointer {
	if size <= 0 {
		if size < 0 {
			panic(&cheap.MisuseError{Op: "cgoalloc.DefaultAllocator.Malloc", Reason: fmt.Sprintf("the size %d is negative", size)})
		}
		size = 1 // for 0, malloc may answer as if memory were out
	}
	return C.cheap_cgoalloc_malloc(C.size_t(size))
}

// Free frees a block by C's free. If pointer is nil, it does nothing.
func (a *DefaultAllocator) Free(pointer unsafe.Pointer) {
	C.cheap_cgoalloc_free(C.uintptr_t(uintptr(pointer)))
}

// Destroy does nothing and returns nil.
func (a *DefaultAllocator) Destroy() error { return nil }

// CString is C.CString with memory from an allocator. It returns nil if the
// allocator has no memory.
func CString(allocator Allocator, str string) *C.char {
	return (*C.char)(cheap.CString(allocator, str))
}

// CBytes is C.CBytes with memory from an allocator. It returns nil if the
// allocator has no memory.
func CBytes(allocator Allocator, b []byte) unsafe.Pointer {
	return cheap.CBytes(allocator, b)
}
