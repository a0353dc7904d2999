//go:build cgo && unix

package ctest

/*
#include "ctest.h"
*/
import "C"

import (
	"errors"
	"runtime/cgo"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// An Object is one of C, with a function that C calls.
type Object struct {
	h      own.Handle[*C.ctest_object]
	called own.Callback[func(int) int]
}

// Silent is what C gets in place of a function that has ended.
const Silent = -3

var (
	objects = own.NewPool(own.Options{Name: "ctest.Object", Release: libc.Destructor(unsafe.Pointer(C.ctest_free))})

	// Calls are the functions of objects.
	Calls = own.NewCallbacks("ctest.Object.called", func(int) int { return Silent })
)

//export ctestCalled
func ctestCalled(data unsafe.Pointer, n C.int) (result C.int) {
	Calls.Call(data, func(f func(int) int) { result = C.int(f(int(n))) })
	return result
}

// New returns an object without a function.
func New() (*Object, error) {
	p := C.ctest_new()
	if p == nil {
		return nil, cheap.ErrNoMemory
	}
	o := new(Object)
	if err := o.h.Own(objects, p, 100); err != nil {
		C.ctest_free(unsafe.Pointer(p))
		return nil, err
	}
	return o, nil
}

// NewWith returns an object whose function is set before C makes the object.
func NewWith(f func(int) int) (*Object, error) {
	o := new(Object)
	data := o.called.Set(Calls, own.Owner{}, f)
	p := C.ctest_new()
	if p == nil {
		return nil, cheap.ErrNoMemory
	}
	C.ctest_connect(p, data)
	if err := o.h.Own(objects, p, 100); err != nil {
		o.called.Clear()
		C.ctest_free(unsafe.Pointer(p))
		return nil, err
	}
	o.called.Bind(o.h.Owner())
	return o, nil
}

// Connect makes f the function of the object.
func (o *Object) Connect(f func(int) int) error {
	return o.h.TryUse(func(p *C.ctest_object) error {
		C.ctest_connect(p, o.called.Set(Calls, o.h.Owner(), f))
		return nil
	})
}

// ConnectHandle makes C keep f by a cgo.Handle, as most bindings do. Nothing calls it.
func (o *Object) ConnectHandle(f func(int) int) cgo.Handle { return cgo.NewHandle(f) }

// Callback returns the callback of the object.
func (o *Object) Callback() *own.Callback[func(int) int] { return &o.called }

// Close frees the object.
func (o *Object) Close() error { return o.h.Close() }

// Emit has C call the function.
func (o *Object) Emit(n int) (result int, err error) {
	err = o.h.TryUse(func(p *C.ctest_object) error {
		result = int(C.ctest_emit(p, C.int(n)))
		return nil
	})
	return result, err
}

// A Ref is a copy of an object's Handle, as what points into an object has one.
type Ref struct{ h own.Handle[*C.ctest_object] }

// Ref returns a Ref to the object.
func (o *Object) Ref() Ref { return Ref{o.h} }

// Emit is [Object.Emit].
func (r *Ref) Emit(n int) (result int, err error) { return (&Object{h: r.h}).Emit(n) }

// Loop is what the loop of a library does, which knows the object by its address only: it calls
// the function without a Use of Go around it.
func Loop(at uintptr, n int) int {
	return int(C.ctest_emit((*C.ctest_object)(cheap.Pointer(at)), C.int(n)))
}

// Address returns the address of the object of C, which is never used for another one.
func (o *Object) Address() uintptr { return uintptr(unsafe.Pointer(o.h.Pointer())) }

// Freed reports whether the object at an address is freed.
func Freed(at uintptr) bool { return (*C.ctest_object)(cheap.Pointer(at)).alive == 0 }

// Alive returns the number of objects that are not freed.
func Alive() int { return int(C.ctest_alive()) }

// Threads calls the function in each place on threads of C, until the function that it returns is
// called.
func Threads(n int) (stop func(), err error) {
	if int(C.ctest_start(C.int(n))) == 0 {
		return nil, errors.New("no threads")
	}
	return func() { C.ctest_stop() }, nil
}

// Places is the number of places.
const Places = C.ctest_places

// Publish puts the number of a callback of Threaded in a place.
func Publish(place int, data unsafe.Pointer) { C.ctest_publish(C.int(place), data) }

// Made returns how many calls the threads have made.
func Made() int64 { return int64(C.ctest_calls()) }

// Threaded are functions that threads call, with their own number.
var Threaded = own.NewCallbacks("ctest.thread", func(unsafe.Pointer) {})

//export ctestThread
func ctestThread(data unsafe.Pointer) {
	Threaded.Call(data, func(f func(unsafe.Pointer)) { f(data) })
}

//export ctestHandle
func ctestHandle(handle C.uintptr_t) {
	cgo.Handle(handle).Value().(func(unsafe.Pointer))(nil)
}

// Repeat has C call a function of Threaded n times.
func Repeat(data unsafe.Pointer, n int) { C.ctest_repeat(data, 0, C.long(n)) }

// RepeatHandle has C call a function of a cgo.Handle n times.
func RepeatHandle(h cgo.Handle, n int) { C.ctest_repeat(nil, C.uintptr_t(h), C.long(n)) }

// ConnectThread sets a function for threads in c, which ends with the object.
func (o *Object) ConnectThread(c *own.Callback[func(unsafe.Pointer)], f func(unsafe.Pointer)) unsafe.Pointer {
	return c.Set(Threaded, o.h.Owner(), f)
}

// DataAt returns the user data of the object at an address.
func DataAt(at uintptr) unsafe.Pointer {
	return unsafe.Pointer(C.ctest_data((*C.ctest_object)(cheap.Pointer(at))))
}
