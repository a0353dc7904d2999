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

func inIf(s string) bool {
	if cs := C.CString(s); C.look(cs) > 0 { // want `the result of C.CString is never freed`
		return true
	}
	return false
}

func hidden(unsafe string) int {
	cs := C.CString(unsafe) // want `the result of C.CString is never freed`
	return int(C.look(cs))
}
