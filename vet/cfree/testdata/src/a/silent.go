package a

/*
#include <stdlib.h>

typedef struct { char *label; char **list; } labels;
static int peek(const char *s) { return s[0]; }
static int peekAll(labels *o) { return 0; }
static int peekList(char **list, int n) { return n; }
static void store(void *p, void (*destroy)(void *)) { destroy(p); }
static void list_take_string(char *s) { free(s); }
static void drop_all(char *s) { free(s); }
*/
import "C"

import (
	"log"
	"os"
	"runtime"
	"sync"
	"unsafe"
)

func deferred(s string) int {
	cs := C.CString(s)
	defer C.free(unsafe.Pointer(cs))
	return int(C.peek(cs))
}

func deferredLiteral(s string) {
	cs := C.CString(s)
	defer func() {
		if s != "" {
			C.free(unsafe.Pointer(cs))
		}
	}()
	C.peek(cs)
}

func bothPaths(s string) int {
	cs := C.CString(s)
	if s == "" {
		C.free(unsafe.Pointer(cs))
		return 0
	}
	n := C.peek(cs)
	C.free(unsafe.Pointer(cs))
	return int(n)
}

func noMemory() bool {
	p := C.malloc(100)
	if p == nil {
		return false
	}
	C.free(p)
	return true
}

func optional(s string) {
	var cs *C.char
	if s != "" {
		cs = C.CString(s)
	}
	C.peek(cs)
	if cs != nil {
		C.free(unsafe.Pointer(cs))
	}
}

func sameCondition(s string, with bool) {
	var cs *C.char
	if with {
		cs = C.CString(s)
	}
	C.peek(cs)
	if with {
		C.free(unsafe.Pointer(cs))
	}
}

func program(s string) {
	cs := C.CString(s)
	if C.peek(cs) == 0 {
		log.Fatal("zero")
	}
	if C.peek(cs) == 1 {
		os.Exit(1)
	}
	if C.peek(cs) == 2 {
		panic("two")
	}
	C.free(unsafe.Pointer(cs))
}

func returned(s string) *C.char { return C.CString(s) } // want returned:"results\\[0\\]"

func returnedLater(s string) (cs *C.char) {
	cs = C.CString(s)
	C.peek(cs)
	return
}

var global *C.char

func toGlobal(s string) { global = C.CString(s) }

var table sync.Map

func toUnknown(s string) { table.Store(s, C.CString(s)) }

func toChannel(s string, to chan *C.char) { to <- C.CString(s) }

func freeString(cs *C.char) { C.free(unsafe.Pointer(cs)) }

func throughWrapperThatFrees(s string) {
	cs := C.CString(s)
	defer freeString(cs)
	C.peek(cs)
}

func fromWrapperAndFreed(s string) error {
	cs, err := make2(s)
	if err != nil {
		return err
	}
	defer freeString(cs)
	C.peek(cs)
	return nil
}

func withDestructor(s string) {
	cs := C.CString(s)
	C.store(unsafe.Pointer(cs), (*[0]byte)(C.free))
}

func taken(s string) {
	C.list_take_string(C.CString(s))
	C.drop_all(C.CString(s))
}

func inStructAndFreed(s string) {
	var o C.labels
	o.label = C.CString(s)
	defer C.free(unsafe.Pointer(o.label))
	C.peekAll(&o)
}

func inSliceAndFreed(list []string) {
	argv := make([]*C.char, len(list))
	for i, s := range list {
		argv[i] = C.CString(s)
	}
	defer func() {
		for _, cs := range argv {
			C.free(unsafe.Pointer(cs))
		}
	}()
	C.peekList(&argv[0], C.int(len(argv)))
}

func freeAll(argv []*C.char) {
	for i := range argv {
		C.free(unsafe.Pointer(argv[i]))
	}
}

func inArrayAndFreed(list []string) {
	p := C.malloc(C.size_t(len(list)) * 8)
	argv := (*[1 << 20]*C.char)(p)[:len(list):len(list)]
	for i, s := range list {
		argv[i] = C.CString(s)
	}
	defer freeAll(argv)
	defer C.free(p)
	C.peekList((**C.char)(p), C.int(len(list)))
}

func arrayReturned(list []string) **C.char { // want arrayReturned:"results\\[0\\]"
	p := C.malloc(C.size_t(len(list)) * 8)
	argv := (*[1 << 20]*C.char)(p)[:len(list):len(list)]
	for i, s := range list {
		argv[i] = C.CString(s)
	}
	return (**C.char)(p)
}

func reallocated(n C.size_t) {
	p := C.malloc(n)
	p = C.realloc(p, n+n)
	C.free(p)
}

type keeper struct {
	name   *C.char
	Public *C.char
}

func newKeeper(s string) *keeper {
	k := &keeper{Public: C.CString(s)}
	k.name = C.CString(s)
	runtime.SetFinalizer(k, (*keeper).close)
	return k
}

func (k *keeper) close() { C.free(unsafe.Pointer(k.name)) }

func inLoop(list []string) {
	for _, s := range list {
		cs := C.CString(s)
		if C.peek(cs) == 0 {
			C.free(unsafe.Pointer(cs))
			continue
		}
		C.free(unsafe.Pointer(cs))
	}
}

func deferredBefore(n C.size_t) {
	p := C.malloc(n)
	defer func() { C.free(p) }()
	for range 3 {
		C.free(p)
		n *= 2
		p = C.malloc(n)
	}
}

func expectsError() bool {
	_, err := make2("")
	return err != nil
}

func parentheses(s string) { (C.free)(unsafe.Pointer((C.CString)(s))) }
