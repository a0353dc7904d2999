package a

/*
#include <stdlib.h>
#include <string.h>

typedef struct { char *name; char **list; int n; } options;
static int look(const char *s) { return s[0]; }
static int lookAll(options *o) { return o->n; }
static int lookList(char **list, int n) { return n; }
static void sink(void *p) { free(p); }
// The result belongs to the library. The value will be valid until the next call.
const char *named(const char *s);
static char *twice(const char *s) {
	char *t = malloc(2 * strlen(s) + 1);
	strcpy(t, s);
	strcat(t, s);
	return t;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

func never(s string) int {
	cs := C.CString(s) // want `the result of C.CString is never freed`
	return int(C.look(cs))
}

func dropped(s string) {
	C.CString(s)          // want `the result of C.CString is never freed: nothing has it`
	C.look(C.CString(s))  // want `nothing has it`
	_ = C.malloc(3)       // want `nothing has it`
	C.named(C.CString(s)) // want `nothing has it`
}

func onePath(s string) error {
	cs := C.CString(s) // want `the result of C.CString is not freed on the way to the return in line 47`
	if C.look(cs) == 0 {
		// Too early:
		// the string is lost.

		return errors.New("zero") // 47
	}
	C.free(unsafe.Pointer(cs))
	return nil
}

func deferTooLate(s string) error {
	p := C.malloc(10) // want `the result of C.malloc is not freed on the way to the return in line 56`
	if s == "" {
		return errors.New("empty")
	}
	defer C.free(p)
	C.look((*C.char)(p))
	return nil
}

func loop(list []string) {
	for _, s := range list {
		cs := C.CString(s) // want `the result of C.CString is never freed`
		C.look(cs)
	}
}

func overwritten(s string) {
	cs := C.CString(s) // want `not freed before cs gets another value`
	cs = C.CString(s + s)
	C.free(unsafe.Pointer(cs))
}

func alias(s string) {
	cs := C.CString(s) // want `the result of C.CString is never freed`
	p := unsafe.Pointer(cs)
	C.look((*C.char)(p))
}

func nilTest() {
	p := C.malloc(8) // want `the result of C.malloc is never freed`
	if p == nil {
		return
	}
	C.look((*C.char)(p))
}

func inStruct(s string) {
	var o C.options
	o.name = C.CString(s) // want `the result of C.CString is never freed`
	C.lookAll(&o)
}

func inLiteral(s string) {
	o := C.options{name: C.CString(s)} // want `the result of C.CString is never freed`
	C.lookAll(&o)
}

func inSlice(list []string) {
	argv := make([]*C.char, len(list))
	for i, s := range list {
		argv[i] = C.CString(s) // want `the result of C.CString is never freed`
	}
	C.lookList(&argv[0], C.int(len(argv)))
}

func appended(list []string) {
	var argv []*C.char
	for _, s := range list {
		argv = append(argv, C.CString(s)) // want `the result of C.CString is never freed`
	}
	C.lookList((**C.char)(unsafe.Pointer(&argv[0])), C.int(len(argv)))
}

func inArray(list []string) {
	p := C.malloc(C.size_t(len(list)) * 8)
	argv := unsafe.Slice((**C.char)(p), len(list))
	for i, s := range list {
		argv[i] = C.CString(s) // want `the result of C.CString is never freed`
	}
	C.lookList((**C.char)(p), C.int(len(list)))
	C.free(p)
}

// A function that looks at its argument does not free it.
func wrapper(cs *C.char) int { return int(C.look(cs)) }

func throughWrapper(s string) int {
	cs := C.CString(s) // want `the result of C.CString is never freed`
	return wrapper(cs)
}

func make2(s string) (*C.char, error) { // want make2:"results\\[0\\]"
	if s == "" {
		return nil, errors.New("empty")
	}
	return C.CString(s), nil
}

func fromWrapper(s string) {
	cs, err := make2(s) // want `the result of make2 is never freed`
	if err != nil {
		return
	}
	C.look(cs)
}

func fromC(s string) string {
	cs := C.CString(s)
	defer C.free(unsafe.Pointer(cs))
	return C.GoString(C.twice(cs)) // want `the result of C.twice is never freed`
}

func literal(s string) func() {
	return func() {
		cs := C.CString(s) // want `the result of C.CString is never freed`
		C.look(cs)
	}
}

func printed(s string) {
	cs := C.CString(s) // want `the result of C.CString is never freed`
	fmt.Println(cs)
}

func inSwitch(s string, n int) {
	cs := C.CString(s) // want `the result of C.CString is not freed on the way to the return`
	switch n {
	case 0:
		C.free(unsafe.Pointer(cs))
	case 1:
		C.sink(unsafe.Pointer(cs))
	}
}
