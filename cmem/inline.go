//go:build !go1.28

package cmem

import _ "unsafe" // for linkname

// expand returns the program counters of all functions that were inlined at the last one of the
// stack. runtime/pprof completes the stacks of its CPU profile by it.
//
//go:linkname expand runtime/pprof.runtime_expandFinalInlineFrame
func expand(stack []uintptr) []uintptr

// inlined returns a program counter for each function that was inlined at a return address,
// innermost first.
func inlined(pc uintptr) []uintptr { return expand([]uintptr{pc}) }
