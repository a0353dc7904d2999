package fix

/*
#include <stdlib.h>
static int look(const void *s) { return s != 0; }
*/
import "C"

import (
	"runtime"
	"unsafe"
)

type Object struct{ ptr unsafe.Pointer } // want Object:"owner"

func New() *Object {
	o := &Object{C.malloc(3)}
	runtime.SetFinalizer(o, func(o *Object) { C.free(o.ptr) })
	return o
}

func (o *Object) statement() {
	C.look(o.ptr) // want `may be collected`
}

func (o *Object) returned() int {
	return int(C.look(o.ptr)) // want `may be collected`
}

func (o *Object) condition() bool {
	if C.look(o.ptr) == 0 { // want `may be collected`
		return false
	}
	return true
}

func inIf() int {
	if o := New(); C.look(o.ptr) == 0 { // want `may be collected`
		return 1
	}
	return 0
}

func (o *Object) hidden(runtime int) {
	C.look(o.ptr) // want `may be collected`
}

func (o *Object) sent(ch chan C.int) {
	select {
	case ch <- C.look(o.ptr): // want `may be collected`
	default:
	}
}
