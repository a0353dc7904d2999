//go:build cgo

package bench

/*
#cgo noescape cheap_pairs
#cgo nocallback cheap_pairs
#cgo noescape cheap_replace
#cgo nocallback cheap_replace
#cgo noescape cheap_free_all
#cgo nocallback cheap_free_all

#include "native.h"
*/
import "C"

import "unsafe"

// The loops are not in a _test.go file, because such a file cannot import "C".

// nativePairs allocates and frees a block of size bytes n times, in C.
func nativePairs(n, size int) (got int) {
	return int(C.cheap_pairs(C.size_t(n), C.size_t(size)))
}

// A step of a replacement: the block in the slot is replaced by one of size bytes.
type step struct{ slot, size uint32 }

const (
	_ = -(unsafe.Sizeof(step{}) ^ C.sizeof_struct_cheap_step)
	_ = -(unsafe.Offsetof(step{}.size) ^ unsafe.Offsetof(C.struct_cheap_step{}.size))
)

// nativeReplace does n steps in C, from the first of steps on and around.
func nativeReplace(n int, steps *[manySteps]step, slots *[liveBlocks]uintptr) (got int) {
	// Neither array holds a Go pointer, so C may have both for the call.
	return int(C.cheap_replace(C.size_t(n),
		(*C.struct_cheap_step)(unsafe.Pointer(steps)), manySteps,
		(*C.uintptr_t)(unsafe.Pointer(slots))))
}

// nativeFreeAll frees what nativeReplace left.
func nativeFreeAll(slots *[liveBlocks]uintptr) {
	C.cheap_free_all((*C.uintptr_t)(unsafe.Pointer(slots)), liveBlocks)
}

const (
	liveBlocks = 4096
	manySteps  = 1 << 16
)
