package recall

// #include <stdlib.h>
// #include <stdint.h>
// #include "kvs.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

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
