//go:build cgo

package guide

/*
#cgo noescape sum
#cgo nocallback sum
#include "library.h"
*/
import "C"

import "unsafe"

// Sum lets C read a slice of Go during the call.
func Sum(numbers []int32) int64 {
	p := (*C.int32_t)(unsafe.SliceData(numbers))
	return int64(C.sum(p, C.size_t(len(numbers))))
}
