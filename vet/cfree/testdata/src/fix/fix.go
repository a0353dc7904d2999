package fix

// #include <stdlib.h>
// #include <string.h>
// static char *find_text(const char *s) { return "t"; }
// static int putenv_(const char *s) { return 0; }
// static int look(const char *s) { return s[0]; }
// static void *gtk_window_new_with(const char *s) { return 0; }
// static void gtk_window_set(char *w, const char *s) {}
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

func nested(name string, twice bool) {
	if twice {
		C.look(C.CString(name)) // want `nothing has it`
		cs := C.CString(name)   // want `the result of C.CString is never freed`
		C.look(cs)
	}
	switch {
	case name == "":
		C.look((*C.char)(unsafe.Pointer(C.CString(name)))) // want `nothing has it`
	}
}

func variable(name string) int {
	n := C.look(C.CString(name)) // want `nothing has it`
	if n > 3 {
		return int(n)
	}
	return 0
}

func goNumber(n C.int) bool { return n != 0 }

func goPointer(p *C.char) bool { return p != nil }

func passed(name string) bool {
	return goNumber(C.look(C.CString(name))) && // want `nothing has it`
		goPointer(C.find_text(C.CString(name))) // want `nothing has it`
}

func passedOn(name string) bool {
	return goNumber(C.look(C.CString(name))) // want `nothing has it`
}

func typed(name string) C.int { return C.look(C.CString(name)) } // want `nothing has it`

func copied(title string) unsafe.Pointer {
	return unsafe.Pointer(C.gtk_window_new_with(C.CString(title))) // want `nothing has it`
}

func keptByC(name string) {
	cs := C.CString(name) // want `the result of C.CString is never freed`
	C.putenv_(cs)
}

func keptLater(name string) *C.char {
	cs := C.CString(name) // want `the result of C.CString is never freed`
	return C.find_text(cs)
}

func stringH(s string) {
	p := C.malloc(10) // want `the result of C.malloc is never freed`
	C.memset(p, 0, 10)
	q := (*C.char)(C.malloc(10)) // want `the result of C.malloc is never freed`
	C.look(q)
}

type window struct{ p *C.char }

func (w *window) c() *C.char { return w.p }

var title string

func behindCalls(w *window, name string) {
	C.gtk_window_set(w.c(), C.CString(name))  // want `nothing has it`
	C.gtk_window_set(w.c(), C.CString("x"))   // want `nothing has it`
	C.gtk_window_set(w.c(), C.CString(title)) // want `nothing has it`
	change := func() *C.char { name = "y"; return nil }
	C.gtk_window_set(change(), C.CString(name)) // want `nothing has it`
}

func behindCall(w *window, name string) {
	C.gtk_window_set(w.c(), C.CString(name)) // want `nothing has it`
}
