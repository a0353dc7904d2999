package recall

// #include "st.h"
import "C"

import (
	"errors"
	"unsafe"
)

func badAlias(s *store, key string) {
	p := C.CString(key)
	q := unsafe.Pointer(p)
	C.st_get(s.ptr, p)
	C.free(unsafe.Pointer(p))
	C.free(q)
}
func goodAlias(s *store, key string) {
	p := C.CString(key)
	q := unsafe.Pointer(p)
	C.st_get(s.ptr, p)
	C.free(q)
}

func badLoop(s *store, key string) {
	p := C.CString(key)
	for range 3 {
		C.st_get(s.ptr, p)
		C.free(unsafe.Pointer(p))
	}
}
func goodLoop(s *store, key string) {
	for range 3 {
		p := C.CString(key)
		C.st_get(s.ptr, p)
		C.free(unsafe.Pointer(p))
	}
}

func badAdoptedLate(s *store)  { p := C.malloc(64); defer C.st_adopt(s.ptr, p); C.free(p) }
func goodAdoptedLate(s *store) { p := C.malloc(64); defer C.st_adopt(s.ptr, p) }

func badMoved(s *store) {
	p := C.malloc(8)
	q := C.realloc(p, 64)
	C.st_put(s.ptr, q, 64)
	C.free(p)
}
func goodMoved(s *store) {
	p := C.malloc(8)
	q := C.realloc(p, 64)
	if q == nil {
		q = p
	}
	C.st_put(s.ptr, q, 8)
	C.free(q)
}

func badString(s *store) string {
	p := C.st_dump(s.ptr)
	text := unsafe.String((*byte)(unsafe.Pointer(p)), C.strlen(p))
	C.free(unsafe.Pointer(p))
	return text
}
func goodString(s *store) string {
	p := C.st_dump(s.ptr)
	text := string(unsafe.Slice((*byte)(unsafe.Pointer(p)), C.strlen(p)))
	C.free(unsafe.Pointer(p))
	return text
}

func badKept(s *store, label string) {
	p := C.CString(label)
	defer C.free(unsafe.Pointer(p))
	C.st_set_label(s.ptr, p)
}
func goodKept(s *store, label string) func() {
	p := C.CString(label)
	C.st_set_label(s.ptr, p)
	return func() { C.free(unsafe.Pointer(p)) }
}

func badGoroutine(s *store, key string) {
	p := C.CString(key)
	defer C.free(unsafe.Pointer(p))
	go func() { C.st_get(s.ptr, p) }()
}
func goodGoroutine(s *store, key string) {
	p := C.CString(key)
	defer C.free(unsafe.Pointer(p))
	done := make(chan bool)
	go func() {
		C.st_get(s.ptr, p)
		close(done)
	}()
	<-done
}

func badClosure(s *store, key string) func() int {
	p := C.CString(key)
	defer C.free(unsafe.Pointer(p))
	return func() int { return int(C.st_get(s.ptr, p)) }
}
func goodClosure(s *store, key string) func() int {
	return func() int {
		p := C.CString(key)
		defer C.free(unsafe.Pointer(p))
		return int(C.st_get(s.ptr, p))
	}
}

func badError(path *C.char) (*store, error) {
	db := C.st_open(path)
	if C.st_get(db, path) < 0 {
		C.st_close(db)
		return nil, errors.New(C.GoString(C.st_error(db)))
	}
	return &store{ptr: db}, nil
}
func goodError(path *C.char) (*store, error) {
	db := C.st_open(path)
	if C.st_get(db, path) < 0 {
		err := errors.New(C.GoString(C.st_error(db)))
		C.st_close(db)
		return nil, err
	}
	return &store{ptr: db}, nil
}

type result struct{ data []byte }

func badView(s *store, r *result) {
	p := C.st_dump(s.ptr)
	r.data = unsafe.Slice((*byte)(unsafe.Pointer(p)), C.strlen(p))
	C.free(unsafe.Pointer(p))
}
func goodView(s *store, r *result) {
	p := C.st_dump(s.ptr)
	r.data = C.GoBytes(unsafe.Pointer(p), C.int(C.strlen(p)))
	C.free(unsafe.Pointer(p))
}
func badMessage(s *store)  { var m *C.char; C.st_exec(s.ptr, &m); C.free(unsafe.Pointer(m)) }
func goodMessage(s *store) { var m *C.char; C.st_exec(s.ptr, &m); C.st_free(unsafe.Pointer(m)) }
func badNew(s *store) {
	p := new(C.int)
	C.st_put(s.ptr, unsafe.Pointer(p), 4)
	C.free(unsafe.Pointer(p))
}
func goodNew(s *store) { p := C.malloc(4); C.st_put(s.ptr, p, 4); C.free(p) }
func badTaken(s *store, key string) {
	p := C.CString(key)
	defer C.free(unsafe.Pointer(p))
	C.st_own(s.ptr, p)
}
func goodTaken(s *store, key string) { p := C.CString(key); C.st_own(s.ptr, p) }

func goodGrow(n int) unsafe.Pointer {
	p := C.malloc(8)
	for i := 8; i < n; i *= 2 {
		p = C.realloc(p, C.size_t(i))
	}
	return p
}
