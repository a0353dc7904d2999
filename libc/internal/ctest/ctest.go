//go:build cgo

package ctest

/*
#include <stdlib.h>
#include "ctest.h"
*/
import "C"

import "unsafe"

// The addresses of C functions, of the kinds that libc takes. Only one thread at a
// time may call those of this package.
var (
	Free = unsafe.Pointer(C.free)

	// Their calls are recorded in Calls.
	Destroy     = unsafe.Pointer(C.ctest_destroy)      // (resource)
	DestroyWith = unsafe.Pointer(C.ctest_destroy_with) // (context, resource)

	DestroyStatus = unsafe.Pointer(C.ctest_destroy_status) // (resource), returns a status

	// Destructors with other results and parameters.
	OtherResults = []unsafe.Pointer{
		unsafe.Pointer(C.ctest_destroy_size),
		unsafe.Pointer(C.ctest_destroy_double),
		unsafe.Pointer(C.ctest_destroy_pointer),
	}

	// These call OnDestroy.
	DestroyIntoGo     = unsafe.Pointer(C.ctest_destroy_into_go)      // (resource)
	DestroyWithIntoGo = unsafe.Pointer(C.ctest_destroy_with_into_go) // (context, resource)

	Construct       = unsafe.Pointer(C.ctest_construct)         // its context is a Counter
	ConstructIntoGo = unsafe.Pointer(C.ctest_construct_into_go) // calls OnConstruct
)

// Context is an address of C memory that none of the functions follows.
var Context = unsafe.Pointer(&C.ctest_calls)

// The Go functions that C functions call.
var (
	OnDestroy   func(context, resource uintptr)
	OnConstruct func(context uintptr) (resource uintptr)
)

//export ctestGoDestroy
func ctestGoDestroy(context, resource C.uintptr_t) { OnDestroy(uintptr(context), uintptr(resource)) }

//export ctestGoConstruct
func ctestGoConstruct(context C.uintptr_t) C.uintptr_t {
	return C.uintptr_t(OnConstruct(uintptr(context)))
}

// A Call has the arguments of a call of Destroy or DestroyWith: the context, or 0,
// and the resource.
type Call [2]uintptr

// Calls returns the calls since the last Calls, up to 1024 of them.
func Calls() []Call {
	calls := make([]Call, min(C.ctest_count, C.ctest_room))
	for i := range calls {
		c := C.ctest_calls[i]
		calls[i] = Call{uintptr(c.context), uintptr(c.resource)}
	}
	C.ctest_count = 0
	return calls
}

// A Counter is the context of Construct, in C memory. Resources are the numbers
// from 1 to a given last one.
type Counter struct{ numbers *[2]C.size_t }

// NewCounter returns a Counter; Close frees it.
func NewCounter(last int) Counter {
	c := Counter{(*[2]C.size_t)(C.calloc(2, C.sizeof_size_t))}
	c.numbers[1] = C.size_t(last)
	return c
}

// Context returns the Counter's address, for C.
func (c Counter) Context() unsafe.Pointer { return unsafe.Pointer(c.numbers) }

// Close frees the Counter.
func (c Counter) Close() { C.free(c.Context()) }
