package recall

// #include "st.h"
import "C"

import (
	"runtime"
	"runtime/cgo"
	"unsafe"
)

type hook struct{ calls int }

func badNumber(s *store) *hook {
	h := &hook{}
	C.st_set_hook(s.ptr, C.uintptr_t(uintptr(unsafe.Pointer(h))))
	return h
}
func goodNumber(s *store) cgo.Handle {
	h := cgo.NewHandle(&hook{})
	C.st_set_hook(s.ptr, C.uintptr_t(h))
	return h
}

type view struct{ ptr *C.st_iter }

func badSelf(s *store) *view {
	v := &view{ptr: C.st_iter_new(s.ptr)}
	runtime.SetFinalizer(v, func(*view) { C.st_iter_free(v.ptr) })
	return v
}
func goodSelf(s *store) *view {
	v := &view{ptr: C.st_iter_new(s.ptr)}
	runtime.SetFinalizer(v, func(v *view) { C.st_iter_free(v.ptr) })
	return v
}

func badBuffer(s *store, n int) []byte {
	b := make([]byte, n)
	C.st_set_buffer(s.ptr, unsafe.Pointer(&b[0]), C.size_t(n))
	return b
}
func goodBuffer(s *store, n int) []byte {
	b := C.malloc(C.size_t(n))
	C.st_set_buffer(s.ptr, b, C.size_t(n))
	return unsafe.Slice((*byte)(b), n)
}

func badInC(s *store, key []byte) {
	p := (*C.st_pair)(C.calloc(1, C.sizeof_st_pair))
	defer C.free(unsafe.Pointer(p))
	p.key = (*C.char)(unsafe.Pointer(&key[0]))
	C.st_put_pair(s.ptr, p)
}
func goodInC(s *store, key []byte) {
	p := (*C.st_pair)(C.calloc(1, C.sizeof_st_pair))
	defer C.free(unsafe.Pointer(p))
	p.key = (*C.char)(C.CBytes(key))
	defer C.free(unsafe.Pointer(p.key))
	C.st_put_pair(s.ptr, p)
}

func badHandle(s *store) {
	h := cgo.NewHandle(&hook{})
	C.st_set_hook(s.ptr, C.uintptr_t(h))
	C.st_put(s.ptr, nil, 0)
	C.st_set_hook(s.ptr, 0)
}
func goodHandle(s *store) {
	h := cgo.NewHandle(&hook{})
	defer h.Delete()
	C.st_set_hook(s.ptr, C.uintptr_t(h))
	C.st_put(s.ptr, nil, 0)
	C.st_set_hook(s.ptr, 0)
}

func badHandleAddress(s *store) cgo.Handle {
	h := cgo.NewHandle(&hook{})
	C.st_set_user(s.ptr, unsafe.Pointer(&h))
	return h
}
func goodHandleAddress(s *store) (cgo.Handle, func()) {
	h := cgo.NewHandle(&hook{})
	p := (*C.uintptr_t)(C.malloc(C.sizeof_uintptr_t))
	*p = C.uintptr_t(h)
	C.st_set_user(s.ptr, unsafe.Pointer(p))
	return h, func() { h.Delete(); C.free(unsafe.Pointer(p)) }
}

type owner struct{ ptr *C.st }

func newOwner(path *C.char) *owner {
	o := &owner{ptr: C.st_open(path)}
	runtime.SetFinalizer(o, func(o *owner) { C.st_close(o.ptr) })
	return o
}

type badChild struct{ ptr *C.st_iter }

func (o *owner) badChild() *badChild {
	c := &badChild{ptr: C.st_iter_new(o.ptr)}
	runtime.KeepAlive(o)
	return c
}

type goodChild struct {
	ptr *C.st_iter
	of  *owner
}

func (o *owner) goodChild() *goodChild {
	c := &goodChild{ptr: C.st_iter_new(o.ptr), of: o}
	runtime.KeepAlive(o)
	return c
}

func badNoZero(s *store, key string) int {
	return int(C.st_get(s.ptr, (*C.char)(unsafe.Pointer(unsafe.StringData(key)))))
}
func goodNoZero(s *store, key string) int {
	return int(C.st_put(s.ptr, unsafe.Pointer(unsafe.StringData(key)), C.size_t(len(key))))
}
func goodZero(s *store, key string) int {
	key += "\x00"
	return int(C.st_get(s.ptr, (*C.char)(unsafe.Pointer(unsafe.StringData(key))))) +
		int(C.st_get(s.ptr, (*C.char)(unsafe.Pointer(unsafe.StringData("a\x00")))))
}

func badCount(s *store, pairs int) {
	p := (*C.st_pair)(C.malloc(C.size_t(pairs)))
	defer C.free(unsafe.Pointer(p))
	clear(unsafe.Slice(p, pairs))
	C.st_put_pair(s.ptr, p)
}
func goodCount(s *store, pairs int) {
	p := (*C.st_pair)(C.malloc(C.size_t(pairs) * C.sizeof_st_pair))
	defer C.free(unsafe.Pointer(p))
	clear(unsafe.Slice(p, pairs))
	C.st_put_pair(s.ptr, p)
}

var last []byte

//export badCallback
func badCallback(p *C.char, n C.int) { last = unsafe.Slice((*byte)(unsafe.Pointer(p)), n) }

//export goodCallback
func goodCallback(p *C.char, n C.int) { last = C.GoBytes(unsafe.Pointer(p), n) }

//export badGive
func badGive(n C.size_t) unsafe.Pointer { b := make([]byte, n); return unsafe.Pointer(&b[0]) }

//export goodGive
func goodGive(n C.size_t) unsafe.Pointer { b := make([]byte, n); return C.CBytes(b) }
