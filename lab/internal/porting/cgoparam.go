package porting

// #include "library.h"
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap/x/cgoparam"
)

// Describe passes a struct that points to a string and an array.
func Describe(name string, sides []int) string {
	alloc := cgoparam.GetAlloc()
	defer cgoparam.ReturnAlloc(alloc)

	request := (*C.request)(alloc.Malloc(C.sizeof_request))
	request.name = (*C.char)(alloc.CString(name))
	request.n = C.int(len(sides))
	request.sides = (*C.int)(alloc.Malloc(len(sides) * C.sizeof_int))
	for i, n := range sides {
		unsafe.Slice(request.sides, len(sides))[i] = C.int(n)
	}
	const size = 100
	out := (*C.char)(alloc.Malloc(size))
	C.describe(request, out, size)
	return C.GoString(out)
}
