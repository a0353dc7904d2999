//go:build cgo

package ctouch

/*
#include <stdlib.h>
#include <string.h>

static char get(const char *p) { return *p; }
static void set(char *p) { *p = 1; }
static void copy(char *to, const char *from, size_t n) { memcpy(to, from, n); }

struct node {
	struct node *next;
	char text[40];
};

static void list(void **slot, int n) {
	struct node *list = NULL;
	while (n-- > 0) {
		struct node *more = calloc(1, sizeof *more);
		if (!more) {
			abort();
		}
		more->next = list;
		list = more;
	}
	*slot = list;
}
*/
import "C"

import "unsafe"

// Get reads the byte at p.
func Get(p unsafe.Pointer) byte { return byte(C.get((*C.char)(p))) }

// Set writes to the byte at p.
func Set(p unsafe.Pointer) { C.set((*C.char)(p)) }

// Copy copies n bytes, by a function of the C library.
func Copy(to, from unsafe.Pointer, n int) { C.copy((*C.char)(to), (*C.char)(from), C.size_t(n)) }

// List makes a list of n nodes with C's malloc. Its address is in the word at slot, and
// nowhere else.
func List(slot unsafe.Pointer, n int) { C.list((*unsafe.Pointer)(slot), C.int(n)) }
