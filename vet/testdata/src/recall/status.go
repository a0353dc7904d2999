package recall

/*
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
typedef void (*dtor)(void *);
typedef struct ctx ctx;
struct slot { uintptr_t user; void *buf; size_t n; };
static void *kept_buf;
static size_t kept_n;
static uintptr_t kept_h;
static void keep_buf(void *p, size_t n) { kept_buf = p; kept_n = n; }
static void keep_user(void *p) { kept_buf = p; }
static void use_buf(void *p, size_t n) { memset(p, 0, n); }
static void slot_set(struct slot *s, void *p, size_t n) { s->buf = p; s->n = n; }
void ctx_register(ctx *c, uintptr_t h);
int ctx_run(ctx *c, uintptr_t h);
void ctx_unregister(ctx *c);
ctx *ctx_new(void);
void ctx_free(ctx *c);
// Sets the certificate. On success the context takes ownership of cert, on failure the caller keeps it.
int ctx_set0_cert(ctx *c, void *cert);
int ctx_bind_text(ctx *c, int i, const char *s, int n, dtor d);
int X509_set_name(ctx *c, void *name);
static void count_up(int *n) { (*n)++; }
static int *counter;
static void set_counter(int *n) { counter = n; }
*/
import "C"

import (
	"errors"
	"runtime"
	"runtime/cgo"
	"unsafe"
)

var errCtx = errors.New("ctx")

type payload struct{ n int }

func badHandlePath(c *C.ctx, s *payload) error {
	h := cgo.NewHandle(s)
	if C.ctx_run(c, C.uintptr_t(h)) != 0 {
		return errCtx
	}
	h.Delete()
	return nil
}
func goodHandlePath(c *C.ctx, s *payload) error {
	h := cgo.NewHandle(s)
	defer h.Delete()
	if C.ctx_run(c, C.uintptr_t(h)) != 0 {
		return errCtx
	}
	return nil
}
func badHandleUse(s *payload) int {
	h := cgo.NewHandle(s)
	h.Delete()
	return h.Value().(*payload).n
}
func goodHandleUse(s *payload) int {
	h := cgo.NewHandle(s)
	n := h.Value().(*payload).n
	h.Delete()
	return n
}
func badHandleC(c *C.ctx, s *payload) {
	h := cgo.NewHandle(s)
	C.ctx_register(c, C.uintptr_t(h))
	h.Delete()
	C.ctx_run(c, C.uintptr_t(h))
}
func goodHandleC(c *C.ctx, s *payload) {
	h := cgo.NewHandle(s)
	C.ctx_register(c, C.uintptr_t(h))
	C.ctx_run(c, C.uintptr_t(h))
	C.ctx_unregister(c)
	h.Delete()
}
func badHandleTwice(c *C.ctx, s *payload) error {
	h := cgo.NewHandle(s)
	defer h.Delete()
	if C.ctx_run(c, C.uintptr_t(h)) != 0 {
		h.Delete()
		return errCtx
	}
	return nil
}
func goodHandleTwice(c *C.ctx, s *payload) error {
	h := cgo.NewHandle(s)
	if C.ctx_run(c, C.uintptr_t(h)) != 0 {
		h.Delete()
		return errCtx
	}
	h.Delete()
	return nil
}
func badHandleAddr(s *payload) cgo.Handle {
	h := cgo.NewHandle(s)
	C.keep_user(unsafe.Pointer(&h))
	return h
}
func goodHandleAddr(s *payload) cgo.Handle {
	h := cgo.NewHandle(s)
	C.keep_user(unsafe.Pointer(uintptr(h)))
	return h
}

type host struct {
	c *C.ctx
	h cgo.Handle
}

func (s *host) Close() {
	C.ctx_free(s.c)
	s.h.Delete()
}
func badServer(st *payload) (*host, error) {
	h := cgo.NewHandle(st)
	c := C.ctx_new()
	if c == nil {
		return nil, errCtx
	}
	C.ctx_register(c, C.uintptr_t(h))
	return &host{c, h}, nil
}
func goodServer(st *payload) (*host, error) {
	h := cgo.NewHandle(st)
	c := C.ctx_new()
	if c == nil {
		h.Delete()
		return nil, errCtx
	}
	C.ctx_register(c, C.uintptr_t(h))
	return &host{c, h}, nil
}

//export goB
func goB(h C.uintptr_t) C.int { return C.int(cgo.Handle(h).Value().(*payload).n) }

func badCounter() int {
	var n C.int
	C.set_counter(&n)
	return int(n)
}
func goodCounter() int {
	var n C.int
	C.count_up(&n)
	return int(n)
}
func badKeepSlice(b []byte) {
	C.keep_buf(unsafe.Pointer(&b[0]), C.size_t(len(b)))
}
func goodKeepSlice(b []byte) {
	C.use_buf(unsafe.Pointer(&b[0]), C.size_t(len(b)))
}

type pinned struct {
	b []byte
	p runtime.Pinner
}

func goodKeepPinned(b []byte) *pinned {
	k := &pinned{b: b}
	k.p.Pin(&b[0])
	C.keep_buf(unsafe.Pointer(&b[0]), C.size_t(len(b)))
	return k
}
func badKeepMade(n int) []byte {
	b := make([]byte, n)
	C.keep_buf(unsafe.Pointer(unsafe.SliceData(b)), C.size_t(n))
	return b
}
func badKeepStruct() *payload {
	s := &payload{}
	C.keep_user(unsafe.Pointer(s))
	return s
}
func badPinPath(c *C.ctx, b []byte) error {
	var p runtime.Pinner
	p.Pin(&b[0])
	C.keep_buf(unsafe.Pointer(&b[0]), C.size_t(len(b)))
	if C.ctx_run(c, 0) != 0 {
		return errCtx
	}
	p.Unpin()
	return nil
}
func goodPinPath(c *C.ctx, b []byte) error {
	var p runtime.Pinner
	p.Pin(&b[0])
	defer p.Unpin()
	C.keep_buf(unsafe.Pointer(&b[0]), C.size_t(len(b)))
	if C.ctx_run(c, 0) != 0 {
		return errCtx
	}
	return nil
}

// realloc
func badReallocOld(n int) byte {
	p := (*C.char)(C.malloc(8))
	q := (*C.char)(C.realloc(unsafe.Pointer(p), C.size_t(n)))
	b := byte(*p)
	C.free(unsafe.Pointer(q))
	return b
}
func goodReallocOld(n int) byte {
	p := (*C.char)(C.malloc(8))
	q := (*C.char)(C.realloc(unsafe.Pointer(p), C.size_t(n)))
	b := byte(*q)
	C.free(unsafe.Pointer(q))
	return b
}
func badReallocFail(n int) (unsafe.Pointer, error) {
	p := C.malloc(8)
	p = C.realloc(p, C.size_t(n))
	if p == nil {
		return nil, errCtx
	}
	return p, nil
}

type buffer struct {
	p unsafe.Pointer
	n int
}

func (b *buffer) badGrow(n int) error {
	b.p = C.realloc(b.p, C.size_t(n))
	if b.p == nil {
		return errCtx
	}
	b.n = n
	return nil
}
func (b *buffer) goodGrow(n int) error {
	p := C.realloc(b.p, C.size_t(n))
	if p == nil {
		return errCtx
	}
	b.p, b.n = p, n
	return nil
}
func badReallocAlias(n int) {
	p := C.malloc(8)
	view := unsafe.Slice((*byte)(p), 8)
	p = C.realloc(p, C.size_t(n))
	view[0] = 1
	C.free(p)
}

type value struct{ c *C.ctx }

func badByValue() value {
	v := value{C.ctx_new()}
	runtime.SetFinalizer(&v, func(v *value) { C.ctx_free(v.c) })
	return v
}
func goodByValue() *value {
	v := value{C.ctx_new()}
	runtime.SetFinalizer(&v, func(v *value) { C.ctx_free(v.c) })
	return &v
}
func badByValue2() (value, error) {
	v := new(value)
	v.c = C.ctx_new()
	runtime.SetFinalizer(v, func(v *value) { C.ctx_free(v.c) })
	return *v, nil
}

// ownership
func goodSet0(c *C.ctx, n int) error {
	p := C.malloc(C.size_t(n))
	if C.ctx_set0_cert(c, p) != 0 {
		C.free(p)
		return errCtx
	}
	return nil
}
func goodSet0Rc(c *C.ctx, n int) error {
	p := C.malloc(C.size_t(n))
	if rc := C.ctx_set0_cert(c, p); rc != 1 {
		C.free(p)
		return errCtx
	}
	return nil
}
func badSet0(c *C.ctx, n int) error {
	p := C.malloc(C.size_t(n))
	rc := C.ctx_set0_cert(c, p)
	C.free(p)
	if rc != 0 {
		return errCtx
	}
	return nil
}
func goodBind(c *C.ctx, s string) error {
	cs := C.CString(s)
	if rc := C.ctx_bind_text(c, 1, cs, C.int(len(s)), C.dtor(C.free)); rc != 0 {
		C.free(unsafe.Pointer(cs))
		return errCtx
	}
	return nil
}
func goodX509(c *C.ctx) error {
	name := C.malloc(20)
	if C.X509_set_name(c, name) != 1 {
		C.free(name)
		return errCtx
	}
	return nil
}
func goodX509Rc(c *C.ctx, s string) (err error) {
	name := C.CString(s)
	ok := C.X509_set_name(c, unsafe.Pointer(name))
	if ok == 0 {
		C.free(unsafe.Pointer(name))
		err = errCtx
	}
	return err
}
func goodX509Late(c *C.ctx, s string) (err error) {
	name := C.CString(s)
	defer func() {
		if err != nil {
			C.free(unsafe.Pointer(name))
		}
	}()
	if C.X509_set_name(c, unsafe.Pointer(name)) == 0 {
		return errCtx
	}
	return nil
}
