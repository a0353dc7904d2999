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

func text(s string) (*C.char, func()) {
	p := C.CString(s)
	return p, func() { C.free(unsafe.Pointer(p)) }
}
func badThrown(s *store, key string)  { p, _ := text(key); C.st_get(s.ptr, p) }
func goodThrown(s *store, key string) { p, free := text(key); C.st_get(s.ptr, p); free() }

func badBuilt(s *store, text string) (*label, error) {
	l := &label{text: C.CString(text)}
	if C.st_get(s.ptr, l.text) < 0 {
		return nil, errStore
	}
	return l, nil
}
func goodBuilt(s *store, text string) (*label, error) {
	l := &label{text: C.CString(text)}
	if C.st_get(s.ptr, l.text) < 0 {
		l.Close()
		return nil, errStore
	}
	return l, nil
}

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

func (n *names) badForget(s *store, k string) {
	p := n.byKey[k]
	C.st_get(s.ptr, p)
	delete(n.byKey, k)
}
func (n *names) goodForget(k string) { p := n.byKey[k]; C.free(unsafe.Pointer(p)); delete(n.byKey, k) }
