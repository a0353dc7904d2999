//go:build cgo

package calls

/*
#include "ops.h"
*/
import "C"

import (
	"math"
	"unsafe"
)

// An Arg is an argument of a recorded call that may be known only when the call is made: the
// methods of generated code whose names end in Args take them. A number or a pointer is an
// Arg by [Int], [Float] and [Pointer]; an earlier result by [Result.Arg], [Result.Plus],
// [Result.Load] and [Result.Load32].
//
// Only code that callgen writes uses the fields; ops.h describes them.
type Arg struct {
	Word uint64 // the argument, an address, or which result
	Ref  uint64 // what Word is
}

// The values of Ref that are no generation of a result, and how a result becomes an argument.
const (
	argAt     = C.CALLS_ARG_AT
	argAt32   = C.CALLS_ARG_AT32 // the largest but argFloat
	argFloat  = C.CALLS_ARG_FLOAT
	argLoad   = C.CALLS_ARG_LOAD
	argLoad32 = C.CALLS_ARG_LOAD32
)

// Int returns an argument that is an integer.
func Int(v int64) Arg { return Arg{Word: uint64(v)} }

// Float returns an argument that is a double or a float.
func Float(v float64) Arg { return Arg{math.Float64bits(v), argFloat} }

// Pointer returns an argument that is a pointer: to C memory, or to what [List.Bytes] or
// [List.Pin] has returned.
func Pointer(p unsafe.Pointer) Arg { return Arg{Word: Address(p)} }

// Address returns a pointer as a word of a recorded call. It must be to C memory, or what
// [List.Bytes] or [List.Pin] has returned: a Go pointer that is not pinned keeps nothing
// alive in a list. A program that is built with -race panics for such
// a pointer, as a cgo call does for one in Go memory. A pointer for [List.Call] is given so;
// otherwise only code that callgen writes calls it.
func Address(p unsafe.Pointer) uint64 {
	checkPointer(p)
	return uint64(uintptr(p))
}

// Arg returns the result as an argument of a later call of the same recording.
func (r Result) Arg() Arg { return Arg{uint64(r.at), uint64(r.gen)} }

// Plus returns the result and offset as an argument: of a pointer, an address behind it. The
// offset must be an int32, here and below.
func (r Result) Plus(offset int) Arg { return r.address(offset, 0, "Plus") }

// Load returns, as an argument, the pointer-sized word in memory that is offset bytes behind
// where the result points to.
func (r Result) Load(offset int) Arg { return r.address(offset, argLoad, "Load") }

// Load32 returns, as an argument, the int32 in memory that is offset bytes behind where the
// result points to.
func (r Result) Load32(offset int) Arg { return r.address(offset, argLoad32, "Load32") }

func (r Result) address(offset int, how uint64, method string) Arg {
	if r.isFloat() {
		panicMisuse("Result."+method, "the result is a double")
	}
	if int(int32(offset)) != offset {
		panicMisuse("Result."+method, "the offset %d is not between -2³¹ and 2³¹-1", offset)
	}
	a := r.Arg()
	a.Word |= how | uint64(uint32(offset))<<32
	return a
}

// LoadAt returns, as an argument, the pointer-sized word that is at p when the call is made.
// An earlier call may write it there: a C function that returns a pointer by a parameter
// gets p, memory of [List.Alloc].
func LoadAt(p unsafe.Pointer) Arg { return Arg{Address(p), argAt} }

// Load32At is [LoadAt] of an int32.
func Load32At(p unsafe.Pointer) Arg { return Arg{Address(p), argAt32} }

// In returns the word of an argument of a call in l whose parameter is an integer or a pointer. Only
// code that callgen writes calls it. It panics if the argument is a double, or a result that is not
// of the recording. It is made so that methods that call it once are inlined, and those with two such arguments call
// [List.Begin2].
func (a Arg) In(l *List) uint64 {
	if a.Ref > argAt32 && a.Ref != uint64(l.gen) {
		panic(wrongArg)
	}
	return a.Word
}

// InFloat is [Arg.In] for a parameter that is a double or a float. Only code that callgen writes
// calls it.
func (a Arg) InFloat(l *List) uint64 {
	if a.Ref != argFloat && a.Ref != uint64(l.gen|genFloat) {
		panic(wrongArg)
	}
	return a.Word
}

// Begin2 is [List.Begin] and [Arg.In] of two arguments. Only code that callgen writes calls it.
func (l *List) Begin2(a, b Arg) (*[]uint64, Result) {
	if l.state != idle || a.Ref > argAt32 && a.Ref != uint64(l.gen) || b.Ref > argAt32 && b.Ref != uint64(l.gen) {
		panic(refusals[l.state])
	}
	return &l.words, Result{l, uint32(len(l.words) + 1), l.gen}
}

var wrongArg = misuse("List", "an argument is the result of a call that is not in this recording; or it is a double and its parameter is none, or the reverse. Use results of earlier calls of the same list since its Reset; Float for doubles, Int and Pointer for others")
