//go:build cgo && unix

package cside

/*
#cgo noescape cside_pairs
#cgo nocallback cside_pairs
#cgo noescape cside_replace
#cgo nocallback cside_replace
#cgo noescape cside_free_all
#cgo nocallback cside_free_all

#include "pairs.h"
*/
import "C"

import "unsafe"

// Pairs mallocs and frees a block of size bytes n times, in C. It returns how many blocks there were.
func Pairs(n, size int) int { return int(C.cside_pairs(C.size_t(n), C.size_t(size))) }

// A Step of a replacement: the block in the slot is replaced by one of Size bytes.
type Step struct{ Slot, Size uint32 }

const (
	_ = -(unsafe.Sizeof(Step{}) ^ C.sizeof_struct_cside_step)
	_ = -(unsafe.Offsetof(Step{}.Size) ^ unsafe.Offsetof(C.struct_cside_step{}.size))
)

// Replace does n steps in C, from the first on and around, and returns how many succeeded. A step of size 0 only
// frees.
// The number of steps is a power of two. FreeAll frees what is left in the slots.
func Replace(n int, steps []Step, slots []uintptr) int {
	// Neither array holds a Go pointer, so C may have both for the call.
	return int(C.cside_replace(C.size_t(n),
		(*C.struct_cside_step)(unsafe.Pointer(unsafe.SliceData(steps))), C.size_t(len(steps)),
		(*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(slots)))))
}

// FreeAll frees the blocks in slots.
func FreeAll(slots []uintptr) {
	C.cside_free_all((*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(slots))), C.size_t(len(slots)))
}
