package recall

// #include <stdlib.h>
// #include <stdint.h>
// #include "kvs.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime/cgo"
	"sync"
	"unsafe"
)

type kvConn struct {
	db  *C.kvs
	err *C.char
	cb  cgo.Handle
	mu  sync.Mutex
	cur *C.kvs_cursor
}

func (c *kvConn) lastErr() error { return errors.New(C.GoString(C.kvs_errmsg(c.db))) }

func (c *kvConn) Close() error {
	if c.cur != nil {
		C.kvs_cursor_free(c.cur)
	}
	if c.cb != 0 {
		c.cb.Delete()
	}
	if rc := C.kvs_close(c.db); rc != C.KVS_OK {
		return fmt.Errorf("close %d", rc)
	}
	return nil
}

func badSwitch(path *C.char) (*C.kvs, error) {
	var db *C.kvs
	switch rc := C.kvs_open(path, &db); rc {
	case C.KVS_OK:
	default:
		return nil, fmt.Errorf("open: %d", rc)
	}
	switch C.kvs_check(db) {
	case C.KVS_OK:
		return db, nil
	case C.KVS_BUSY:
		C.kvs_close(db)
		return nil, errors.New("busy")
	}
	return nil, errors.New("bad")
}

type registry struct{ m map[int]cgo.Handle }

func (r *registry) Close() {
	for _, h := range r.m {
		h.Delete()
	}
	r.m = nil
}

func badElements(n int) {
	arr := (**C.char)(C.malloc(C.size_t(n) * 8))
	C.kvs_fill(arr, C.int(n))
	C.free(unsafe.Pointer(arr))
	for _, p := range unsafe.Slice(arr, n) {
		C.free(unsafe.Pointer(p))
	}
}
func goodElements(n int) {
	arr := (**C.char)(C.malloc(C.size_t(n) * 8))
	C.kvs_fill(arr, C.int(n))
	for _, p := range unsafe.Slice(arr, n) {
		C.free(unsafe.Pointer(p))
	}
	C.free(unsafe.Pointer(arr))
}

// two mallocs for one returned struct, by new
type frame struct {
	luma, chroma *C.uchar
}

func (f *frame) Release() {
	C.free(unsafe.Pointer(f.luma))
	C.free(unsafe.Pointer(f.chroma))
}
func badFrame(n int) *frame {
	f := new(frame)
	f.luma = (*C.uchar)(C.malloc(C.size_t(n)))
	if f.luma == nil {
		return nil
	}
	f.chroma = (*C.uchar)(C.malloc(C.size_t(n / 2)))
	if f.chroma == nil {
		return nil
	}
	return f
}
func goodFrame(n int) *frame {
	f := new(frame)
	f.luma = (*C.uchar)(C.malloc(C.size_t(n)))
	if f.luma == nil {
		return nil
	}
	f.chroma = (*C.uchar)(C.malloc(C.size_t(n / 2)))
	if f.chroma == nil {
		f.Release()
		return nil
	}
	return f
}
