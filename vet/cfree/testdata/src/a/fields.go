package a

/*
#include <stdlib.h>
typedef struct { int kind; } head;
typedef struct { head parent; char *name; void *context; } request;
int request_perform(request *r);
void request_keep(head *h);
*/
import "C"

import "unsafe"

// One field of a struct is freed, and another one is not.
func oneOfTwo(s string) int {
	r := (*C.request)(C.calloc(1, C.sizeof_request))
	defer C.free(unsafe.Pointer(r))
	r.name = C.CString(s)
	defer func() {
		if r.name != nil {
			C.free(unsafe.Pointer(r.name))
		}
	}()
	context := (*C.int)(C.malloc(8)) // want `the result of C.malloc is never freed`
	*context = 1
	r.context = unsafe.Pointer(context)
	return int(C.request_perform(r))
}

func oneOfTwoValues(s string) int {
	var r C.request
	r.name = C.CString(s)
	r.context = C.malloc(8) // want `the result of C.malloc is never freed`
	C.free(unsafe.Pointer(r.name))
	return int(C.request_perform(&r))
}

func bothOfTwo(s string) int {
	var r C.request
	r.name = C.CString(s)
	r.context = C.malloc(8)
	same := r
	defer C.free(unsafe.Pointer(r.name))
	defer C.free(same.context)
	return int(C.request_perform(&r))
}

// The address of the first field is that of the whole.
func wholeKept(s string) *C.head { // want wholeKept:"results\\[0\\]"
	r := (*C.request)(C.calloc(1, C.sizeof_request))
	r.name = C.CString(s)
	return &r.parent
}

type strings2 struct{ a, b *C.char }

type triple struct {
	strings2
	c *C.char
}

func embeddedField(s string) {
	var t triple
	t.a = C.CString(s)
	defer C.free(unsafe.Pointer(t.strings2.a))
	_ = t.a
}

func returnedField(s string) *C.char {
	var p strings2
	p.a = C.CString(s)
	p.b = C.CString(s) // want `the result of C.CString is never freed`
	return p.a
}
