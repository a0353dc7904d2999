package a

/*
#include <stdlib.h>
typedef struct { char *name; int state; } reader;
typedef struct screen screen;
void screen_delete(screen *s);
screen *screen_new(void);
screen *set_screen(screen *s);
int readers_wait(reader *r, int n);
int names_look(char **names, int n);
*/
import "C"

import "unsafe"

// A deferred free of an element of a struct in a list.
func readers(names []string) int {
	list := make([]C.reader, len(names))
	for i := range names {
		list[i].name = C.CString(names[i])
		defer C.free(unsafe.Pointer(list[i].name))
	}
	return int(C.readers_wait(&list[0], C.int(len(list))))
}

func readersRange(names []string) int {
	list := make([]C.reader, len(names))
	for i := range names {
		list[i].name = C.CString(names[i])
	}
	n := C.readers_wait(&list[0], C.int(len(list)))
	for _, r := range list {
		C.free(unsafe.Pointer(r.name))
	}
	return int(n)
}

func readersLost(names []string) int {
	list := make([]C.reader, len(names))
	for i := range names {
		list[i].name = C.CString(names[i]) // want `the result of C.CString is never freed`
	}
	return int(C.readers_wait(&list[0], C.int(len(list))))
}

// A list of what another list has within is freed in a deferred loop.
func twoLists(names []string) int {
	var list []C.reader
	var all []*C.char
	for _, name := range names {
		cs := C.CString(name)
		all = append(all, cs)
		list = append(list, C.reader{name: cs})
	}
	defer func() {
		for _, cs := range all {
			C.free(unsafe.Pointer(cs))
		}
	}()
	return int(C.readers_wait(&list[0], C.int(len(list))))
}

type display struct {
	ptr *C.screen
	own bool
}

func newDisplay() *display { // want newDisplay:"results\\[0\\]"
	return &display{ptr: C.screen_new(), own: true}
}

func (d *display) Close() { // want Close:"releases" Close:"params"
	if d.own {
		C.screen_delete(d.ptr)
	}
}

// What a function that sets something returns is what was set before.
func (d *display) set() *display { return &display{ptr: C.set_screen(d.ptr)} }

func lentDisplay() *display { return &display{ptr: C.screen_new(), own: false} }

func displays() {
	d := newDisplay()
	defer d.Close()
	d.set()
	lentDisplay()
	newDisplay() // want `the result of newDisplay is never freed: nothing has it`
}
