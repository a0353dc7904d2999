//go:build cgo && unix

package cside

/*
// Not for cside_create and cside_destroy: nocallback costs 4 ns a call, and noescape
// saves time only if a pointer to Go memory is passed.
#cgo noescape cside_destroy_all
#cgo nocallback cside_destroy_all
#cgo noescape cside_count
#cgo nocallback cside_count
#cgo noescape cside_reset_peak
#cgo nocallback cside_reset_peak

#include "block.h"
*/
import "C"

import "unsafe"

// BlockSize is the size of a block in bytes.
const BlockSize = C.cside_block_size

// C functions for blocks.
var (
	ConstructBlock = unsafe.Pointer(C.cside_construct) // void *(void *context); the context is ignored
	DestroyBlock   = unsafe.Pointer(C.cside_destruct)  // void (void *block)
)

// CreateBlock makes a block, in one cgo call. It panics if there is no memory.
func CreateBlock() unsafe.Pointer {
	p := C.cside_create()
	if p == nil {
		panic("cside: out of memory")
	}
	return unsafe.Pointer(p)
}

// Destroy destroys a block, in one cgo call, as a binding does: for a C type, cgo
// checks no pointers.
func Destroy(block unsafe.Pointer) { C.cside_destroy((*C.struct_cside_block)(block)) }

// DestroyAll destroys blocks, in one cgo call.
func DestroyAll(blocks []uintptr) {
	C.cside_destroy_all((*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(blocks))), C.size_t(len(blocks)))
}

// Counts are the blocks of the process.
type Counts struct {
	Created, Destroyed uint64 // blocks, exact
	Peak               int64  // most live bytes since ResetPeak, too low by at most 6,400 for each thread
}

// Count adds up the counts of all threads. A block that is counted as destroyed is
// counted as created, too.
func Count() Counts {
	c := C.cside_count()
	return Counts{uint64(c.created), uint64(c.destroyed), int64(c.peak)}
}

// ResetPeak sets the peak to the bytes that are live now. No block may be made or
// destroyed during the call.
func ResetPeak() { C.cside_reset_peak() }
