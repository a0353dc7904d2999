// Package recall has mistakes that were written by one who had not read the analyzers. Each is in a
// function whose name begins with bad; the function good of the same name does it right.
package recall

// #include "st.h"
import "C"

import (
	"errors"
	"unsafe"
)

var errStore = errors.New("store")

type store struct{ ptr *C.st }

func badRealloc(s *store, n int) error {
	p := C.malloc(8)
	C.st_put(s.ptr, p, 8)
	p = C.realloc(p, C.size_t(n))
	if p == nil {
		return errStore
	}
	C.free(p)
	return nil
}
func goodRealloc(s *store, n int) error {
	p := C.malloc(8)
	C.st_put(s.ptr, p, 8)
	q := C.realloc(p, C.size_t(n))
	if q == nil {
		C.free(p)
		return errStore
	}
	C.free(q)
	return nil
}

func badErrorOut(s *store) error {
	var message *C.char
	if C.st_sync(s.ptr, &message) != 0 {
		return errors.New(C.GoString(message))
	}
	return nil
}
func goodErrorOut(s *store) error {
	var message *C.char
	if C.st_sync(s.ptr, &message) != 0 {
		defer C.free(unsafe.Pointer(message))
		return errors.New(C.GoString(message))
	}
	return nil
}

func text(s string) (*C.char, func()) {
	p := C.CString(s)
	return p, func() { C.free(unsafe.Pointer(p)) }
}
func badThrown(s *store, key string)  { p, _ := text(key); C.st_get(s.ptr, p) }
func goodThrown(s *store, key string) { p, free := text(key); C.st_get(s.ptr, p); free() }

func badPanic(s *store) (err error) {
	defer func() { err, _ = recover().(error) }()
	p := C.CString("key")
	if C.st_get(s.ptr, p) < 0 {
		panic(errStore)
	}
	C.free(unsafe.Pointer(p))
	return nil
}
func goodPanic(s *store) (err error) {
	defer func() { err, _ = recover().(error) }()
	p := C.CString("key")
	C.free(unsafe.Pointer(p))
	panic(errStore)
}

func badFull(ch chan *C.char) {
	p := C.CString("key")
	select {
	case ch <- p:
	default:
	}
}
func goodFull(ch chan *C.char) {
	p := C.CString("key")
	select {
	case ch <- p:
	default:
		C.free(unsafe.Pointer(p))
	}
}
