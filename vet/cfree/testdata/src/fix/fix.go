package fix

// #include <stdlib.h>
// static char *find_text(const char *s) { return "t"; }
// static int putenv_(const char *s) { return 0; }
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

func dropped(name string) string {
	return C.GoString(C.find_text(C.CString(name))) // want `the result of C.CString is never freed: nothing has it`
}

func droppedTwice(name string, cName int) int {
	C.look(C.CString(name))          // want `nothing has it`
	if C.look(C.CString("x")) == 0 { // want `nothing has it`
		return cName
	}
	C.look(C.CString(name))             // want `nothing has it`
	return int(C.look(C.CString(name))) // want `nothing has it`
}

func points(name string) *C.char {
	return C.find_text(C.CString(name)) // want `nothing has it`
}

func kept(name string) {
	C.putenv_(C.CString(name)) // want `nothing has it`
}

func conditions(names []string) {
	if len(names) > 0 && C.look(C.CString("x")) == 0 { // want `nothing has it`
		return
	}
	for _, name := range names {
		C.look(C.CString(name)) // want `nothing has it`
	}
	C.look(C.CString(names[0]))  // want `nothing has it`
	defer C.look(C.CString("x")) // want `nothing has it`
}

func labels(name string) {
	if name == "" {
		goto end
	}
	C.look(C.CString(name)) // want `nothing has it`
end:
}
