package a

/*
#include <stdint.h>

typedef struct { int k; } bush;
static int bush_len(void *t) { return t != 0; }
static int bush_two(void *t, void *h) { return t != h; }
static void *bush_same(void *t) { return t; }
static bush *toBush(void *t) { return t; }
static int bush_sum(uintptr_t p, int n) { return ((char *)p)[0] + n; }
static int bush_bytes(void *p, int n) { return ((char *)p)[0] + n; }
*/
import "C"

import (
	"runtime"
	"unsafe"
)

func (t *Tree) kept() int {
	n := C.bush_len(unsafe.Pointer(t.ptr))
	runtime.KeepAlive(t)
	return int(n)
}

func (t *Tree) keptByDefer() int {
	defer runtime.KeepAlive(t)
	return int(C.bush_len(unsafe.Pointer(t.ptr)))
}

func (t *Tree) keptByLiteral() int {
	defer func() { t.n++ }()
	return int(C.bush_len(unsafe.Pointer(t.ptr)))
}

func (t *Tree) usedLater() int {
	n := C.bush_len(unsafe.Pointer(t.ptr))
	return int(n) + t.n
}

func (t *Tree) usedOnAPath() int {
	n := C.bush_len(unsafe.Pointer(t.ptr))
	if n == 0 {
		return t.n
	}
	return int(n)
}

func (t *Tree) inLoop() (n int) {
	for range 3 {
		n += int(C.bush_len(unsafe.Pointer(t.ptr)))
	}
	runtime.KeepAlive(t)
	return n
}

func list(trees []*Tree) (n int) {
	for _, t := range trees {
		n += int(C.bush_len(unsafe.Pointer(t.ptr)))
	}
	return n
}

// The list has the tree.
func (t *Tree) stored(to map[string]*Tree) int {
	to["x"] = t
	return int(C.bush_len(unsafe.Pointer(t.ptr)))
}

// Only a number goes to C.
func (t *Tree) number() int { return int(C.bush_len(unsafe.Pointer(uintptr(t.n)))) }

// There is no finalizer any more.
func (t *Tree) Close() {
	runtime.SetFinalizer(t, nil)
	C.bush_len(unsafe.Pointer(t.ptr))
}

// plain has neither a finalizer nor an owner.
type plain struct{ p unsafe.Pointer }

func (p *plain) len() int { return int(C.bush_len(p.p)) }

// contract is for callers that use t behind the call.
//
//cheapvet:kept
func contract(t *Tree) int { return int(C.bush_len(unsafe.Pointer(t.ptr))) }

func (t *Tree) helper() int { return int(C.bush_len(unsafe.Pointer(t.ptr))) }

func callsHelper(t *Tree) int {
	n := t.helper()
	runtime.KeepAlive(t)
	return n
}

var global = NewTree()

func ofGlobal() int { return int(C.bush_len(unsafe.Pointer(global.ptr))) }

func keptAround(t *Tree) int {
	n := enter(func() C.int { return C.bush_len(unsafe.Pointer(t.ptr)) })
	runtime.KeepAlive(t)
	return n
}

// The argument of the call keeps the bytes alive.
func bytes(data []byte) int { return int(C.bush_bytes(unsafe.Pointer(&data[0]), 3)) }

func numberKept(data []byte) int {
	n := C.bush_sum(C.uintptr_t(uintptr(unsafe.Pointer(&data[0]))), 3)
	runtime.KeepAlive(data)
	return int(n)
}

var handles []any

func newHandle(v any) unsafe.Pointer {
	handles = append(handles, v)
	return nil
}

// The handle has t.
func (t *Tree) handed() int { return int(C.bush_two(unsafe.Pointer(t.ptr), newHandle(t))) }

func (t *Tree) cast() unsafe.Pointer {
	p := unsafe.Pointer(t.ptr)
	return unsafe.Pointer(C.toBush(p))
}

// The finalizer has nothing to free where the field is nil.
func (t *Tree) cleared() int {
	p := t.ptr
	if p == nil {
		return 0
	}
	t.ptr = nil
	return int(C.bush_len(unsafe.Pointer(p)))
}

// A Copied has no finalizer: the variable in newCopied has one.
type Copied struct{ ptr unsafe.Pointer }

func newCopied(p unsafe.Pointer) Copied {
	c := Copied{p}
	runtime.SetFinalizer(&c, func(c *Copied) { C.bush_len(c.ptr) })
	return c
}

func (c *Copied) len() int { return int(C.bush_len(c.ptr)) }

// A Noted has a finalizer that frees the note alone.
type Noted struct{ ptr, note unsafe.Pointer } // want Noted:"owner"

func newNoted(p unsafe.Pointer) *Noted {
	n := &Noted{p, p}
	runtime.SetFinalizer(n, func(n *Noted) { C.bush_len(n.note) })
	return n
}

func (n *Noted) len() int { return int(C.bush_len(n.ptr)) }

// The field that gets the result is used behind the call.
func (n *Noted) renew() { n.note = C.bush_same(n.note) }

func (n *Noted) noted() int { return int(C.bush_len(n.note)) } // want `n may be collected while C.bush_len uses what it owns`

// Only the collector calls it.
func finalize(t *Twig) {
	if C.bush_len(t.ptr) > 0 {
		runtime.SetFinalizer(t, finalize)
		C.bush_two(t.ptr, nil)
	}
}

// A Twig has a finalizer that does not release it.
type Twig struct{ ptr unsafe.Pointer } // want Twig:"owner"

// newTree may make a Tree that owns nothing.
func newTree(own bool) *Tree {
	t := &Tree{}
	if own {
		runtime.SetFinalizer(t, (*Tree).free)
	}
	return t
}

func ofAnother() int {
	t := newTree(false)
	return int(C.bush_len(unsafe.Pointer(t.ptr)))
}
