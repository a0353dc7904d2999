package recall

/*
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
typedef struct eng eng; typedef struct img { int w; void *data; } img; typedef struct tok tok;
typedef void (*release_fn)(void *);
eng *eng_create(void); void eng_destroy(eng *e); int eng_start(eng *e); int eng_add_image(eng *e, img *i);
img *img_decode(const void *p, size_t n); void img_release(img *i); int img_size(img *i);
int tok_init(tok **t); void tok_deinit(tok *t); int tok_next(tok *t);
// The engine takes ownership of key if it returns 0; otherwise the caller frees it.
int eng_give_key(eng *e, char *key);
int eng_set_user(eng *e, void *user, release_fn f);
void eng_on(eng *e, uintptr_t h); void eng_off(eng *e, uintptr_t h);
char *eng_name_dup(eng *e);
const char *eng_name(eng *e);
static char *dup_name(const char *s) { char *r = malloc(strlen(s) + 1); if (r) strcpy(r, s); return r; }
static void *slots[16];
static void slot_put(int i, void *p) { slots[i] = p; }
static int sum(int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }
typedef struct { int *p; int n; } view;
static int view_sum(int *p, int n) { view v; v.p = p; v.n = n; return v.p[0] + v.n; }
*/
import "C"

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/cgo"
	"sync"
	"unsafe"
)

var errEng = errors.New("eng")

type Engine struct {
	e    *C.eng
	once sync.Once
	hs   []cgo.Handle
	imgs []*C.img
	key  *C.char
}

func (e *Engine) Close() error {
	e.once.Do(func() {
		for _, i := range e.imgs {
			C.img_release(i)
		}
		for _, h := range e.hs {
			h.Delete()
		}
		C.free(unsafe.Pointer(e.key))
		C.eng_destroy(e.e)
	})
	return nil
}

func goodNewClose() (*Engine, error) {
	e := &Engine{e: C.eng_create()}
	if e.e == nil {
		return nil, errEng
	}
	if ret := C.eng_start(e.e); ret != 0 {
		_ = e.Close()
		return nil, fmt.Errorf("eng_start: %d", int(ret))
	}
	return e, nil
}
func goodNewDefer() (_ *Engine, err error) {
	e := C.eng_create()
	defer func() {
		if err != nil {
			C.eng_destroy(e)
		}
	}()
	if ret := C.eng_start(e); ret != 0 {
		return nil, errEng
	}
	return &Engine{e: e}, nil
}
func goodNewFlag() (*Engine, error) {
	e := C.eng_create()
	ok := false
	defer func() {
		if !ok {
			C.eng_destroy(e)
		}
	}()
	if C.eng_start(e) != 0 {
		return nil, errEng
	}
	ok = true
	return &Engine{e: e}, nil
}
func goodNewFinal() (*Engine, error) {
	e := &Engine{e: C.eng_create()}
	runtime.SetFinalizer(e, (*Engine).Close)
	if C.eng_start(e.e) != 0 {
		return nil, errEng
	}
	return e, nil
}
func goodNewGoto() (*Engine, error) {
	var err error
	e := C.eng_create()
	if C.eng_start(e) != 0 {
		err = errEng
		goto fail
	}
	return &Engine{e: e}, nil
fail:
	C.eng_destroy(e)
	return nil, err
}
func goodCleanups(b []byte) (_ *Engine, err error) {
	var undo []func()
	defer func() {
		if err != nil {
			for _, f := range undo {
				f()
			}
		}
	}()
	e := C.eng_create()
	undo = append(undo, func() { C.eng_destroy(e) })
	if C.eng_start(e) != 0 {
		return nil, errEng
	}
	return &Engine{e: e}, nil
}

func (e *Engine) goodAdd(b []byte) error {
	i := C.img_decode(unsafe.Pointer(&b[0]), C.size_t(len(b)))
	if i == nil {
		return io.ErrUnexpectedEOF
	}
	if C.eng_add_image(e.e, i) != 0 {
		C.img_release(i)
		return errEng
	}
	return nil
}
func badSize(b []byte) (int, error) {
	i := C.img_decode(unsafe.Pointer(&b[0]), C.size_t(len(b)))
	if i == nil {
		return 0, errEng
	}
	n := C.img_size(i)
	if n == 0 {
		return 0, errors.New("empty")
	}
	C.img_release(i)
	return int(n), nil
}
func goodSizeZero(b []byte) (n int, err error) {
	i := C.img_decode(unsafe.Pointer(&b[0]), C.size_t(len(b)))
	if i != nil {
		n = int(C.img_size(i))
		C.img_release(i)
	}
	if n == 0 {
		return 0, errors.New("empty")
	}
	return n, nil
}

func badTok(n int) error {
	var t *C.tok
	if ret := C.tok_init(&t); ret != 0 {
		return errEng
	}
	for i := 0; i < n; i++ {
		if C.tok_next(t) != 0 {
			return fmt.Errorf("token %d", i)
		}
	}
	C.tok_deinit(t)
	return nil
}
func goodTokBreak(n int) error {
	var t *C.tok
	if ret := C.tok_init(&t); ret != 0 {
		return errEng
	}
	var err error
	for i := 0; i < n; i++ {
		if C.tok_next(t) != 0 {
			err = fmt.Errorf("token %d", i)
			break
		}
	}
	C.tok_deinit(t)
	return err
}

type scanner struct{ t *C.tok }

func goodScanner() (*scanner, error) {
	s := new(scanner)
	if ret := C.tok_init(&s.t); ret != 0 {
		return nil, errEng
	}
	runtime.AddCleanup(s, func(t *C.tok) { C.tok_deinit(t) }, s.t)
	return s, nil
}
func (s *scanner) Close() { C.tok_deinit(s.t) }

func (e *Engine) badGiveKey(k string) error {
	ck := C.CString(k)
	defer C.free(unsafe.Pointer(ck))
	if C.eng_give_key(e.e, ck) != 0 {
		return errEng
	}
	return nil
}
func (e *Engine) goodGiveKey(k string) error {
	ck := C.CString(k)
	if C.eng_give_key(e.e, ck) != 0 {
		C.free(unsafe.Pointer(ck))
		return errEng
	}
	return nil
}
func (e *Engine) goodGiveKeyElse(k string) (err error) {
	ck := C.CString(k)
	if ret := C.eng_give_key(e.e, ck); ret == 0 {
		e.hs = nil
	} else {
		C.free(unsafe.Pointer(ck))
		err = errEng
	}
	return err
}
func (e *Engine) goodSetUser(n int) error {
	p := C.malloc(C.size_t(n))
	if C.eng_set_user(e.e, p, C.release_fn(C.free)) != 0 {
		C.free(p)
		return errEng
	}
	return nil
}
func badSlotGo(n int) *[4]int {
	a := new([4]int)
	C.slot_put(1, unsafe.Pointer(a))
	return a
}
func badSlotSlice() []C.int {
	s := make([]C.int, 4)
	C.slot_put(1, unsafe.Pointer(&s[0]))
	return s
}
func goodSum() int {
	s := make([]C.int, 4)
	return int(C.sum(&s[0], 4)) + int(C.view_sum(&s[0], 4))
}
func goodOneInt() int {
	var n C.int = 3
	return int(C.sum(&n, 1))
}
func (e *Engine) goodOnOff(f func()) {
	h := cgo.NewHandle(f)
	C.eng_on(e.e, C.uintptr_t(h))
	h.Delete()
	C.eng_off(e.e, C.uintptr_t(h))
}
func (e *Engine) goodOn(f func()) {
	h := cgo.NewHandle(f)
	e.hs = append(e.hs, h)
	C.eng_on(e.e, C.uintptr_t(h))
}
func (e *Engine) goodOnClosure(f func()) func() {
	h := cgo.NewHandle(f)
	C.eng_on(e.e, C.uintptr_t(h))
	return func() { C.eng_off(e.e, C.uintptr_t(h)); h.Delete() }
}
func (e *Engine) goodName() string {
	p := C.eng_name_dup(e.e)
	defer C.free(unsafe.Pointer(p))
	return C.GoString(p)
}
func badDupName(s string) string {
	cs := C.CString(s)
	defer C.free(unsafe.Pointer(cs))
	return C.GoString(C.dup_name(cs))
}
func (e *Engine) badNameErr(long bool) (string, error) {
	p := C.eng_name_dup(e.e)
	if p == nil {
		return "", errEng
	}
	if long {
		return "", errors.New("long")
	}
	s := C.GoString(p)
	C.free(unsafe.Pointer(p))
	return s, nil
}
func goodParts(words []string) ([]*C.char, error) {
	list := make([]*C.char, 0, len(words))
	for _, w := range words {
		if w == "" {
			freeList(list)
			return nil, errEng
		}
		list = append(list, C.CString(w))
	}
	return list, nil
}
func freeList(l []*C.char) {
	for _, p := range l {
		C.free(unsafe.Pointer(p))
	}
}
func badParts(words []string) ([]*C.char, error) {
	list := make([]*C.char, 0, len(words))
	for _, w := range words {
		if w == "" {
			return nil, errEng
		}
		list = append(list, C.CString(w))
	}
	return list, nil
}
func goodUseThenFree(e *Engine) {
	C.eng_destroy(e.e)
	e.e = C.eng_create()
	C.eng_start(e.e)
}
func goodDataAfter(b []byte) int {
	i := C.img_decode(unsafe.Pointer(&b[0]), C.size_t(len(b)))
	w := i.w
	C.img_release(i)
	return int(w)
}
func badCleanupPinned(e *Engine, b []byte) error {
	p := &runtime.Pinner{}
	p.Pin(&b[0])
	if C.eng_set_user(e.e, unsafe.Pointer(&b[0]), nil) != 0 {
		return errEng
	}
	p.Unpin()
	return nil
}

func numbers() []C.int { return nil }

func goodSumOther() int {
	s := numbers()
	return int(C.sum(&s[0], 1))
}
func goodSumOfParam(s []C.int) int { return int(C.sum(&s[0], 1)) }
