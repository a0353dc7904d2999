package recall

// #include "st.h"
import "C"

import (
	"runtime"
	"sync"
	"unsafe"
)

// These were known when the analyzers were written.

func badBytes(n C.int) []byte {
	p := C.malloc(C.size_t(n))
	C.memset(p, 1, C.size_t(n))
	C.free(p)
	return C.GoBytes(p, n)
}
func goodBytes(n C.int) []byte {
	p := C.malloc(C.size_t(n))
	C.memset(p, 1, C.size_t(n))
	b := C.GoBytes(p, n)
	C.free(p)
	return b
}

func badDump(s *store) string { p := C.st_dump(s.ptr); C.free(unsafe.Pointer(p)); return C.GoString(p) }
func badOrder(s *store, key string) {
	p := (*C.st_pair)(C.calloc(1, C.sizeof_st_pair))
	p.key = C.CString(key)
	C.st_put_pair(s.ptr, p)
	C.free(unsafe.Pointer(p))
	C.free(unsafe.Pointer(p.key))
}
func goodOrder(s *store, key string) {
	p := (*C.st_pair)(C.calloc(1, C.sizeof_st_pair))
	p.key = C.CString(key)
	C.st_put_pair(s.ptr, p)
	k := p.key
	C.free(unsafe.Pointer(p))
	C.free(unsafe.Pointer(k))
}

func badSlice(s *store) []byte {
	p := C.st_dump(s.ptr)
	defer C.free(unsafe.Pointer(p))
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), C.strlen(p))
}
func goodSlice(s *store) []byte {
	p := C.st_dump(s.ptr)
	defer C.free(unsafe.Pointer(p))
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(p)), C.strlen(p))...)
}

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

func badPart(s *store, keys []string) error {
	var list []*C.char
	for _, k := range keys {
		if k == "" {
			return errStore
		}
		list = append(list, C.CString(k))
	}
	C.st_put_list(s.ptr, &list[0], C.size_t(len(list)))
	for _, p := range list {
		C.free(unsafe.Pointer(p))
	}
	return nil
}
func goodPart(s *store, keys []string) error {
	var list []*C.char
	defer func() {
		for _, p := range list {
			C.free(unsafe.Pointer(p))
		}
	}()
	for _, k := range keys {
		if k == "" {
			return errStore
		}
		list = append(list, C.CString(k))
	}
	C.st_put_list(s.ptr, &list[0], C.size_t(len(list)))
	return nil
}

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

func badConstructor(path, key *C.char) (*store, error) {
	db := C.st_open(path)
	if db == nil || C.st_get(db, key) < 0 {
		return nil, errStore
	}
	return &store{ptr: db}, nil
}
func goodConstructor(path, key *C.char) (*store, error) {
	db := C.st_open(path)
	if db == nil {
		return nil, errStore
	}
	if C.st_get(db, key) < 0 {
		C.st_close(db)
		return nil, errStore
	}
	return &store{ptr: db}, nil
}

type label struct{ text *C.char }

func (l *label) Close() { C.free(unsafe.Pointer(l.text)) }

func (l *label) badSet(s string)  { l.text = C.CString(s) }
func (l *label) goodSet(s string) { C.free(unsafe.Pointer(l.text)); l.text = C.CString(s) }

var badPool = sync.Pool{New: func() any { return C.malloc(4096) }}

type pooled struct{ ptr unsafe.Pointer }

var goodPool = sync.Pool{New: func() any {
	p := &pooled{ptr: C.malloc(4096)}
	runtime.AddCleanup(p, func(p unsafe.Pointer) { C.free(p) }, p.ptr)
	return p
}}
