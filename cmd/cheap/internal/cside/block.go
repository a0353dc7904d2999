//go:build cgo && unix

package cside

/*
// Not cside_create and cside_destroy: nocallback takes 4 ns of each call, and
// spares something only where a pointer to Go memory is passed.
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

// CreateBlock makes a block, in one cgo call. It panics when memory is out.
func CreateBlock() unsafe.Pointer {
	p := C.cside_create()
	if p == nil {
		panic("cside: out of memory")
	}
	return unsafe.Pointer(p)
}

// Destroy destroys a block, in one cgo call, as a binding does it: C's own type
// needs none of cgo's checks of pointers.
func Destroy(block unsafe.Pointer) { C.cside_destroy((*C.struct_cside_block)(block)) }

// DestroyAll destroys blocks, in one cgo call.
func DestroyAll(blocks []uintptr) {
	C.cside_destroy_all((*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(blocks))), C.size_t(len(blocks)))
}

// Counts are the blocks of the process.
type Counts struct {
	Created, Destroyed uint64 // blocks, exact
	Peak               int64  // bytes that were live at once since ResetPeak, short by at most 6,400 for each thread
}

// Count adds up what all threads have done. A block that it counts as destroyed
// is counted as created, too.
func Count() Counts {
	c := C.cside_count()
	return Counts{uint64(c.created), uint64(c.destroyed), int64(c.peak)}
}

// ResetPeak takes what is live now for the peak. No block may be made or
// destroyed meanwhile.
func ResetPeak() { C.cside_reset_peak() }
