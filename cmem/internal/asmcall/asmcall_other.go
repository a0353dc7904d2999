//go:build !linux || (!amd64 && !arm64)

// Package asmcall calls C from a function in assembly that runs on the stack of C, as purego does.
package asmcall

import "unsafe"

// Call returns nil: there is no assembly for this system.
func Call(f, arg unsafe.Pointer) unsafe.Pointer { return nil }
