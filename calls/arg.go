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
type Arg struct {
	word uint64 // the value, what is added to a result, or an address

	// The generation of a result, the word where its call begins, how it becomes the argument,
	// and whether it is a double.
	ref uint64
}

const (
	argIndex = 32 // a shift; 28 bits
	argHow   = 7 << argHowAt
	argFloat = 1 << 63

	argHowAt    = 60
	argRef      = 1 << argHowAt
	argLoad     = 2 << argHowAt
	argLoad32   = 3 << argHowAt
	argLoadAt   = 4 << argHowAt
	argLoad32At = 5 << argHowAt
)

// argOps are the operations of these ways.
var argOps = [8]unsafe.Pointer{
	argRef >> argHowAt:      C.cheap_calls_ref,
	argLoad >> argHowAt:     C.cheap_calls_load,
	argLoad32 >> argHowAt:   C.cheap_calls_load32,
	argLoadAt >> argHowAt:   C.cheap_calls_load_at,
	argLoad32At >> argHowAt: C.cheap_calls_load32_at,
}

// Int returns an argument that is an integer.
func Int(v int64) Arg { return Arg{word: uint64(v)} }

// Float returns an argument that is a double or a float.
func Float(v float64) Arg { return Arg{word: math.Float64bits(v), ref: argFloat} }

// Pointer returns an argument that is a pointer: to C memory, or to what [List.Bytes] or
// [List.Pin] has returned.
func Pointer(p unsafe.Pointer) Arg { return Arg{word: Address(p)} }

// Address returns a pointer as a word of a recorded call. It must be to C memory, or what
// [List.Bytes] or [List.Pin] has returned: a Go pointer that is not pinned keeps nothing
// alive in a list. A program that is built with -race or the tag cheap_check panics for such
// a pointer, as a cgo call does for one in Go memory. Generated code calls it.
func Address(p unsafe.Pointer) uint64 {
	checkPointer(p)
	return uint64(uintptr(p))
}

// Arg returns the result as an argument of a later call of the same recording.
func (r Result) Arg() Arg { return Arg{ref: uint64(r.at)<<argIndex | uint64(r.gen) | argRef} }

// Plus returns the result and offset as an argument: of a pointer, an address behind it.
func (r Result) Plus(offset int) Arg { return r.address(offset, argRef, "Plus") }

// Load returns, as an argument, the pointer-sized word in memory that is offset bytes behind
// where the result points to.
func (r Result) Load(offset int) Arg { return r.address(offset, argLoad, "Load") }

// Load32 returns, as an argument, the int32 in memory that is offset bytes behind where the
// result points to.
func (r Result) Load32(offset int) Arg { return r.address(offset, argLoad32, "Load32") }

func (r Result) address(offset int, how uint64, method string) Arg {
	if r.at&resultFloat != 0 {
		panicMisuse("Result."+method, "the result is a double")
	}
	a := r.Arg()
	return Arg{uint64(offset), a.ref&^argHow | how}
}

// LoadAt returns, as an argument, the pointer-sized word that is at p when the call is made.
// An earlier call may write it there: a C function that returns a pointer by a parameter
// gets p, memory of [List.Alloc].
func LoadAt(p unsafe.Pointer) Arg { return Arg{uint64(uintptr(p)), argLoadAt} }

// Load32At is [LoadAt] of an int32.
func Load32At(p unsafe.Pointer) Arg { return Arg{uint64(uintptr(p)), argLoad32At} }

// refWords is the length of the operation that fetches an argument.
const refWords = 3

// isWrong reports whether an argument is a result of another recording.
func (l *List) isWrong(a Arg) bool {
	return a.ref&argHow != 0 && uint32(a.ref) != l.gen && a.ref&argHow < argLoadAt
}

// isSimple reports whether an argument is a value, or a result of this recording that needs no
// operation before the call: its distance and what is added fit in the word of the argument.
func (l *List) isSimple(a Arg) bool {
	return a.ref&argHow == 0 || a.ref&argHow == argRef && uint32(a.ref) == l.gen && a.word == uint64(int32(a.word))
}

// Fits reports whether an argument of a call can be written by [Arg.In]: whether it is a value,
// or a result of this recording. float says whether the parameter is a double, by its bit.
func (l *List) Fits(a Arg, float uint64) bool { return a.ref>>63 == float && l.isSimple(a) }

// In returns an argument as a word of the call whose result is r, and bit if it is a result.
func (a Arg) In(r Result, bit uint64) (word, isResult uint64) {
	if a.ref&argHow == 0 {
		return a.word, 0
	}
	return uint64(uint32(int(a.ref>>argIndex&(1<<28-1))+1-int(r.at&^resultFloat))) | a.word<<32, bit
}

// result is that of a call at a word.
func (l *List) result(shape Shape, at int) Result {
	return Result{l, uint32(at) | uint32(shape&shapeFloat)<<23, l.gen}
}

// OpArgs records a call with arguments that may be earlier results, by its other operation,
// which looks for them. The word behind the result says which arguments are results: such an
// argument has the distance to the result in its low half, and what is added in its high half.
// OpArgs makes room itself. It panics if an argument is a result that is not of this recording,
// or if the arguments are not what the shape says.
func (l *List) OpArgs(op unsafe.Pointer, shape Shape, args ...Arg) Result {
	fetches := 0
	for i, a := range args {
		if l.isWrong(a) || a.ref>>63 != uint64(shape)>>(shapeFloats+i)&1 {
			l.panicArg(i, a)
		}
		if !l.isSimple(a) {
			fetches++
		}
	}
	if len(args) != int(shape&0xff) {
		panicMisuse("List.OpArgs", "%d arguments for a function of %d", len(args), shape&0xff)
	}
	words := fetches*refWords + 3 + len(args)
	at := l.n
	if at+words > l.room {
		at = l.makeRoom(words, true)
	}
	call := at + fetches*refWords
	w := (*[slack]uint64)(unsafe.Add(l.base, call*8))
	w[0], w[1] = uint64(uintptr(op)), 0
	results, r := uint64(0), l.result(shape, call)
	for i, a := range args {
		if l.isSimple(a) {
			word, isResult := a.In(r, 1<<i)
			w[3+i] = word
			results |= isResult
			continue
		}
		fetch := (*[refWords]uint64)(unsafe.Add(l.base, at*8))
		fetch[0] = uint64(uintptr(argOps[a.ref>>argHowAt&7]))
		fetch[1] = pair(at, int(a.ref>>argIndex&(1<<28-1))+1, call+3+i)
		fetch[2] = a.word
		at += refWords
	}
	w[2] = results
	l.n = call + 3 + len(args)
	return r
}

// panicArg says what is wrong with an argument.
func (l *List) panicArg(i int, a Arg) {
	l.mustBeIdle("recording")
	switch {
	case l.isWrong(a):
		panicMisuse("List", "argument %d is the result of a call that is not in this recording; use results of earlier calls of the same list since its Reset", i)
	case a.ref&argFloat != 0:
		panicMisuse("List", "argument %d is a double, and the parameter is an integer or a pointer", i)
	}
	panicMisuse("List", "argument %d is an integer or a pointer, and the parameter is a double; use Float", i)
}
