// Package user has no cgo.
package user

import (
	"unsafe"

	"lib"

	"github.com/cheapgo/cheap"
)

func leaks() int {
	p := lib.New("x") // want `the result of lib.New is never freed`
	return lib.Len(p)
}

func frees() int {
	p := lib.New("x")
	defer lib.Free(p)
	return lib.Len(p)
}

func stores(list []unsafe.Pointer) []unsafe.Pointer {
	return append(list, lib.New("x"))
}

func block(zero bool) {
	p := cheap.Malloc(10) // want `the result of cheap.Malloc is not freed on the way to the return in line 33`
	if p == nil {
		return
	}
	if zero {
		return
	}
	cheap.Free(p)
}

func value() int {
	p := cheap.New[int](cheap.Default()) // want `never freed`
	return *p
}

func deleted() int {
	p := cheap.New[int](cheap.Default())
	defer cheap.Delete(cheap.Default(), p)
	return *p
}
