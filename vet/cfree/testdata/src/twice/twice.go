// Package twice frees variables twice.
package twice

/*
#include <stdlib.h>
typedef struct node node;
static void node_free(node *n) { free(n); }
node *node_new(void); static void node_delete(node **n) { free(*n); *n = NULL; }
void node_unref(node *n); int delete(const char *name);
int set_text(node *n, char *text, int flags); // If NODE_NO_COPY is set, text will be freed on error.
*/
import "C"

import "unsafe"

func twoDefers(content string) {
	var c *C.char
	if len(content) > 0 {
		c = C.CString(content)
		defer C.free(unsafe.Pointer(c))
	}
	local := C.CString(content)     // want `never freed`
	defer C.free(unsafe.Pointer(c)) // want `c is freed twice: line 20 frees it as well`
	use(local)
}

func deferAndFree(s string) {
	c := C.CString(s)
	defer C.free(unsafe.Pointer(c))
	use(c)
	C.free(unsafe.Pointer(c)) // want `c is freed twice: line 29 frees it as well`
}

func bothWays(s string, ok bool) {
	c := C.CString(s)
	if ok {
		C.free(unsafe.Pointer(c))
	}
	C.free(unsafe.Pointer(c)) // want `c is freed twice`
}

func returnBetween(s string, ok bool) {
	c := C.CString(s)
	use(c)
	C.free(unsafe.Pointer(c))
	if ok {
		return
	}
	C.free(unsafe.Pointer(c)) // want `c is freed twice`
}

func literal(s string) {
	n := C.node_new()
	defer func() {
		C.node_free(n)
	}()
	if s == "" {
		C.node_free(n) // want `n is freed twice`
		return
	}
}

func parameter(n *C.node, ok bool) {
	if !ok {
		C.node_free(n)
	}
	C.node_free(n) // want `n is freed twice`
}

func oneWayOrTheOther(s string, ok bool) {
	c := C.CString(s)
	if ok {
		C.free(unsafe.Pointer(c))
		return
	}
	C.free(unsafe.Pointer(c))
}

func deferIfNotNil(s string) {
	c := C.CString(s)
	defer func() {
		if c != nil {
			C.free(unsafe.Pointer(c))
		}
	}()
	C.free(unsafe.Pointer(c))
	c = nil
}

func setToNil(n *C.node) {
	defer func() { C.node_free(n) }()
	C.node_free(n)
	n = nil
}

func replaced(s string) {
	c := C.CString(s)
	C.free(unsafe.Pointer(c))
	c = C.CString(s)
	C.free(unsafe.Pointer(c))
}

func pointee(p **C.char, s string) {
	C.free(unsafe.Pointer(*p))
	*p = C.CString(s)
	C.free(unsafe.Pointer(*p))
}

func oneOrOther(s string, ok bool) {
	c := C.CString(s)
	if ok {
		C.free(unsafe.Pointer(c))
	} else {
		C.free(unsafe.Pointer(c))
	}
}

func rounds(list []string) {
	for _, s := range list {
		c := C.CString(s)
		if s == "" {
			C.free(unsafe.Pointer(c))
			continue
		}
		use(c)
		C.free(unsafe.Pointer(c))
	}
}

func again(list []string) {
	var c *C.char
	for _, s := range list {
		if c != nil {
			C.free(unsafe.Pointer(c))
		}
		c = C.CString(s)
	}
	if c != nil {
		C.free(unsafe.Pointer(c))
	}
}

func references(n *C.node) {
	C.node_unref(n)
	C.node_unref(n)
}

func named(s string) {
	c := C.CString(s)
	defer C.free(unsafe.Pointer(c))
	C.delete(c)
}

func written(fill func(**C.char)) {
	var c *C.char
	fill(&c)
	C.free(unsafe.Pointer(c))
	fill(&c)
	C.free(unsafe.Pointer(c))
}

func use(*C.char) {}

// A Node has to be closed, once.
type Node struct{ n *C.node }

// Close frees the node.
func (n *Node) Close() { C.node_free(n.n) } // want Close:`releases` Close:`params`

// A Safe may be closed twice.
type Safe struct{ n *C.node }

// Close frees the node.
func (s *Safe) Close() { // want Close:`releases` Close:`params`
	C.node_free(s.n)
	s.n = nil
}

// An Asking may be closed twice.
type Asking struct{ n *C.node }

// Close frees the node.
func (a *Asking) Close() { // want Close:`releases` Close:`params`
	if a.n != nil {
		C.node_free(a.n)
	}
}

func free(c *C.char) { C.free(unsafe.Pointer(c)) }

func closedTwice(n *Node, ok bool) {
	defer n.Close()
	if !ok {
		n.Close() // want `n is freed twice`
	}
}

func closedOnce(list []*Node, ok bool) {
	for _, n := range list {
		n.Close()
	}
	n := list[0]
	if ok {
		n.Close()
		n = list[1]
	}
	n.Close()
}

func closedSafely(s *Safe, a *Asking) {
	defer s.Close()
	defer a.Close()
	s.Close()
	a.Close()
}

func byGo(s string) {
	c := C.CString(s)
	defer free(c)
	use(c)
	C.free(unsafe.Pointer(c)) // want `c is freed twice`
}

func inALiteral(s string, run func(func())) {
	c := C.CString(s)
	defer free(c)
	run(func() { use(c) })
}

func byFlag(n *C.node, s string) {
	c := C.CString(s)
	defer C.free(unsafe.Pointer(c))
	C.set_text(n, c, 0)
}

// A function of C that gets the address of the pointer may clear it.

type clearing struct{ n *C.node }

func (h *clearing) close() { C.node_delete(&h.n) }

func clearedTwice(h *clearing) {
	h.close()
	h.close()
}
