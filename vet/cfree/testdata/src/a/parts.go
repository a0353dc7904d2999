package a

/*
#include <stdlib.h>
void setStyleDirectly(char *s);
typedef struct { void *note; int n; } entry;
typedef struct entries entries;
entries *entries_new(int n);
entry *entries_add(entries *l);
int entries_len(entries *l);
void entries_destroy(entries *l);
entry *entry_new(entries *l);
*/
import "C"

import "unsafe"

func setDirectly(s string) {
	cs := C.CString(s)
	C.setStyleDirectly(cs)
}

// What is put into an entry of a list belongs to the list.
func noteAll(notes []string) (l *C.entries) {
	l = C.entries_new(C.int(len(notes)))
	for i, s := range notes {
		e := C.entries_add(l)
		e.n = C.int(i)
		if s != "" {
			note := C.CString(s)
			e.note = unsafe.Pointer(note)
		}
	}
	return l
}

func noteIn(l *C.entries, s string) {
	e := C.entries_add(l)
	note := C.CString(s)
	e.note = unsafe.Pointer(note)
}

func noteAndDestroy(s string) int {
	l := C.entries_new(1)
	defer C.entries_destroy(l)
	e := C.entries_add(l)
	note := C.CString(s)
	e.note = unsafe.Pointer(note)
	return int(C.entries_len(l))
}

func noteAndForget(s string) int {
	l := C.entries_new(1)
	e := C.entries_add(l)
	note := C.CString(s) // want `the result of C.CString is never freed`
	e.note = unsafe.Pointer(note)
	return int(C.entries_len(l))
}

// An entry that is new is not one of the list.
func noteNew(l *C.entries, s string) int {
	e := C.entry_new(l)
	note := C.CString(s) // want `the result of C.CString is never freed`
	e.note = unsafe.Pointer(note)
	return int(C.entries_len(l))
}
