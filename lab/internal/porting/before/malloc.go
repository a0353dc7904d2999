package before

// #include <stdlib.h>
// #include "../library.h"
import "C"

import "unsafe"

// CountLines passes a text to C.
func CountLines(text string) int {
	p := C.CString(text)
	defer C.free(unsafe.Pointer(p))
	return int(C.count_lines(p))
}

// A Pair is memory that C may keep. Free ends that.
type Pair struct{ c *C.pair }

// NewPair has C's malloc make it, which does not return if there is no memory.
func NewPair(a, b int64) Pair {
	c := (*C.pair)(C.malloc(C.sizeof_pair))
	c.a, c.b = C.int64_t(a), C.int64_t(b)
	return Pair{c}
}

// Sum lets C read it.
func (p Pair) Sum() int64 { return int64(C.sum_pair(p.c)) }

// Free frees it.
func (p Pair) Free() { C.free(unsafe.Pointer(p.c)) }
