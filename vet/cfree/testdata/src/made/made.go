// Package made has objects of C that are released on some ways only.
package made

/*
#include <stdlib.h>
typedef struct reader reader;
int reader_open(const char *path, reader **out);
int reader_seek(reader *r, int at);
void reader_close(reader *r);
char *reader_last(reader *r);
int reader_load(reader *r, char **message); int reader_number(int *status); void reader_delete(int n);
typedef struct { char *data; int len; } buffer; int reader_fill(reader *r, buffer *b); void buffer_free(buffer b);
typedef struct { int kind; } value; value reader_eval(reader *r); void value_free(value v);
typedef unsigned OM_uint32; int reader_init(OM_uint32 *status, buffer *b); int buffer_close(OM_uint32 *status, buffer *b); void reader_get0(reader *r, char **p); static char *kept; static char *same(void *p) { return (char *)p; }
static void keep(char *p) { kept = p; }
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/cgo"
	"unsafe"
)

var errSeek = errors.New("seek")

func check(status C.int) error {
	if status != 0 {
		return fmt.Errorf("status %d", int(status))
	}
	return nil
}

// That C has failed to make something is known by its status, and by what the function makes of that.
func seek(path *C.char) error {
	var r *C.reader
	err := check(C.reader_open(path, &r)) // want `what C.reader_open gives r is not freed on the way to the return in line 44`
	if err != nil {
		return err
	}
	if C.reader_seek(r, 1) < 0 {
		return errSeek
	}
	C.reader_close(r)
	return nil
}

// A message that is there only where C has failed.
func load(r *C.reader) error {
	var message *C.char
	if C.reader_load(r, &message) != 0 {
		err := errors.New(C.GoString(message))
		C.free(unsafe.Pointer(message))
		return err
	}
	return nil
}

// An owner that is made in parts, of which a method frees all but one.
type owner struct {
	r          *C.reader
	name, path *C.char
}

func (o *owner) Close() { // want `Close frees other fields of owner, and nothing frees the field path` Close:"releases" Close:"params\\[0\\]"
	C.reader_close(o.r)
	C.free(unsafe.Pointer(o.name))
}

func open(path string) (*owner, error) { // want open:"results\\[0\\]"
	o := &owner{path: C.CString(path), name: C.CString("name")} // want `what C.CString has made for o.name is not freed on the way to the return in line 75`
	if C.reader_open(o.path, &o.r) != 0 {
		return nil, errSeek
	}
	return o, nil
}

func handle(n int) error {
	h := cgo.NewHandle(n) // want `the result of cgo.NewHandle is not freed on the way to the return in line 83`
	if n < 0 {
		return errSeek
	}
	h.Delete()
	return nil
}

// Where C has failed the handle is the caller's, else a callback deletes it.
func given(n int) error {
	h := cgo.NewHandle(n)
	if C.reader_seek(nil, C.int(h)) != 0 {
		h.Delete()
		return errSeek
	}
	return nil
}

func pin(b []byte) error {
	var p runtime.Pinner
	p.Pin(&b[0]) // want `what p has pinned is not freed on the way to the return in line 103`
	if C.reader_seek(nil, 1) != 0 {
		return errSeek
	}
	p.Unpin()
	return nil
}

func keep(b []byte) {
	C.keep((*C.char)(unsafe.Pointer(&b[0]))) // want `C.keep keeps the address of b`
}

type value struct{ r *C.reader }

func byValue(r *C.reader) value {
	v := value{r}
	runtime.SetFinalizer(&v, func(v *value) { C.reader_close(v.r) }) // want `the object is v, which is collected when the function has returned a copy of it`
	return v
}

// What says that C has failed: a number of Go, a field, the address of a number in a variable, a type of Go, or the error itself.
var noNumber = C.reader_number(nil)

type code int

func (c code) good() bool { return c == 0 }

type numbered struct {
	n, status C.int
	r         *C.reader
}

func (o *numbered) Close() { // want Close:"releases" Close:"params\\[0\\]"
	C.reader_close(o.r)
	C.reader_delete(o.n)
}

func number() (*numbered, error) {
	o := new(numbered)
	if o.n = C.reader_number(nil); o.n == noNumber {
		return nil, errSeek
	}
	return o, nil
}

func byAddress() (*numbered, error) {
	o := new(numbered)
	var status int
	p := unsafe.Pointer(&status)
	o.n = C.reader_number((*C.int)(p))
	if status != int(noNumber) {
		return nil, errSeek
	}
	return o, nil
}

func ofField(path *C.char) (*numbered, error) {
	o := new(numbered)
	o.status = C.reader_open(path, &o.r)
	if o.status != noNumber {
		return nil, errSeek
	}
	return o, nil
}

func byType(path *C.char) (*numbered, error) {
	o := new(numbered)
	var res = C.reader_open(path, &o.r)
	if c := code(res); !c.good() {
		return nil, errSeek
	}
	return o, nil
}

func again(path *C.char) error {
	for {
		var r *C.reader
		status := C.reader_open(path, &r)
		if status == 0 {
			C.reader_close(r)
			continue
		} else if status != -11 {
			break
		}
		if C.reader_seek(nil, 0) < 0 {
			return errSeek
		}
	}
	var r *C.reader
	for i := range 3 {
		status := C.reader_open(path, &r)
		if status == 0 {
			break
		}
		if status == -11 && i < 2 {
			continue
		}
		return fmt.Errorf("status %d", int(status))
	}
	C.reader_close(r)
	return nil
}

// C has made nothing where a field is nil, or where a check says so.
func fill(r *C.reader, n C.int) error {
	var b, c C.buffer
	if C.reader_fill(r, &b) != 0 || b.data == nil {
		return errSeek
	}
	C.buffer_free(b)
	if C.reader_fill(r, &c) != 0 {
		return errSeek
	}
	if c.len < n {
		return errSeek
	}
	C.buffer_free(c)
	return nil
}

func values(r *C.reader) error {
	v, w := C.reader_eval(r), C.reader_eval(r)
	if err := checkValue(v); err != nil {
		C.value_free(w)
		return err
	}
	C.value_free(v)
	u := C.reader_eval(r)
	if err := check(C.reader_seek(r, 1)); err != nil {
		return err
	}
	C.value_free(u)
	return nil
}

func checkValue(v C.value) error { return check(v.kind) }

// A function of C that returns its argument makes nothing.
func sameAs(b []byte) error {
	p := C.same(unsafe.Pointer(&b))
	if C.reader_load(nil, &p) != 0 {
		return errSeek
	}
	C.free(unsafe.Pointer(p))
	return nil
}

// A number is not released, and an empty buffer has nothing.
func openBuffer(r *C.reader) error {
	var status C.OM_uint32
	var b C.buffer
	if C.reader_init(&status, &b) != 0 {
		return errSeek
	}
	if b.len > 0 {
		if C.reader_seek(r, b.len) != 0 {
			C.buffer_close(&status, &b)
			return errSeek
		}
		C.buffer_close(&status, &b)
	}
	return nil
}

// A name such as get says that somebody else has it.
func parts(r *C.reader, own bool) error {
	var p *C.char
	if !own {
		C.reader_get0(r, &p)
	} else {
		defer func() { C.free(unsafe.Pointer(p)) }()
		if C.reader_load(r, &p) != 0 {
			return errSeek
		}
	}
	if *p == 0 {
		return errSeek
	}
	return nil
}
