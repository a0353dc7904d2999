//go:build cgo && unix

package cside

/*
// Only for cside_add_quiet: the calls are those of a binding without and with these
// promises.
#cgo noescape cside_add_quiet
#cgo nocallback cside_add_quiet

#include "calls.h"
*/
import "C"

import "unsafe"

// Add returns a + b, which C computes, in one cgo call.
func Add(a, b int32) int32 { return int32(C.cside_add(C.int(a), C.int(b))) }

// AddQuiet is Add by a call that is marked noescape and nocallback.
func AddQuiet(a, b int32) int32 { return int32(C.cside_add_quiet(C.int(a), C.int(b))) }

// Malloc returns a block of the C library's malloc, nil if there is no memory, in one
// cgo call.
func Malloc(size int) unsafe.Pointer { return unsafe.Pointer(C.cside_malloc(C.size_t(size))) }

// Calloc is Malloc of a block whose bytes are 0.
func Calloc(size int) unsafe.Pointer { return unsafe.Pointer(C.cside_calloc(C.size_t(size))) }

// Free frees a block, in one cgo call.
func Free(block unsafe.Pointer) { C.cside_free((*C.char)(block)) }
