//go:build cgo && linux

package cbodies

/*
#cgo CFLAGS: -O1 -fno-omit-frame-pointer -Wall
#cgo LDFLAGS: -lpthread -ldl -lrt -rdynamic
#include <stdlib.h>
#include "bodies.h"
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// A body is a function of C that a test calls again and again.
type body struct {
	name  string
	call  func()
	leaks bool
}

// all returns the bodies.
func all() (list []body) {
	for i := 0; ; i++ {
		b := C.cbodies_of(C.int(i))
		if b == nil {
			break
		}
		list = append(list, body{C.GoString(b.name), func() { C.cbodies_call(b) }, b.leaks != 0})
	}
	return append(list,
		body{"forgotten_by_go", forgotten, false},
		body{"string_of_go", func() { C.free(unsafe.Pointer(C.CString("a string"))) }, false},
		body{"string_leak_of_go", func() { C.CString("a string") }, true}, //cheapvet:ignore cfree it leaks
	)
}

// A text is freed by a cleanup.
type text struct {
	p    *C.char
	room [4]uintptr
}

// forgotten leaves blocks to the collector of Go.
func forgotten() {
	for range 3 {
		t := &text{p: C.cbodies_string(100)}
		//cheapvet:ignore perobject it is what others do
		runtime.AddCleanup(t, func(p *C.char) { C.free(unsafe.Pointer(p)) }, t.p)
	}
}

// prepare does what happens before a check.
func prepare() { C.cbodies_prepare() }
