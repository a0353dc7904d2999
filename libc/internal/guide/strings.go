//go:build cgo

package guide

// #include "library.h"
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
)

// Upper passes a string to C, and takes one that C has allocated.
func Upper(text string) (string, error) {
	a := cheap.GetArena()
	defer a.Put()
	p := cheap.CString(a, text)
	if p == nil {
		return "", cheap.ErrNoMemory
	}
	upper := unsafe.Pointer(C.upper((*C.char)(p)))
	if upper == nil {
		return "", cheap.ErrNoMemory
	}
	defer libc.Allocator{}.Free(upper) // it is malloc's
	return cheap.GoString(upper), nil
}
