//go:build linux && (amd64 || arm64)

// Package asmcall calls C from a function in assembly that runs on the stack of C, as purego does.
package asmcall

import "unsafe"

// Call calls a C function with an argument, and returns its result.
func Call(f, arg unsafe.Pointer) unsafe.Pointer {
	c := call{f: f, arg: arg}
	cgocall(trampoline, unsafe.Pointer(&c))
	return c.result
}

// A call is what the assembly reads and writes.
type call struct{ f, arg, result unsafe.Pointer }

var trampoline unsafe.Pointer // the address of the assembly

//go:linkname cgocall runtime.cgocall
func cgocall(fn, arg unsafe.Pointer) int32
