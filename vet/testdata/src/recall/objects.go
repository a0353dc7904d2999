package recall

/*
#include <stdlib.h>
#include <stdint.h>
typedef struct lib lib;
typedef struct stmt stmt;
typedef struct node { struct node *next; int v; } node;
int lib_open(const char *path, lib **out);
void lib_close(lib *l);
int lib_configure(lib *l, int level);
int lib_prepare(lib *l, const char *sql, stmt **out);
int lib_step(stmt *s);
void lib_finalize(stmt *s);
lib *lib_connect(int port);
void lib_disconnect(lib *l);
typedef struct doc doc;
doc *xml_read_memory(const char *b, int n);
void xml_free_doc(doc *d);
int xml_validate(doc *d);
int lib_exec(lib *l, char **argv, int n);
int lib_set_blob(lib *l, void *p, size_t n);
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

var errLib = errors.New("lib")

type DB struct{ h *C.lib }

func (d *DB) Close() { C.lib_close(d.h); d.h = nil }

func badOutOpen(path string) (*DB, error) {
	cp := C.CString(path)
	defer C.free(unsafe.Pointer(cp))
	var h *C.lib
	if rc := C.lib_open(cp, &h); rc != 0 {
		return nil, fmt.Errorf("open: %d", int(rc))
	}
	if rc := C.lib_configure(h, 3); rc != 0 {
		return nil, fmt.Errorf("configure: %d", int(rc))
	}
	return &DB{h: h}, nil
}
func goodOutOpen(path string) (*DB, error) {
	cp := C.CString(path)
	defer C.free(unsafe.Pointer(cp))
	var h *C.lib
	if rc := C.lib_open(cp, &h); rc != 0 {
		return nil, fmt.Errorf("open: %d", int(rc))
	}
	if rc := C.lib_configure(h, 3); rc != 0 {
		C.lib_close(h)
		return nil, fmt.Errorf("configure: %d", int(rc))
	}
	return &DB{h: h}, nil
}

func badOutStmt(d *DB, sql string) error {
	cs := C.CString(sql)
	defer C.free(unsafe.Pointer(cs))
	var st *C.stmt
	rc := C.lib_prepare(d.h, cs, &st)
	if rc != 0 {
		return errLib
	}
	if C.lib_step(st) < 0 {
		return errLib
	}
	C.lib_finalize(st)
	return nil
}
func goodOutStmt(d *DB, sql string) error {
	cs := C.CString(sql)
	defer C.free(unsafe.Pointer(cs))
	var st *C.stmt
	rc := C.lib_prepare(d.h, cs, &st)
	if rc != 0 {
		return errLib
	}
	defer C.lib_finalize(st)
	if C.lib_step(st) < 0 {
		return errLib
	}
	return nil
}

func badOutNever(d *DB, sql *C.char) int {
	var st *C.stmt
	if C.lib_prepare(d.h, sql, &st) != 0 {
		return -1
	}
	return int(C.lib_step(st))
}
func goodOutNever(d *DB, sql *C.char) int {
	var st *C.stmt
	if C.lib_prepare(d.h, sql, &st) != 0 {
		return -1
	}
	n := int(C.lib_step(st))
	C.lib_finalize(st)
	return n
}

func badDoc(b []byte) error {
	d := C.xml_read_memory((*C.char)(unsafe.Pointer(&b[0])), C.int(len(b)))
	if d == nil {
		return errLib
	}
	if C.xml_validate(d) != 0 {
		return errors.New("invalid")
	}
	C.xml_free_doc(d)
	return nil
}
func goodDoc(b []byte) error {
	d := C.xml_read_memory((*C.char)(unsafe.Pointer(&b[0])), C.int(len(b)))
	if d == nil {
		return errLib
	}
	if C.xml_validate(d) != 0 {
		C.xml_free_doc(d)
		return errors.New("invalid")
	}
	C.xml_free_doc(d)
	return nil
}

type conn struct {
	l   *C.lib
	buf unsafe.Pointer
}

func (c *conn) Close() {
	C.lib_disconnect(c.l)
	C.free(c.buf)
}

func badTwo(port int) (*conn, error) {
	l := C.lib_connect(C.int(port))
	if l == nil {
		return nil, errLib
	}
	buf := C.malloc(4096)
	if buf == nil {
		return nil, errors.New("no memory")
	}
	return &conn{l: l, buf: buf}, nil
}
func goodTwo(port int) (*conn, error) {
	l := C.lib_connect(C.int(port))
	if l == nil {
		return nil, errLib
	}
	buf := C.malloc(4096)
	if buf == nil {
		C.lib_disconnect(l)
		return nil, errors.New("no memory")
	}
	return &conn{l: l, buf: buf}, nil
}

func badTwoFields(port int) (*conn, error) {
	c := &conn{}
	c.buf = C.malloc(4096)
	if c.buf == nil {
		return nil, errLib
	}
	c.l = C.lib_connect(C.int(port))
	if c.l == nil {
		return nil, errLib
	}
	return c, nil
}
func goodTwoFields(port int) (*conn, error) {
	c := &conn{}
	c.buf = C.malloc(4096)
	if c.buf == nil {
		return nil, errLib
	}
	c.l = C.lib_connect(C.int(port))
	if c.l == nil {
		C.free(c.buf)
		return nil, errLib
	}
	return c, nil
}
func goodTwoClose(port int) (*conn, error) {
	c := &conn{}
	c.buf = C.malloc(4096)
	c.l = C.lib_connect(C.int(port))
	if c.l == nil {
		c.Close()
		return nil, errLib
	}
	return c, nil
}

func badTwoMalloc(n int) (*pair, error) {
	a := C.malloc(C.size_t(n))
	if a == nil {
		return nil, errLib
	}
	b := C.malloc(C.size_t(n))
	if b == nil {
		return nil, errLib
	}
	return &pair{a: a, b: b}, nil
}
func goodTwoMalloc(n int) (*pair, error) {
	a := C.malloc(C.size_t(n))
	if a == nil {
		return nil, errLib
	}
	b := C.malloc(C.size_t(n))
	if b == nil {
		C.free(a)
		return nil, errLib
	}
	return &pair{a: a, b: b}, nil
}

type pair struct{ a, b unsafe.Pointer }

func (p *pair) Free() { C.free(p.a); C.free(p.b) }

// Close frees all but one.
type trio struct {
	name *C.char
	path *C.char
	buf  unsafe.Pointer
}

func newTrio(name, path string) *trio {
	return &trio{name: C.CString(name), path: C.CString(path), buf: C.malloc(64)}
}

func (t *trio) badCloseButOne() {
	C.free(unsafe.Pointer(t.name))
	C.free(t.buf)
	t.name, t.buf = nil, nil
}

type trio2 struct {
	name *C.char
	path *C.char
	h    *C.lib
}

func newTrio2(name, path string, port int) *trio2 {
	return &trio2{name: C.CString(name), path: C.CString(path), h: C.lib_connect(C.int(port))}
}

func (t *trio2) goodCloseButOne() {
	C.free(unsafe.Pointer(t.name))
	t.drop()
	if t.h != nil {
		C.lib_disconnect(t.h)
	}
}
func (t *trio2) drop() { C.free(unsafe.Pointer(t.path)) }

type session struct {
	l *C.lib
	d *C.doc
}

func newSession(port int, b []byte) *session {
	s := &session{l: C.lib_connect(C.int(port))}
	s.d = C.xml_read_memory((*C.char)(unsafe.Pointer(&b[0])), C.int(len(b)))
	return s
}
func (s *session) badCloseDoc() error {
	if s.l == nil {
		return nil
	}
	C.lib_disconnect(s.l)
	s.l = nil
	return nil
}

// slices
func badArgvAfter(d *DB, args []string) error {
	argv := make([]*C.char, len(args))
	for i, a := range args {
		argv[i] = C.CString(a)
	}
	if C.lib_exec(d.h, &argv[0], C.int(len(argv))) != 0 {
		return errLib
	}
	for _, p := range argv {
		C.free(unsafe.Pointer(p))
	}
	return nil
}
func goodArgvAfter(d *DB, args []string) error {
	argv := make([]*C.char, len(args))
	for i, a := range args {
		argv[i] = C.CString(a)
	}
	rc := C.lib_exec(d.h, &argv[0], C.int(len(argv)))
	for _, p := range argv {
		C.free(unsafe.Pointer(p))
	}
	if rc != 0 {
		return errLib
	}
	return nil
}
func badArgvIn(d *DB, args []string) error {
	argv := make([]*C.char, 0, len(args)+1)
	for _, a := range args {
		if len(a) > 255 {
			return fmt.Errorf("too long: %q", a)
		}
		argv = append(argv, C.CString(a))
	}
	argv = append(argv, nil)
	C.lib_exec(d.h, (**C.char)(unsafe.Pointer(&argv[0])), C.int(len(args)))
	for i := 0; i < len(args); i++ {
		C.free(unsafe.Pointer(argv[i]))
	}
	return nil
}
func goodArgvIn(d *DB, args []string) error {
	argv := make([]*C.char, 0, len(args)+1)
	defer func() {
		for _, p := range argv {
			if p != nil {
				C.free(unsafe.Pointer(p))
			}
		}
	}()
	for _, a := range args {
		if len(a) > 255 {
			return fmt.Errorf("too long: %q", a)
		}
		argv = append(argv, C.CString(a))
	}
	C.lib_exec(d.h, &argv[0], C.int(len(args)))
	return nil
}
func badFreeList(head *C.node) {
	for n := head; n != nil; n = n.next {
		C.free(unsafe.Pointer(n))
	}
}
func goodFreeList(head *C.node) {
	for n := head; n != nil; {
		next := n.next
		C.free(unsafe.Pointer(n))
		n = next
	}
}

type nodes struct{ head *C.node }

func (l *nodes) badFreeAll() {
	for n := l.head; n != nil; n = n.next {
		C.free(unsafe.Pointer(n))
	}
	l.head = nil
}

func badDeleteNode(l *nodes, v C.int) {
	for n := l.head; n != nil; n = (*C.node)(unsafe.Pointer(n.next)) {
		if n.v == v {
			C.free(unsafe.Pointer(n))
		}
	}
}
func goodDeleteNode(l *nodes, v C.int) {
	for n := l.head; n != nil; n = n.next {
		if n.v == v {
			C.free(unsafe.Pointer(n))
			break
		}
	}
}
func badFreeListOut() {
	var l *C.lib
	C.lib_open(nil, &l)
	C.lib_close(l)
	C.lib_configure(l, 1)
}
func goodBlob(d *DB, b []byte) error {
	p := C.CBytes(b)
	if C.lib_set_blob(d.h, p, C.size_t(len(b))) != 0 {
		C.free(p)
		return errLib
	}
	return nil
}
