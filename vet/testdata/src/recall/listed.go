package recall

// #include "st.h"
import "C"

import (
	"runtime"
	"sync"
	"unsafe"
)

// These were known when the analyzers were written.

type cleaned struct {
	ptr  *C.st
	name string
}

type cyclic struct{ of *cleaned }

func badArgument() *cleaned {
	d := &cleaned{ptr: C.st_open(nil)}
	s := &cyclic{of: d}
	runtime.AddCleanup(d, func(s *cyclic) { C.st_close(s.of.ptr) }, s)
	return d
}

type state struct{ ptr *C.st }

func goodArgument() *cleaned {
	d := &cleaned{ptr: C.st_open(nil)}
	s := &state{ptr: d.ptr}
	runtime.AddCleanup(d, func(s *state) { C.st_close(s.ptr) }, s)
	return d
}

func badAddress(s *store, n int) {
	b := make([]byte, n)
	a := uintptr(unsafe.Pointer(&b[0]))
	C.st_set_hook(s.ptr, C.uintptr_t(a))
}
func goodAddress(s *store, n int) {
	b := make([]byte, n)
	a := uintptr(unsafe.Pointer(&b[0]))
	C.st_set_hook(s.ptr, C.uintptr_t(a))
	runtime.KeepAlive(b)
}

type twice struct{ ptr *C.st }

func newBad() *twice {
	d := &twice{ptr: C.st_open(nil)}
	runtime.SetFinalizer(d, (*twice).badClose)
	return d
}

func (d *twice) badClose() { C.st_close(d.ptr); runtime.KeepAlive(d) }

func (d *twice) Stop() { d.badClose() }

type goodCloser struct{ ptr *C.st }

func newGood() *goodCloser {
	d := &goodCloser{ptr: C.st_open(nil)}
	runtime.SetFinalizer(d, (*goodCloser).Close)
	return d
}

func (d *goodCloser) Close() { runtime.SetFinalizer(d, nil); C.st_close(d.ptr) }

func badRounds(s *store, in <-chan string) {
	for k := range in {
		p := C.CString(k)
		defer C.free(unsafe.Pointer(p))
		C.st_get(s.ptr, p)
	}
}
func goodRounds(s *store, in <-chan string) {
	for k := range in {
		func() {
			p := C.CString(k)
			defer C.free(unsafe.Pointer(p))
			C.st_get(s.ptr, p)
		}()
	}
}

func (s *store) Close() { C.st_close(s.ptr); s.ptr = nil }

type label struct{ text *C.char }

func (l *label) Close() { C.free(unsafe.Pointer(l.text)) }

var badPool = sync.Pool{New: func() any { return C.malloc(4096) }}

type pooled struct{ ptr unsafe.Pointer }

var goodPool = sync.Pool{New: func() any {
	p := &pooled{ptr: C.malloc(4096)}
	runtime.AddCleanup(p, func(p unsafe.Pointer) { C.free(p) }, p.ptr)
	return p
}}
