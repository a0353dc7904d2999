//go:build cgo && cxx

package cxxtest

// #cgo CXXFLAGS: -std=c++11 -I${SRCDIR}/../../../internal/cxxheader
// #include "cxxtest.h"
import "C"

import (
	"unsafe"

	_ "github.com/cheapgo/cheap/internal/cxxheader" // so that a change of it is seen
)

// The names of pools, as C++ gives them to cheap::destroy.
const (
	Pool   = C.CXXTEST_POOL
	Broken = C.CXXTEST_BROKEN
	Inner  = C.CXXTEST_INNER
)

// A Kind is a kind of resource. Its resources have numbers.
type Kind struct {
	Name     string
	Destroy  unsafe.Pointer // the C function
	Deleters int            // calls of a deleter for each resource; see Deleted

	index C.int
}

// Kinds returns all kinds.
func Kinds() (list []Kind) {
	for i := C.int(0); ; i++ {
		k := C.cxxtest_kind_at(i)
		if k == nil {
			return list
		}
		list = append(list, Kind{C.GoString(k.name), unsafe.Pointer(k.destroy), int(k.deleters), i})
	}
}

// Make makes a resource with a number.
func (k Kind) Make(number int) unsafe.Pointer { return C.cxxtest_make(k.index, C.int(number)) }

// Number returns the number of a resource, as C++ finds it.
func (k Kind) Number(resource unsafe.Pointer) int { return int(C.cxxtest_number(k.index, resource)) }

// Alive returns how many things there are in C++.
func Alive() int { return int(C.cxxtest_alive()) }

// Destroyed returns the sum of the numbers of the things that were destroyed.
func Destroyed() int { return int(C.cxxtest_destroyed()) }

// Deleted returns how often a deleter was called that is not of the C++ library.
func Deleted() int { return int(C.cxxtest_deleted()) }

// Blocks returns the number of blocks that new has allocated and delete has not freed.
func Blocks() int { return int(C.cxxtest_blocks()) }

// Refuse calls f while new without exceptions has no memory.
func Refuse(f func()) {
	C.cxxtest_refuse = 1
	f()
	C.cxxtest_refuse = 0
}

// Empties are the resources of pointers to nothing.
func Empties() (list []unsafe.Pointer) {
	for i := range 4 {
		list = append(list, C.cxxtest_empty(C.int(i)))
	}
	return list
}

// DestroyShared is the C function for what Share makes.
var DestroyShared = unsafe.Pointer(C.cxxtest_destroy_shared)

// Share makes a thing that C++ shares until Unshare, and returns the number of its owners.
func Share(number int) (resource unsafe.Pointer, owners int) {
	var n C.long
	p := C.cxxtest_share(C.int(number), &n)
	return p, int(n)
}

// Unshare drops the share of C++.
func Unshare() { C.cxxtest_unshare() }

// A Breaker makes things of which the destruction ends the program.
type Breaker struct {
	Name    string
	Destroy unsafe.Pointer // the C function

	index C.int
}

// Breakers returns all of them.
func Breakers() (list []Breaker) {
	for i := C.int(0); ; i++ {
		b := C.cxxtest_breaker_at(i)
		if b == nil {
			return list
		}
		list = append(list, Breaker{C.GoString(b.name), unsafe.Pointer(b.destroy), i})
	}
}

// Make makes a thing.
func (b Breaker) Make() unsafe.Pointer { return C.cxxtest_make_broken(b.index) }

// InstallHandler installs a terminate handler that prints a line, and then calls the one
// that it replaces, or aborts.
func InstallHandler(callsTheOneBefore bool) {
	n := C.int(0)
	if callsTheOneBefore {
		n = 1
	}
	C.cxxtest_handler(n)
}

// Throw lets an exception out of C++, not in a destructor.
func Throw() { C.cxxtest_throw() }

// The C functions that delete a number, without cheap.hpp and with it.
var (
	DeleteSmall  = unsafe.Pointer(C.cxxtest_delete_small)
	DestroySmall = unsafe.Pointer(C.cxxtest_destroy_small)
)
