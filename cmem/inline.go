//go:build !go1.28

package cmem

import "unsafe" // for linkname

// cgocall is the function by which Go calls C. Cgo and others call it by its name, so the name stays.
//
//go:linkname cgocall runtime.cgocall
func cgocall(fn, arg unsafe.Pointer) int32

// expand returns the program counters of all functions that were inlined at the last one of the
// stack. runtime/pprof completes the stacks of its CPU profile by it.
//
//go:linkname expand runtime/pprof.runtime_expandFinalInlineFrame
func expand(stack []uintptr) []uintptr

// inlined returns a program counter for each function that was inlined at a return address,
// innermost first.
func inlined(pc uintptr) []uintptr { return expand([]uintptr{pc}) }
