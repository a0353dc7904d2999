package a

/*
#include <stdint.h>
#include <stdlib.h>

typedef struct { int n; } tree;
static tree *tree_new(void) { return calloc(1, sizeof(tree)); }
static void tree_free(tree *t) { free(t); }
static int tree_len(tree *t) { return t->n; }
static int tree_join(tree *t, tree *u) { return t->n + u->n; }
typedef tree *tree_ptr;
static int sum(uintptr_t p, int n) { return ((char *)p)[0] + n; }
*/
import "C"

import (
	"errors"
	"runtime"
	"unsafe"

	"github.com/cheapgo/cheap/own"
)

type Tree struct { // want Tree:"owner"
	ptr  *C.tree
	kids []*Tree
	n    int
}

func NewTree() *Tree {
	t := &Tree{ptr: C.tree_new()}
	runtime.SetFinalizer(t, (*Tree).free)
	return t
}

func (t *Tree) free() {
	C.tree_free(t.ptr)
}

func (t *Tree) native() *C.tree {
	if t == nil {
		return nil
	}
	p := unsafe.Pointer(t.ptr)
	return (*C.tree)(p)
}

func (t *Tree) Len() int {
	return int(C.tree_len(t.ptr)) // want `t may be collected while C.tree_len uses what it owns: nothing uses t behind the call`
}

func (t *Tree) LenByAccessor() int {
	return int(C.tree_len(t.native())) // want `t may be collected while C.tree_len`
}

func Join(t, u *Tree) (int, error) {
	n := C.tree_join(t.ptr, u.native()) // want `u may be collected while C.tree_join`
	if n == 0 {
		return 0, errors.New("zero")
	}
	return int(n) + t.n, nil
}

func local() int {
	t := NewTree()
	return int(C.tree_len(t.ptr)) // want `t may be collected`
}

func byVariable(t *Tree) int {
	p := t.ptr
	n := C.tree_len(p) // want `t may be collected`
	return int(n)
}

// A Branch keeps a tree alive as long as it is reachable itself.
type Branch struct {
	*Tree
	name string
}

func (b *Branch) Len() int {
	return int(C.tree_len(b.ptr)) // want `b may be collected`
}

type holder struct{ tree *Tree }

func (h holder) len() int {
	return int(C.tree_len(h.tree.ptr)) // want `h may be collected`
}

// A part has no finalizer. Its owner has.
type part struct { // want part:"owner"
	ptr   *C.tree
	owner any
}

func (p *part) len() int {
	return int(C.tree_len(p.ptr)) // want `p may be collected`
}

type image struct { // want image:"owner"
	h own.Handle[*C.tree]
}

func (m *image) len() int {
	return int(C.tree_len(m.h.Pointer())) // want `m may be collected`
}

type withCleanup struct { // want withCleanup:"owner"
	p unsafe.Pointer
}

func newWithCleanup() *withCleanup {
	w := &withCleanup{p: C.malloc(10)}
	runtime.AddCleanup(w, func(p unsafe.Pointer) { C.free(p) }, w.p)
	return w
}

func (w *withCleanup) len() int {
	return int(C.tree_len((*C.tree)(w.p))) // want `w may be collected`
}

func enter(f func() C.int) int { return int(f()) }

func captured(t *Tree) int {
	return enter(func() C.int {
		return C.tree_len(t.ptr) // want `t may be collected`
	})
}

func number(data []byte) int {
	return int(C.sum(C.uintptr_t(uintptr(unsafe.Pointer(&data[0]))), C.int(len(data)))) // want `data may be collected while C.sum runs: C gets its address as a number`
}

// All its callers drop the tree as well.
func unexported(t *Tree) int {
	return int(C.tree_len(t.ptr)) // want `t may be collected`
}

func callsUnexported(t *Tree) int { return unexported(t) }

func (t *Tree) clearedOnAPath(last bool) int {
	p := t.ptr
	if last {
		t.ptr = nil
	}
	return int(C.tree_len(p)) // want `t may be collected`
}

func (t *Tree) clearedBehind() int {
	p := t.ptr
	n := int(C.tree_len(p)) // not reported: t is used behind it
	t.ptr = nil
	return n
}

// A cleanup has a copy of the pointer.
func (w *withCleanup) cleared() int {
	p := w.p
	w.p = nil
	return int(C.tree_len((*C.tree)(p))) // want `w may be collected`
}

// A leaf points into a tree, which it keeps alive.
type leaf struct { // want leaf:"owner"
	tree own.Handle[*C.tree]
	p    *C.tree
	next *leaf
}

// The owner is kept until the literal has returned.
func (l *leaf) len() (n int, err error) {
	err = l.tree.TryUse(func(*C.tree) error {
		n = int(C.tree_len(l.p))
		return nil
	})
	return n, err
}

// The next leaf is kept, and not the one whose pointer C uses.
func (l *leaf) lenBesideNext() (n int, err error) {
	err = l.next.tree.TryUse(func(*C.tree) error {
		n = int(C.tree_len(l.p)) // want `l may be collected`
		return nil
	})
	return n, err
}

// A Named has a pointer whose type has a name.
type Named struct { // want Named:"owner"
	ptr C.tree_ptr
	n   C.int
}

func NewNamed() *Named {
	t := &Named{ptr: C.tree_new()}
	runtime.SetFinalizer(t, func(t *Named) { C.tree_free(t.ptr); C.sum(0, t.n) })
	return t
}

func (t *Named) Len() int {
	return int(C.tree_len(t.ptr)) // want `t may be collected while C.tree_len uses what it owns`
}

func (t *Named) Number() int { return int(C.sum(0, t.n)) }
