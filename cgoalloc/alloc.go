//go:build cgo

package cgoalloc

/*
// Not C.malloc, which ends the program when memory is out. The functions are
// not declared nocallback: that would have each call say so twice, for 5 ns, and
// a pair is to cost no more than the original's. The address for free is a
// number because cgo's look at a pointer would cost as much again, in vain.
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

// An Allocator gives out memory that C code may keep. It is the same interface
// as [cheap.Allocator], so the allocators of either package can be given to the
// other.
type Allocator interface {
	// Malloc returns a block of at least size bytes with undefined contents,
	// or nil when there is no memory for it.
	Malloc(size int) unsafe.Pointer

	// Free gives a block back. A nil pointer is ignored.
	Free(pointer unsafe.Pointer)

	// Destroy gives back what the allocator holds, and returns an error if it
	// finds blocks that were never freed.
	Destroy() error
}

// DefaultAllocator is the allocator of the C library: blocks may be given to C
// code, which may free them. It may be used from any goroutine.
type DefaultAllocator struct{}

// Malloc returns a block of size bytes from C's malloc, or nil when that has no
// memory. A size of 0 gives a distinct block. A negative size panics.
func (a *DefaultAllocator) Malloc(size int) unsafe.Pointer {
	if size <= 0 {
		if size < 0 {
			panic(&cheap.MisuseError{Op: "cgoalloc.DefaultAllocator.Malloc", Reason: fmt.Sprintf("the size %d is negative", size)})
		}
		size = 1 // for 0, malloc may answer as if memory were out
	}
	return C.cheap_cgoalloc_malloc(C.size_t(size))
}

// Free gives a block to C's free. A nil pointer is ignored.
func (a *DefaultAllocator) Free(pointer unsafe.Pointer) {
	C.cheap_cgoalloc_free(C.uintptr_t(uintptr(pointer)))
}

// Destroy does nothing and returns nil.
func (a *DefaultAllocator) Destroy() error { return nil }

// CString is C.CString with memory from an allocator. It returns nil when that
// has none.
func CString(allocator Allocator, str string) *C.char {
	return (*C.char)(cheap.CString(allocator, str))
}

// CBytes is C.CBytes with memory from an allocator. It returns nil when that has
// none.
func CBytes(allocator Allocator, b []byte) unsafe.Pointer {
	return cheap.CBytes(allocator, b)
}
