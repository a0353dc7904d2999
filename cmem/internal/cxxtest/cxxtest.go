//go:build cgo && cxx && linux

package cxxtest

// #cgo CXXFLAGS: -std=c++17 -w
// #include "cxxtest.h"
import "C"

import "unsafe"

// Operators are an operator new and an operator delete that goes with it.
type Operators struct {
	Name string

	index C.int
}

// All returns all operators.
func All() (list []Operators) {
	for i := C.int(0); ; i++ {
		k := C.cxxtest_kind_at(i)
		if k == nil {
			return list
		}
		list = append(list, Operators{C.GoString(k.name), i})
	}
}

// Pairs makes and destroys a block of n bytes, times times, and says what is wrong, or "".
func (o Operators) Pairs(times, n int) string {
	return C.GoString(C.cxxtest_pairs(o.index, C.int(times), C.size_t(n)))
}

// Make makes a block of n bytes.
func (o Operators) Make(n int) unsafe.Pointer { return C.cxxtest_make(o.index, C.size_t(n)) }

// Destroy destroys it.
func (o Operators) Destroy(p unsafe.Pointer, n int) { C.cxxtest_destroy(o.index, p, C.size_t(n)) }

// Fails asks for memory that no system has, and says what is wrong, or "".
func (o Operators) Fails() string { return C.GoString(C.cxxtest_fails(o.index)) }

// Handled asks for n bytes that there are only after the handler of the program has given back
// memory. It returns the block, and what is wrong, or "".
func (o Operators) Handled(n int) (unsafe.Pointer, string) {
	var p unsafe.Pointer
	wrong := C.cxxtest_handled(o.index, C.size_t(n), &p)
	return p, C.GoString(wrong)
}

// Throws throws an exception depth functions deep, and returns how many objects were destroyed
// on its way.
func Throws(depth int) int { return int(C.cxxtest_throws(C.int(depth))) }

// Replaced reports whether the program has operators of its own, by the build tag cxx_replaced.
func Replaced() bool { return C.cxxtest_replaced != 0 }

// Called returns how often the operators of the program were called.
func Called() (news, deletes int) { return int(C.cxxtest_news), int(C.cxxtest_deletes) }

// LibraryCalled returns how often the operators new of a library that is preloaded were called.
func LibraryCalled() int { return int(C.cxxtest_library_called()) }
