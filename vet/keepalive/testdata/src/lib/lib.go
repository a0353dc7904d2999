package lib

// #include <stdlib.h>
import "C"

import (
	"runtime"
	"unsafe"
)

type Object struct{ ptr *C.char } // want Object:"owner"

func New() *Object {
	o := &Object{C.CString("x")}
	runtime.SetFinalizer(o, func(o *Object) { C.free(unsafe.Pointer(o.ptr)) })
	return o
}

func (o *Object) Native() unsafe.Pointer { return unsafe.Pointer(o.ptr) } // want Native:"accessor"
