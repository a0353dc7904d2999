// Package lib has functions that packages without cgo call.
package lib

// #include <stdlib.h>
import "C"

import "unsafe"

func New(s string) unsafe.Pointer { // want New:"results\\[0\\]"
	return unsafe.Pointer(C.CString(s))
}

func Free(p unsafe.Pointer) { C.free(p) } // want Free:"params\\[1\\]"

func Len(p unsafe.Pointer) int { return len(C.GoString((*C.char)(p))) } // want Len:"params\\[0\\]"
