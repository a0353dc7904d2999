package porting

// #include "library.h"
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap"
)

// CountLines passes a text to C.
func CountLines(text string) int {
	a := cheap.GetArena()
	defer a.Put()
	return int(C.count_lines((*C.char)(cheap.CString(a, text))))
}

// A Pair is memory that C may keep. Free ends that.
type Pair struct{ c *C.pair }

// NewPair has the heap make it, and returns an error if there is no memory.
func NewPair(a, b int64) (Pair, error) {
	c := cheap.New[C.pair](cheap.Default())
	if c == nil {
		return Pair{}, cheap.ErrNoMemory
	}
	c.a, c.b = C.int64_t(a), C.int64_t(b)
	return Pair{c}, nil
}

// Sum lets C read it.
func (p Pair) Sum() int64 { return int64(C.sum_pair(p.c)) }

// Free frees it, and panics if it is free already.
func (p Pair) Free() { cheap.Free(unsafe.Pointer(p.c)) }
