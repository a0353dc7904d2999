package recall

// #include <stdlib.h>
// #include <stdint.h>
// #include "kvs.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
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

func (c *kvConn) badQuery(sql string, arg int) (int, error) {
	cs := C.CString(sql)
	defer C.free(unsafe.Pointer(cs))
	var s *C.kvs_stmt
	rv := C.kvs_prepare_v2(c.db, cs, -1, &s, nil)
	if rv != C.KVS_OK {
		return 0, c.lastErr()
	}
	rv = C.kvs_bind_int(s, 1, C.int(arg))
	if rv != C.KVS_OK {
		return 0, c.lastErr()
	}
	n := int(C.kvs_column_int(s, 0))
	C.kvs_finalize(s)
	return n, nil
}
func (c *kvConn) goodQuery(sql string, arg int) (int, error) {
	cs := C.CString(sql)
	defer C.free(unsafe.Pointer(cs))
	var s *C.kvs_stmt
	rv := C.kvs_prepare_v2(c.db, cs, -1, &s, nil)
	if rv != C.KVS_OK {
		return 0, c.lastErr()
	}
	rv = C.kvs_bind_int(s, 1, C.int(arg))
	if rv != C.KVS_OK {
		C.kvs_finalize(s)
		return 0, c.lastErr()
	}
	n := int(C.kvs_column_int(s, 0))
	C.kvs_finalize(s)
	return n, nil
}

func (c *kvConn) badEach(sqls []string) int {
	n := 0
	for _, sql := range sqls {
		cs := C.CString(sql)
		st := C.kvs_stmt_new(c.db, cs)
		C.free(unsafe.Pointer(cs))
		if C.kvs_step(st) != 0 {
			continue
		}
		n++
		C.kvs_finalize(st)
	}
	return n
}
func (c *kvConn) goodEach(sqls []string) int {
	n := 0
	for _, sql := range sqls {
		cs := C.CString(sql)
		st := C.kvs_stmt_new(c.db, cs)
		C.free(unsafe.Pointer(cs))
		if st == nil {
			continue
		}
		if C.kvs_step(st) != 0 {
			C.kvs_finalize(st)
			continue
		}
		n++
		C.kvs_finalize(st)
	}
	return n
}
func (c *kvConn) badEachOut(sqls []*C.char) error {
	for _, sql := range sqls {
		var st *C.kvs_stmt
		if C.kvs_prepare_v2(c.db, sql, -1, &st, nil) != C.KVS_OK {
			return c.lastErr()
		}
		if C.kvs_step(st) == C.KVS_BUSY {
			continue
		}
		C.kvs_finalize(st)
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

func badErrno(path *C.char) error {
	db, errno := C.kvs_open2(path)
	if errno != nil {
		return errno
	}
	if C.kvs_check(db) != 0 {
		return errors.New("check")
	}
	C.kvs_close(db)
	return nil
}
func goodErrno(path *C.char) error {
	db, errno := C.kvs_open2(path)
	if errno != nil {
		return errno
	}
	defer C.kvs_close(db)
	if C.kvs_check(db) != 0 {
		return errors.New("check")
	}
	return nil
}

func badDeferAndClose(path *C.char) error {
	db := C.kvs_open1(path)
	defer C.kvs_close(db)
	if C.kvs_check(db) != 0 {
		C.kvs_close(db)
		return errors.New("check")
	}
	return nil
}
func goodDeferAndClose(path *C.char) error {
	db := C.kvs_open1(path)
	if C.kvs_check(db) != 0 {
		C.kvs_close(db)
		return errors.New("check")
	}
	defer C.kvs_close(db)
	return nil
}

func badPairKey(k, v string) {
	p := (*C.kvs_pair)(C.calloc(1, C.sizeof_kvs_pair))
	p.key = C.CString(k)
	p.value = C.CString(v)
	C.kvs_use(p)
	C.free(unsafe.Pointer(p.key))
	C.free(unsafe.Pointer(p))
}
func goodPairKey(k, v string) {
	p := (*C.kvs_pair)(C.calloc(1, C.sizeof_kvs_pair))
	p.key = C.CString(k)
	p.value = C.CString(v)
	C.kvs_use(p)
	C.free(unsafe.Pointer(p.key))
	C.free(unsafe.Pointer(p.value))
	C.free(unsafe.Pointer(p))
}
func badConfig(name string, db *C.kvs) error {
	var cfg C.kvs_config
	cfg.name = C.CString(name)
	if C.kvs_configure(db, &cfg) != 0 {
		return errors.New("configure")
	}
	C.free(unsafe.Pointer(cfg.name))
	return nil
}
func goodConfig(name string, db *C.kvs) error {
	var cfg C.kvs_config
	cfg.name = C.CString(name)
	defer C.free(unsafe.Pointer(cfg.name))
	if C.kvs_configure(db, &cfg) != 0 {
		return errors.New("configure")
	}
	return nil
}

func (c *kvConn) badSetCallback(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cb = cgo.NewHandle(f)
	C.kvs_hook(c.db, C.uintptr_t(c.cb))
}
func (c *kvConn) goodSetCallback(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cb != 0 {
		c.cb.Delete()
	}
	c.cb = cgo.NewHandle(f)
	C.kvs_hook(c.db, C.uintptr_t(c.cb))
}
func (c *kvConn) badSeek(key *C.char) {
	c.cur = C.kvs_cursor_new(c.db)
	C.kvs_seek(c.cur, key)
}
func (c *kvConn) goodSeek(key *C.char) {
	if c.cur != nil {
		C.kvs_cursor_free(c.cur)
	}
	c.cur = C.kvs_cursor_new(c.db)
	C.kvs_seek(c.cur, key)
}

type registry struct{ m map[int]cgo.Handle }

func (r *registry) Close() {
	for _, h := range r.m {
		h.Delete()
	}
	r.m = nil
}
func (r *registry) badRemove(id int) { delete(r.m, id) }
func (r *registry) goodRemove(id int) {
	if h, ok := r.m[id]; ok {
		h.Delete()
		delete(r.m, id)
	}
}

type Buf struct {
	p unsafe.Pointer
	n C.size_t
}

func (b *Buf) badShow() {
	C.free(b.p)
	C.kvs_dump(b.p, b.n)
}
func (b *Buf) goodShow() {
	C.kvs_dump(b.p, b.n)
	C.free(b.p)
	b.p = nil
}
func (b *Buf) badFreeTwice() {
	C.free(b.p)
	b.n = 0
	C.free(b.p)
}
func (b *Buf) goodFreeTwice() {
	C.free(b.p)
	b.p = C.malloc(10)
	C.free(b.p)
	b.p = nil
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
func badFrameErr(n int, name string) (_ *frame, err error) {
	var f frame
	f.luma = (*C.uchar)(C.malloc(C.size_t(n)))
	cn := C.CString(name)
	defer C.free(unsafe.Pointer(cn))
	if err = loadName(cn); err != nil {
		return nil, err
	}
	f.chroma = (*C.uchar)(C.malloc(C.size_t(n)))
	return &f, nil
}
func loadName(*C.char) error { return nil }

// list: malloc fails after
func badListMalloc(words []string) (unsafe.Pointer, error) {
	list := make([]*C.char, 0, len(words))
	for _, w := range words {
		list = append(list, C.CString(w))
	}
	out := C.malloc(64)
	if out == nil {
		return nil, errors.New("no memory")
	}
	C.kvs_join(out, &list[0], C.int(len(list)))
	for i := range list {
		C.free(unsafe.Pointer(list[i]))
	}
	return out, nil
}
func goodListMalloc(words []string) (unsafe.Pointer, error) {
	list := make([]*C.char, 0, len(words))
	for _, w := range words {
		list = append(list, C.CString(w))
	}
	out := C.malloc(64)
	if out != nil {
		C.kvs_join(out, &list[0], C.int(len(list)))
	}
	for i := range list {
		C.free(unsafe.Pointer(list[i]))
	}
	if out == nil {
		return nil, errors.New("no memory")
	}
	return out, nil
}
func badListConvert(db *C.kvs, m map[string]string) error {
	var ks, vs []*C.char
	for k, v := range m {
		ks = append(ks, C.CString(k))
		vs = append(vs, C.CString(v))
	}
	err := put(db, ks, vs)
	if err != nil {
		return err
	}
	for i := range ks {
		C.free(unsafe.Pointer(ks[i]))
		C.free(unsafe.Pointer(vs[i]))
	}
	return nil
}
func put(db *C.kvs, ks, vs []*C.char) error {
	if C.kvs_put_all(db, &ks[0], &vs[0]) != 0 {
		return errors.New("put")
	}
	return nil
}

func badListNever(db *C.kvs, words []string) {
	list := make([]*C.char, len(words))
	for i := range words {
		list[i] = C.CString(words[i])
	}
	C.kvs_put_all(db, &list[0], nil)
}

// finalizer by value through a struct field
type Tok struct{ t *C.kvs_stmt }

func badTokCopy(db *C.kvs, s *C.char) Tok {
	var t Tok
	t.t = C.kvs_stmt_new(db, s)
	runtime.SetFinalizer(&t, func(t *Tok) { C.kvs_finalize(t.t) })
	return t
}
func badTokCleanup(db *C.kvs, s *C.char) Tok {
	t := &Tok{C.kvs_stmt_new(db, s)}
	runtime.AddCleanup(t, func(s *C.kvs_stmt) { C.kvs_finalize(s) }, t.t)
	return *t
}

// handle
func badHandleLeakErr(db *C.kvs, f func()) (*kvConn, error) {
	c := &kvConn{db: db, cb: cgo.NewHandle(f)}
	if C.kvs_hook(db, C.uintptr_t(c.cb)) != C.KVS_OK {
		return nil, errors.New("hook")
	}
	return c, nil
}
func goodHandleNever(db *C.kvs, f func()) {
	h := cgo.NewHandle(f)
	C.kvs_each(db, C.uintptr_t(h))
	h.Delete()
}
func badHandleDefer(db *C.kvs, f func()) cgo.Handle {
	h := cgo.NewHandle(f)
	defer h.Delete()
	C.kvs_hook(db, C.uintptr_t(h))
	return h
}
func badHandleLoop(db *C.kvs, fs []func()) error {
	for _, f := range fs {
		h := cgo.NewHandle(f)
		if C.kvs_each(db, C.uintptr_t(h)) != 0 {
			return errors.New("each")
		}
		h.Delete()
	}
	return nil
}

// linked list through Go-ish walk
func badWalkPrev(tail *C.kvs_node) {
	n := tail
	for n != nil {
		C.kvs_node_free(n)
		n = n.prev
	}
}
func goodWalkPrev(tail *C.kvs_node) {
	n := tail
	for n != nil {
		p := n.prev
		C.kvs_node_free(n)
		n = p
	}
}
func badWalkIndex(head *C.kvs_node) int {
	k := 0
	for n := head; n != nil; n, k = n.next, k+1 {
		C.kvs_node_free(n)
	}
	return k
}
func badWalkCall(head *C.kvs_node) {
	for n := head; n != nil; n = C.kvs_node_next(n) {
		C.kvs_node_free(n)
	}
}

// realloc
func badReallocGrow(data []byte) *C.char {
	buf := (*C.char)(C.malloc(16))
	old := buf
	buf = (*C.char)(C.realloc(unsafe.Pointer(buf), 64))
	C.kvs_note(old)
	return buf
}
func badReallocDirect(p unsafe.Pointer, n C.size_t) unsafe.Pointer {
	C.realloc(p, n)
	return p
}
func badReallocView(n int) byte {
	p := C.malloc(16)
	s := unsafe.Slice((*byte)(p), 16)
	q := C.realloc(p, C.size_t(n))
	defer C.free(q)
	return s[0]
}
func goodReallocView(n int) byte {
	p := C.malloc(16)
	q := C.realloc(p, C.size_t(n))
	defer C.free(q)
	s := unsafe.Slice((*byte)(q), 16)
	return s[0]
}

func goodWalkList(list []*C.kvs_node) {
	var n *C.kvs_node
	for _, n = range list {
		C.kvs_node_free(n)
	}
}
