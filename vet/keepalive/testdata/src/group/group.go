package group

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

func (o *Object) F0() int  { return int(C.look(o.ptr)) } // want `in 12 calls of C such as this one the owner of the field ptr may be collected meanwhile`
func (o *Object) F1() int  { return int(C.look(o.ptr)) }
func (o *Object) F2() int  { return int(C.look(o.ptr)) }
func (o *Object) F3() int  { return int(C.look(o.ptr)) }
func (o *Object) F4() int  { return int(C.look(o.ptr)) }
func (o *Object) F5() int  { return int(C.look(o.ptr)) }
func (o *Object) F6() int  { return int(C.look(o.ptr)) }
func (o *Object) F7() int  { return int(C.look(o.ptr)) }
func (o *Object) F8() int  { return int(C.look(o.ptr)) }
func (o *Object) F9() int  { return int(C.look(o.ptr)) }
func (o *Object) F10() int { return int(C.look(o.ptr)) }
func (o *Object) F11() int { return int(C.look(o.ptr)) }
