// Package small is a corpus of one file. Each statement that releases or keeps something is needed,
// but for the last one.
package small

/*
#include <stdlib.h>
typedef struct { int n; } tree;
static tree *tree_new(const char *name) { return calloc(1, sizeof(tree)); }
static int tree_len(tree *t) { return t->n; }
static void tree_free(tree *t) { free(t); }
*/
import "C"

import (
	"runtime"
	"unsafe"
)

type Tree struct{ ptr *C.tree }

func New(name string) *Tree {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	t := &Tree{C.tree_new(cname)}
	runtime.SetFinalizer(t, func(t *Tree) { C.tree_free(t.ptr) })
	return t
}

func (t *Tree) Len() int {
	n := C.tree_len(t.ptr)
	runtime.KeepAlive(t)
	return int(n)
}

type List struct{ ptr *C.tree }

func NewList() List {
	return List{C.tree_new(nil)}
}

func (l List) Close()   { C.tree_free(l.ptr) }
func (l List) Len() int { return int(C.tree_len(l.ptr)) }

func lists() int {
	l := NewList()
	defer l.Close()
	return l.Len()
}

func plain(t *Tree, n *int) int {
	k := t.Len()
	runtime.KeepAlive(n)
	return k
}
