package fix

// #include <stdlib.h>
// static int look(const char *s) { return s[0]; }
import "C"

import "unsafe"

var _ unsafe.Pointer

func f(s string) int {
	cs := C.CString(s) // want `the result of C.CString is never freed`
	return int(C.look(cs))
}

func g() int {
	p := C.malloc(3) // want `the result of C.malloc is never freed`
	return int(C.look((*C.char)(p)))
}
