//go:build cgo && race && !cheap_gomem

package calls

/*
#include "ops.h"
*/
import "C"

import "unsafe"

// checkPointer panics if p points to Go memory that is not pinned. A list is memory in which
// Go pointers are stored for C, which cgo checks when such memory is passed to C.
func checkPointer(p unsafe.Pointer) {
	box := new(unsafe.Pointer)
	*box = p
	C.cheap_calls_touch(unsafe.Pointer(box))
}
