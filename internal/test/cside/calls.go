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

// Calls records calls of functions of this package in a list of package calls.
//go:generate go run github.com/cheapgo/cheap/calls/callgen -include calls.h -strip cside_ -package cside -o lists.go cside_add cside_mix

// Add returns a + b, which C computes, in one cgo call.
func Add(a, b int32) int32 { return int32(C.cside_add(C.int(a), C.int(b))) }

// AddQuiet is Add by a call that is marked noescape and nocallback.
func AddQuiet(a, b int32) int32 { return int32(C.cside_add_quiet(C.int(a), C.int(b))) }

// Mix returns the sum of its arguments, each by another factor.
func Mix(a, b, c, d int32, e, f, g, h float64) float64 {
	return float64(C.cside_mix(C.int(a), C.int(b), C.int(c), C.int(d), C.double(e), C.double(f), C.double(g), C.double(h)))
}

// Malloc returns a block of the C library's malloc, nil if there is no memory, in one
// cgo call.
func Malloc(size int) unsafe.Pointer { return unsafe.Pointer(C.cside_malloc(C.size_t(size))) }

// Calloc is Malloc of a block whose bytes are 0.
func Calloc(size int) unsafe.Pointer { return unsafe.Pointer(C.cside_calloc(C.size_t(size))) }

// Free frees a block, in one cgo call.
func Free(block unsafe.Pointer) { C.cside_free((*C.char)(block)) }
