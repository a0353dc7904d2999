// Package defined calls functions of C that it defines, above import "C" and in a file beside.
package defined

/*
#include <stdlib.h>
#include <string.h>
#include "beside.h"

typedef char gchar;
// list holds an address for each.
static void fill(char **list, int n) { list[0] = NULL; }
typedef void (*freer)(void *);
static void bind(char *s, freer f) {}

static void set_string(char **list, char *s, int n) {
	list[n] = s;
}

static char *copy(const char *s) {
	char *p = (char *)malloc(strlen(s) + 1);
	if (!p) return NULL;
	if (s[0] == 0) { free(p); return NULL; }
	return strcpy(p, s) == p ? p : p;
}

static char *duplicate(const char *s) {
	return s ? strdup(s) : NULL;
}

static char *upper(const char *s) {
	char *p = strdup(s); // not free(p): the caller has it
	if (p == NULL)
		return NULL;
	for (char *q = p; *q; q++) *q -= 32;
	return p;
}

static char *shout(const char *s) { return upper(s); }

static gchar *gchars(char *s) { return (gchar *)s; }

static const char *cached(void) {
	static char *p;
	if (!p) p = strdup("text");
	return p;
}
*/
import "C"

import "unsafe"

func stored(list **C.char, s string) {
	C.set_string(list, C.CString(s), 0)
}

func remembered(s string) {
	C.remember(C.CString(s))
}

func taken(s string) {
	C.set_result(nil, C.CString(s))
}

func looked(s string) {
	C.look(C.CString(s)) // want `the result of C.CString is never freed`
}

func released() {
	b := (*C.struct_buf)(C.malloc(8))
	C.buf_release(b)
}

func returned(s string) *C.char {
	return C.second(C.CString(s))
}

func converted(s string) {
	p := C.gchars(C.CString(s)) // want `never freed`
	C.look((*C.char)(p))
}

func convertedByGo(s string) {
	p := C.CString(s) // want `never freed`
	C.look((*C.char)(gchars(p)))
}

func convertedAndFreed(s string) {
	p := gchars(C.CString(s))
	defer C.free(unsafe.Pointer(p))
	q := C.CString(s)
	C.free(unsafe.Pointer(C.gchars(q)))
}

func gchars(s *C.char) *C.gchar { return C.gchars(s) }

func made(s *C.char) int {
	return len(C.GoString(C.twice(s))) // want `the result of C.twice is never freed`
}

func madeAbove(s *C.char) int {
	p := C.upper(s) // want `the result of C.upper is never freed`
	return len(C.GoString(p))
}

func madeByAnother(s *C.char) int {
	return len(C.GoString(C.shout(s))) // want `the result of C.shout is never freed`
}

func fromCache() string { return C.GoString(C.cached()) }

func freedAbove(s *C.char) string {
	p := C.upper(s)
	defer C.free(unsafe.Pointer(p))
	return C.GoString(p)
}

func bound(s string) {
	var v *C.char
	var free *[0]byte
	if s != "" {
		v = C.CString(s)
		free = (*[0]byte)(C.free)
	}
	C.bind(v, free)
}

func counted(n *C.struct_node) {
	C.node_destroy(n)
	C.node_destroy(n)
}

func freedTwice(l *C.struct_leaf) {
	defer C.leaf_destroy(l) // the deferred call comes second
	C.leaf_destroy(l)       // want `l is freed twice: line \d+ frees it as well`
}

func twoFunctions(s string) {
	l := (*C.struct_leaf)(C.malloc(8))
	C.node_destroy((*C.struct_node)(unsafe.Pointer(l)))
	C.free(unsafe.Pointer(l))
}

const text, number = 1, 2

func byKind(value any) {
	var kind int
	var p *C.char
	if s, ok := value.(string); ok {
		kind = text
		p = C.CString(s)
	} else if _, ok := value.(int); ok {
		kind = number
	} else {
		return
	}
	C.look(p)
	if kind == text || kind == 0 {
		C.free(unsafe.Pointer(p))
	}
}

func byAnotherKind(value any, again bool) {
	var kind int
	var p *C.char
	if s, ok := value.(string); ok {
		kind = text
		p = C.CString(s) // want `not freed on the way`
	} else {
		return
	}
	if again {
		kind = number
	}
	C.look(p)
	if kind == text {
		C.free(unsafe.Pointer(p))
	}
}

func format(value any) (unsafe.Pointer, string) { // want format:`results\[0\]`
	if s, ok := value.(string); ok {
		return unsafe.Pointer(C.CString(s)), "s"
	}
	return nil, ""
}

func byResult(values []any) {
	for _, v := range values {
		p, kind := format(v)
		if kind == "s" {
			defer C.free(p)
		}
	}
}

func byNoResult(value any) string {
	p, kind := format(value) // want `never freed`
	C.look((*C.char)(p))
	return kind
}

// An Item has to be closed.
type Item struct{ p unsafe.Pointer }

// NewItem makes one.
func NewItem() *Item { return &Item{C.item_new()} } // want NewItem:`results\[0\]`

// Named returns the item, as builders do.
func (i *Item) Named() *Item { return i } // want Named:`params\[3\]`

// Close frees it.
func (i *Item) Close() { C.item_delete(i.p) } // want Close:`releases` Close:`params`

// A List has items.
type List struct{ p unsafe.Pointer }

// Set puts an item into a list.
func (l *List) Set(i *Item) { C.item_set(l.p, i.p) } // want Set:`params\[0 2\]`

// Add makes an item that the list has.
func (l *List) Add() *Item { return &Item{C.list_add_item(l.p)} } // want Add:`params`

func added(l *List) {
	l.Add()
}

func listed(l *List) {
	i := NewItem()
	l.Set(i)
}

func built() {
	i := NewItem().Named()
	defer i.Close()
}

func builtAndUsed() {
	C.item_look(NewItem().Named().p) // another method may have taken it over
}

func lost() {
	i := NewItem() // want `the result of NewItem is never freed`
	C.item_look(i.p)
}

func deleted() {
	i := NewItem()
	C.item_delete(i.p)
}

func filled() *C.char {
	list := []*C.char{nil}
	C.fill((**C.char)(unsafe.Pointer(&list[0])), 1)
	return list[0]
}
