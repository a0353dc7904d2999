//go:build cgo

package ctest

/*
#include <stdlib.h>
#include "ctest.h"
*/
import "C"

import "unsafe"

// C functions, of the kinds that libc takes. Those of this package may be
// called by one thread at a time.
var (
	Free = unsafe.Pointer(C.free)

	Destroy           = unsafe.Pointer(C.ctest_destroy)              // (resource), noted in Calls
	DestroyWith       = unsafe.Pointer(C.ctest_destroy_with)         // (context, resource), noted in Calls
	DestroyIntoGo     = unsafe.Pointer(C.ctest_destroy_into_go)      // (resource), calls OnDestroy
	DestroyWithIntoGo = unsafe.Pointer(C.ctest_destroy_with_into_go) // (context, resource), calls OnDestroy

	Construct       = unsafe.Pointer(C.ctest_construct)         // wants a Counter for its context
	ConstructIntoGo = unsafe.Pointer(C.ctest_construct_into_go) // calls OnConstruct
)

// Context is an address of C memory that none of the functions follows.
var Context = unsafe.Pointer(&C.ctest_calls)

// What C functions call in Go.
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

// A Call is what Destroy and DestroyWith were called with: the context, or 0, and
// the resource.
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

// A Counter is the context of Construct, in C memory: resources are numbers,
// from 1 to the given last one, behind which there are none.
type Counter struct{ numbers *[2]C.size_t }

// NewCounter returns a Counter; Close frees it.
func NewCounter(last int) Counter {
	c := Counter{(*[2]C.size_t)(C.calloc(2, C.sizeof_size_t))}
	c.numbers[1] = C.size_t(last)
	return c
}

// Context returns it as C wants it.
func (c Counter) Context() unsafe.Pointer { return unsafe.Pointer(c.numbers) }

// Close frees it.
func (c Counter) Close() { C.free(c.Context()) }
