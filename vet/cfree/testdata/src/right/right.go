// Package right has memory that is not lost, and beside it what differs only in that.
package right

/*
#include <stdlib.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include "take.h"
typedef struct { char *text, *label; } entry;
typedef struct { entry *entries; } shelf;
typedef void (*release)(void *);
void say(const char *text);
int number(const char *text, int n);
int play(void *data, int n);
int when_done(int stream, release f, void *data);
void done(void *data);
void put_back(char *text);
char *append_text(char *buffer, const char *text);
void text_of(box *b, char **text);
box *box_of(void *definition);
void free_data(void *data);
unsigned intern_static_string(const char *text);
box *gsk_debug_node_new(box *child, char *text);
static void make_text(char **p) { *p = strdup("text"); }
static void clear_text(char **p) { *p = NULL; }
static int on_done(int stream, void *data) { return when_done(stream, done, data); }
static int only_look(void *data, int n) { return ((char *)data)[n]; }
static char *make_list(int *n) {
	if (*n == 0) {
		*n = -1;
		return NULL;
	}
	return strdup("list");
}
typedef struct GKeyFile GKeyFile;
char **g_key_file_get_groups(GKeyFile *file, size_t *n);
void g_free(void *p);
typedef struct AVBSFContext AVBSFContext;
typedef struct AVBitStreamFilter AVBitStreamFilter;
int av_bsf_alloc(const AVBitStreamFilter *filter, AVBSFContext **ctx);
*/
import "C"

import (
	"runtime/cgo"
	"sync"
	"unsafe"
)

// The comment of the header says who owns it.
func comments(b *C.box, s string) {
	C.box_put(b, C.CString(s))
	C.box_title(b, C.CString(s))
	C.box_name(b, C.CString(s)) // want `never freed: nothing has it`
	C.box_user(b, unsafe.Pointer(C.CString(s)))
	C.box_copy(b, unsafe.Pointer(C.CString(s)), 1) // want `never freed: nothing has it`
	C.box_pack(b, C.CString(s), 1)                 // want `never freed: nothing has it`
	C.box_eat(b, C.CString(s))
	_ = C.GoString(C.box_kind(b))
	_ = C.GoString(C.box_mark(b, C.CString(s))) // want `never freed: nothing has it`
	_ = C.GoString(C.box_print(b))              // want `the result of C.box_print is never freed`
}

// Memory that is there once, until the process ends.
var hello = C.GoString(C.CString("hello"))

func init() { C.say(C.CString("init")) }

var once sync.Once

func lazily() {
	once.Do(func() { C.say(C.CString("once")) })
	once.Do(start)
}

func start() { C.say(C.CString("start")) }

func init() {
	prepare()
	for range 10 {
		again()
	}
}

func again() { C.say(C.CString("again")) } // want `never freed: nothing has it`

func prepare() { C.say(C.CString("prepare")) }

func environment() {
	C.putenv(C.CString("A=b"))
	C.setvbuf(C.stdout, (*C.char)(C.malloc(100)), C._IOFBF, 100)
}

func array(n int) []byte { // want array:"results"
	p, q := C.malloc(C.size_t(n)), C.malloc(C.size_t(n))
	defer C.free(p)
	defer C.free(q)
	if n == 1 {
		return append([]byte(nil), (*(*[1 << 20]byte)(q))[:n]...)
	}
	return (*(*[1 << 20]byte)(p))[:n] // want `what is returned points into p`
}

func copied(s string) string {
	p := C.CString(s)
	defer C.free(unsafe.Pointer(p))
	return (C.GoString)(p)
}

// A function of C whose name says nothing, but which is deferred with the memory alone, and one that gives the memory another place.
func unknownName(s string) {
	p := C.CString(s)
	defer C.put_back(p)
	C.say(p)
}

func grows(list []string) {
	buffer := (*C.char)(C.malloc(10))
	for _, s := range list {
		text := C.CString(s)
		buffer = C.append_text(buffer, text)
		C.free(unsafe.Pointer(text))
	}
	C.free(unsafe.Pointer(buffer))
}

// What is within the elements of a list is freed through them.
func deferredList(list []string) {
	var all []*C.entry
	defer func() {
		for _, e := range all {
			C.free(unsafe.Pointer(e.text))
		}
	}()
	for _, s := range list {
		e := &C.entry{text: C.CString(s)}
		all = append(all, e)
		C.say(e.text)
	}
}

func entries(list []string) []*C.entry {
	all := make([]*C.entry, len(list))
	for i, s := range list {
		all[i] = &C.entry{text: C.CString(s)}
	}
	return all
}

func deferredEntries(list []string) {
	all := entries(list)
	defer func() {
		for _, e := range all {
			C.free(unsafe.Pointer(e.text))
		}
	}()
	C.say(all[0].text)
}

// A return where there is nothing.
func nothing(list []byte) int {
	n := len(list)
	p := C.malloc(C.size_t(n))
	if n == 0 {
		return 0
	}
	r := C.play(p, C.int(n))
	C.free(p)
	return int(r)
}

func nothingOf(list []string) int {
	var p *C.char
	for _, s := range list {
		p = C.CString(s)
		break
	}
	if len(list) == 0 {
		return 0
	}
	r := C.number(p, 1)
	C.free(unsafe.Pointer(p))
	return int(r)
}

// Memory that goes with the function that releases it.
func callback(data []byte) {
	p := C.CBytes(data)
	whenDone(int(C.play(p, C.int(len(data)))), freeData, p)
}

var freeData = C.release(C.done)

func whenDone(stream int, f C.release, p unsafe.Pointer) { C.when_done(C.int(stream), f, p) }

// What C has taken over, unless it failed.
func definition() *C.box {
	def := C.calloc(1, 100)
	b := C.box_of(def)
	if b == nil {
		C.free(def)
		return nil
	}
	return b
}

type table struct{ rows map[string]*row }

type row struct{ ptr *C.char }

func (t *table) open(name string) {
	r, ok := t.rows[name]
	if !ok {
		return
	}
	r.ptr = C.CString(name)
}

func (t *table) close(name string) { C.free(unsafe.Pointer(t.rows[name].ptr)) }

var shelf = map[string]*C.shelf{}

func shelved(names []string) {
	s := &C.shelf{}
	shelf["all"] = s
	list := uintptr(C.malloc(C.size_t(len(names)) * C.sizeof_entry))
	for i, name := range names {
		e := (*C.entry)(unsafe.Pointer(list + uintptr(i)*C.sizeof_entry))
		e.label = C.CString(name)
	}
	s.entries = (*C.entry)(unsafe.Pointer(list))
}

func elsewhere(s string) {
	C.say(C.CString(s)) // freed by the library
	C.say(C.CString(s)) // want `never freed: nothing has it`
	// Nothing frees given here, since the library takes ownership of it.
	given := C.CString(s)
	C.say(given)
	other := C.CString(s) // want `never freed`
	C.say(other)
}

// A function of the package closes the object on one way, and C on the other.
func closed(path *C.char) bool {
	b := C.box_open(path)
	if C.number(path, 1) == 0 {
		shut(b)
		return false
	}
	C.box_close(b)
	return true
}

func shut(b *C.box) {
	C.say(nil)
	C.box_close(b)
}

// A defer of what is nil yet.
func early(b *C.box) {
	var p, q *C.char
	defer C.free(unsafe.Pointer(p)) // want `the defer frees what p has here, which is nil`
	defer func() { C.free(unsafe.Pointer(q)) }()
	C.text_of(b, &p)
	C.text_of(b, &q)
}

// A function of Go gives the memory to C with what releases it.
func withRelease(s string) {
	whenDone(1, C.release(C.free_data), unsafe.Pointer(C.CString(s)))
}

// Names say that C keeps a string for ever, or takes it over.
func byName(s string) {
	C.intern_static_string(C.CString(s))
	C.gsk_debug_node_new(nil, C.CString(s))
}

// A callback of C deletes the handle, and frees what has it.
func handed(s string) C.int {
	h := cgo.NewHandle(s)
	p, q := C.malloc(8), C.malloc(8) // want `never freed`
	*(*C.uintptr_t)(p) = C.uintptr_t(h)
	*(*C.int)(q) = 1
	return C.play(p, 8) + C.play(q, 8)
}

//export gone
func gone(p unsafe.Pointer) {
	h := cgo.Handle(*(*C.uintptr_t)(p))
	h.Delete()
	C.free(p)
}

// A flag says that the defer frees nothing.
func flagged(path *C.char, n int) unsafe.Pointer {
	b, given := C.box_open(path), false
	defer func() {
		if given {
			return
		}
		C.box_close(b)
	}()
	given = n > 0
	return unsafe.Pointer(b)
}

func unflagged(path *C.char) unsafe.Pointer {
	b := C.box_open(path)
	defer func() { C.box_close(b) }()
	return unsafe.Pointer(b) // want `what is returned points into b`
}

// There is a copy only where copied is true.
func correlated(b *C.box, has, text bool) {
	var format *C.char
	copied := false
	if has {
		copied = true
		if text {
			format = C.CString("format")
		}
	}
	if copied {
		C.say(format)
		C.free(unsafe.Pointer(format))
	}
}

// Elements of a list in C, freed through the same expression, and by what they are freed.
func elements(list []string) {
	all := (**C.char)(C.malloc(C.size_t(8 * len(list))))
	defer C.free(unsafe.Pointer(all))
	for i, s := range list {
		(*(*[1 << 20]*C.char)(unsafe.Pointer(all)))[i] = newText(s)
		defer C.free(unsafe.Pointer((*(*[1 << 20]*C.char)(unsafe.Pointer(all)))[i]))
	}
}

func elementsLost(list []string) {
	all := (**C.char)(C.malloc(C.size_t(8 * len(list))))
	defer C.free(unsafe.Pointer(all))
	for i, s := range list {
		(*(*[1 << 20]*C.char)(unsafe.Pointer(all)))[i] = newText(s) // want `never freed`
	}
}

func newText(s string) *C.char { return C.CString(s) } // want newText:"results"

func groups(file *C.GKeyFile) (list []string) {
	all := C.g_key_file_get_groups(file, nil)
	for i := 0; i < 2; i++ {
		list = append(list, C.GoString((*(*[1 << 20]*C.char)(unsafe.Pointer(all)))[i]))
		C.g_free(unsafe.Pointer((*(*[1 << 20]*C.char)(unsafe.Pointer(all)))[i]))
	}
	C.g_free(unsafe.Pointer(all))
	return list
}

func groupsLost(file *C.GKeyFile) string {
	all := C.g_key_file_get_groups(file, nil)
	s := C.GoString((*(*[1 << 20]*C.char)(unsafe.Pointer(all)))[0])
	C.g_free(unsafe.Pointer(all)) // want `is freed by C.g_strfreev, and not by C.g_free`
	return s
}

// A variable with the address of another one, which goes on.
func given(to **C.AVBSFContext, filter *C.AVBitStreamFilter) C.int {
	var at **C.AVBSFContext
	var made, old *C.AVBSFContext
	if to != nil {
		made = *to
		old = made
		at = &made
	}
	r := C.av_bsf_alloc(filter, at)
	if made != old && to != nil {
		*to = made
	}
	return r
}

// What returns its argument.
type cleared struct{ p unsafe.Pointer }

func newCleared() *cleared { // want newCleared:"results"
	return &cleared{C.memset(C.malloc(8), 0, 8)}
}

func (c *cleared) close() { C.free(c.p) }

func clearedOnly() { C.memset(C.malloc(8), 0, 8) } // want `never freed`

// Behind a loop without an end the defer frees nil in any case.
func names(b *C.box) {
	for {
		var p *C.char
		defer C.free(unsafe.Pointer(p)) // want `the defer frees what p has here, which is nil`
		C.text_of(b, &p)
		if p == nil {
			return
		}
	}
}

// A variable that walks over a block beside one that has it.
func walk(n C.size_t) (sum C.char) {
	p := (*C.char)(C.calloc(n, 1))
	block := p
	for range n {
		sum += *p
		p = (*C.char)(unsafe.Add(unsafe.Pointer(p), 1))
	}
	C.free(unsafe.Pointer(block))
	return sum
}

func walkLost(n C.size_t) (sum C.char) {
	p := (*C.char)(C.calloc(n, 1)) // want `is not freed before p gets another value`
	for range n {
		sum += *p
		p = (*C.char)(unsafe.Add(unsafe.Pointer(p), 1))
	}
	C.free(unsafe.Pointer(p))
	return sum
}

// What a callback frees, unless C has refused it.
type userData struct{ p unsafe.Pointer }

func newUserData() *userData { return &userData{C.malloc(8)} } // want newUserData:"results"

func (u *userData) free() { C.free(u.p) }

func onDone(stream C.int) bool {
	u := newUserData()
	if C.on_done(stream, u.p) != 0 {
		u.free()
		return false
	}
	return true
}

func onlyPlayed(n C.int) bool {
	u := newUserData() // want `the result of newUserData is not freed on the way to the return`
	if C.only_look(u.p, n) != 0 {
		u.free()
		return false
	}
	return true
}

// C says by another argument that it has made nothing.
func counted() (string, bool) {
	var n C.int
	p := C.make_list(&n)
	if n < 0 {
		return "", false
	}
	defer C.free(unsafe.Pointer(p))
	return C.GoString(p), true
}

// Another function gets the address of what C has given.
func madeAndCleared() {
	var p *C.char
	C.make_text(&p)
	C.clear_text(&p)
}

func madeAndSaid() {
	var p *C.char
	C.make_text(&p) // want `what C.make_text gives p is never freed`
	C.say(p)
}
