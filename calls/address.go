//go:build cgo && (amd64 || arm64)

package calls

/*
#include "ops.h"
*/
import "C"

import (
	"math"
	"runtime"
	"unsafe"
)

// A Func is a C function by its address, for [List.Call]. In Go the address of a C function
// that is not static is unsafe.Pointer(C.name).
type Func struct {
	Address unsafe.Pointer
	Result  ResultType
}

// A ResultType is what a [Func] returns. The rest of a register in which a narrow result is
// returned has no meaning, so the type must be right.
type ResultType uint8

// The types of results.
const (
	Word   ResultType = iota // Word is a pointer, an integer of 64 bits, or no result
	Int32                    // Int32 is an int
	Uint32                   // Uint32 is an unsigned int
	Double                   // Double is a double
)

// The most arguments of [List.Call].
const (
	MaxIntegers = 6 // MaxIntegers is the most integers and pointers
	MaxDoubles  = 8 // MaxDoubles is the most doubles
)

// Call records a call of a function by its address, with integers and pointers, and with
// doubles, each in the order of the parameters. A narrow integer must be widened by its sign:
// uint64(int32(-1)). The function must not be variadic, and must have no structures and no
// floats.
//
// This is the back door, for functions that are only known when the program runs. The
// compiler checks nothing, and the C code calls the function by a pointer of another type,
// which -fsanitize=function and -fsanitize=cfi-icall report. Use the methods that callgen
// writes where a header is at hand.
//
// Call is for amd64 and arm64. On Windows it takes no doubles.
func (l *List) Call(f Func, integers []uint64, doubles ...float64) Result {
	if f.Address == nil || f.Result > Double {
		panicMisuse("List.Call", "the function is nil, or its type of result unknown")
	}
	ni, nd := len(integers), len(doubles)
	if ni > MaxIntegers || nd > MaxDoubles {
		panicMisuse("List.Call", "%d integers and %d doubles; the most are %d and %d", ni, nd, MaxIntegers, MaxDoubles)
	}
	if runtime.GOOS == "windows" && (nd > 0 || f.Result == Double) {
		panicMisuse("List.Call", "doubles cannot be passed by address on Windows; use callgen")
	}
	w, r := l.Begin()
	if f.Result == Double {
		r.gen |= genFloat
	}
	*w = append(*w, C.CALLS_ADDRESS, 0, uint64(ni)|uint64(nd)<<8|uint64(f.Result)<<16, uint64(uintptr(f.Address)))
	*w = append(*w, integers...)
	for _, d := range doubles {
		*w = append(*w, math.Float64bits(d))
	}
	return r
}
