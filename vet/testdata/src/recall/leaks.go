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

func badGetter(s *store) string { return C.GoString(C.st_dump(s.ptr)) }
func goodGetter(s *store) string {
	p := C.st_dump(s.ptr)
	defer C.free(unsafe.Pointer(p))
	return C.GoString(p)
}

func badContinue(s *store, keys []string) {
	for _, k := range keys {
		p := C.CString(k)
		if C.st_get(s.ptr, p) < 0 {
			continue
		}
		C.free(unsafe.Pointer(p))
	}
}
func goodContinue(s *store, keys []string) {
	for _, k := range keys {
		p := C.CString(k)
		if C.st_get(s.ptr, p) < 0 {
			C.free(unsafe.Pointer(p))
			continue
		}
		C.free(unsafe.Pointer(p))
	}
}

func badRetry(s *store, key string) bool {
	for range 3 {
		p := C.CString(key)
		if C.st_get(s.ptr, p) == 0 {
			C.free(unsafe.Pointer(p))
			return true
		}
	}
	return false
}
func goodRetry(s *store, key string) bool {
	p := C.CString(key)
	for range 3 {
		if C.st_get(s.ptr, p) == 0 {
			C.free(unsafe.Pointer(p))
			return true
		}
	}
	C.free(unsafe.Pointer(p))
	return false
}

func badSwitch(s *store, key string) error {
	p := C.CString(key)
	switch C.st_get(s.ptr, p) {
	case -1:
		return errStore
	case 0:
	}
	C.free(unsafe.Pointer(p))
	return nil
}
func goodSwitch(s *store, key string) error {
	p := C.CString(key)
	switch C.st_get(s.ptr, p) {
	case -1:
		C.free(unsafe.Pointer(p))
		return errStore
	case 0:
	}
	C.free(unsafe.Pointer(p))
	return nil
}

func badReassign(s *store, key string) {
	p := C.CString(key)
	if key == "" {
		p = C.CString("default")
	}
	C.st_get(s.ptr, p)
	C.free(unsafe.Pointer(p))
}
func goodReassign(s *store, key string) {
	var p *C.char
	if key == "" {
		p = C.CString("default")
	} else {
		p = C.CString(key)
	}
	C.st_get(s.ptr, p)
	C.free(unsafe.Pointer(p))
}

func badDeferEarly(s *store, key string) {
	p := C.CString(key)
	defer C.free(unsafe.Pointer(p))
	if C.st_get(s.ptr, p) < 0 {
		p = C.CString("other")
		C.st_get(s.ptr, p)
	}
}
func goodDeferEarly(s *store, key string) {
	p := C.CString(key)
	defer func() { C.free(unsafe.Pointer(p)) }()
	if C.st_get(s.ptr, p) < 0 {
		C.free(unsafe.Pointer(p))
		p = C.CString("other")
		C.st_get(s.ptr, p)
	}
}

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

type names struct {
	byKey map[string]*C.char
	list  []*C.char
}

func (n *names) Close() {
	for _, p := range n.byKey {
		C.free(unsafe.Pointer(p))
	}
	for _, p := range n.list {
		C.free(unsafe.Pointer(p))
	}
	n.byKey, n.list = nil, nil
}

func (n *names) badMapSet(key, value string) { n.byKey[key] = C.CString(value) }
func (n *names) goodMapSet(key, value string) {
	if p, ok := n.byKey[key]; ok {
		C.free(unsafe.Pointer(p))
	}
	n.byKey[key] = C.CString(value)
}

func (n *names) badMapDelete(key string)  { delete(n.byKey, key) }
func (n *names) goodMapDelete(key string) { C.free(unsafe.Pointer(n.byKey[key])); delete(n.byKey, key) }

func (n *names) badTruncate() { n.list = n.list[:0] }
func (n *names) goodTruncate() {
	for _, p := range n.list {
		C.free(unsafe.Pointer(p))
	}
	n.list = n.list[:0]
}

func badElements(s *store, keys []string) {
	list := (**C.char)(C.calloc(C.size_t(len(keys)), C.size_t(unsafe.Sizeof(uintptr(0)))))
	defer C.free(unsafe.Pointer(list))
	view := unsafe.Slice(list, len(keys))
	for i, k := range keys {
		view[i] = C.CString(k)
	}
	C.st_put_list(s.ptr, list, C.size_t(len(keys)))
}
func goodElements(s *store, keys []string) {
	list := (**C.char)(C.calloc(C.size_t(len(keys)), C.size_t(unsafe.Sizeof(uintptr(0)))))
	defer C.free(unsafe.Pointer(list))
	view := unsafe.Slice(list, len(keys))
	for i, k := range keys {
		view[i] = C.CString(k)
		defer C.free(unsafe.Pointer(view[i]))
	}
	C.st_put_list(s.ptr, list, C.size_t(len(keys)))
}

func badStructField(s *store, key string) {
	p := (*C.st_pair)(C.calloc(1, C.sizeof_st_pair))
	p.key = C.CString(key)
	C.st_put_pair(s.ptr, p)
	C.free(unsafe.Pointer(p))
}
func goodStructField(s *store, key string) {
	p := (*C.st_pair)(C.calloc(1, C.sizeof_st_pair))
	p.key = C.CString(key)
	C.st_put_pair(s.ptr, p)
	C.free(unsafe.Pointer(p.key))
	C.free(unsafe.Pointer(p))
}

func badGo(s *store, key string) { p := C.CString(key); go func() { C.st_get(s.ptr, p) }() }
func goodGo(s *store, key string) {
	p := C.CString(key)
	go func() {
		defer C.free(unsafe.Pointer(p))
		C.st_get(s.ptr, p)
	}()
}

func badIterator(s *store, key string) bool {
	it := C.st_iter_new(s.ptr)
	for C.st_iter_next(it) != 0 {
		if C.GoString(C.st_iter_key(it)) == key {
			return true
		}
	}
	C.st_iter_free(it)
	return false
}
func goodIterator(s *store, key string) bool {
	it := C.st_iter_new(s.ptr)
	defer C.st_iter_free(it)
	for C.st_iter_next(it) != 0 {
		if C.GoString(C.st_iter_key(it)) == key {
			return true
		}
	}
	return false
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

func badLiteral(s *store, key string) {
	pair := C.st_pair{key: C.CString(key)}
	C.st_put_pair(s.ptr, &pair)
}
func goodLiteral(s *store, key string) {
	pair := C.st_pair{key: C.CString(key)}
	C.st_put_pair(s.ptr, &pair)
	C.free(unsafe.Pointer(pair.key))
}

func badOpen(path *C.char) (int, error) {
	db := C.st_open(path)
	n := C.st_get(db, path)
	if n < 0 {
		return 0, errStore
	}
	C.st_close(db)
	return int(n), nil
}
func goodOpen(path *C.char) (int, error) {
	db := C.st_open(path)
	n := C.st_get(db, path)
	C.st_close(db)
	if n < 0 {
		return 0, errStore
	}
	return int(n), nil
}

func badFile(path, mode *C.char) error {
	f := C.fopen(path, mode)
	if f == nil {
		return errStore
	}
	if C.fgetc(f) < 0 {
		return errStore
	}
	C.fclose(f)
	return nil
}
func goodFile(path, mode *C.char) error {
	f := C.fopen(path, mode)
	if f == nil {
		return errStore
	}
	defer C.fclose(f)
	if C.fgetc(f) < 0 {
		return errStore
	}
	return nil
}
