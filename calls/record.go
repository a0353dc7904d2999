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

// Words are the arguments of a recorded call, for generated code: integers and pointers as
// they are, widened by their sign, doubles by their bits. Only as many may be written as the
// call has.
type Words = [MaxWords]uint64

// A Shape says what a recorded call looks like, for generated code: how many arguments it
// has in the low 8 bits, whether its result is a double in bit 8, and from bit 32 on which
// arguments are doubles.
type Shape uint64

const (
	shapeFloat  Shape = 1 << 8
	shapeFloats       = 32
)

// Full reports whether [List.Grow] must be called before a call of so many arguments is
// recorded. It is for the code that callgen writes, as are Grow, Op, OpFloat, OpArgs, Fits and
// [Arg.In].
func (l *List) Full(args int) bool { return l.n+2+args > l.room }

// Grow makes room for a call of so many arguments. It panics if nothing may be recorded.
//
//go:noinline
func (l *List) Grow(args int) { l.makeRoom(2+args, true) }

// Op records a call by its operation: the address of a C function that makes the call, which
// callgen writes as well. There must be room for it: see [List.Full]. As many arguments as
// the call has must be written to the words that Op returns, before anything else is recorded.
// Room is checked in generated code because a method that calls nothing is inlined there.
func (l *List) Op(op unsafe.Pointer, args int) (*Words, Result) {
	at := l.n
	w := (*callWords)(unsafe.Add(l.base, at*8))
	w.op = uint64(uintptr(op))
	w.result = 0
	l.n = at + 2 + args
	return &w.args, Result{l, uint32(at), l.gen}
}

// OpFloat is [List.Op] of a call whose result is a double or a float.
func (l *List) OpFloat(op unsafe.Pointer, args int) (*Words, Result) {
	w, r := l.Op(op, args)
	r.at |= resultFloat
	return w, r
}

// A Result is the result of a recorded call. After [List.Run] its methods read it, and before
// it can be an argument of a later call of the same recording, or part of a condition. It is
// comparable.
//
// The result of a call that the run did not make is that of an earlier run of the same
// recording, or 0.
type Result struct {
	list *List
	at   uint32 // the word where the call begins; and resultFloat
	gen  uint32
}

const resultFloat = 1 << 31

// read returns the word of a result.
func (r Result) read(method string, float bool) uint64 {
	l := r.list
	if l == nil || l.gen != r.gen || !l.ran || l.state != idle || (r.at&resultFloat != 0) != float {
		r.panicRead(method, float)
	}
	return l.words[r.at&^resultFloat+1]
}

func (r Result) panicRead(method string, float bool) {
	l := r.list
	switch {
	case l == nil:
		panicMisuse("Result."+method, "the zero Result is of no call")
	case l.gen != r.gen:
		panicMisuse("Result."+method, "the list was reset or given back since; read a result before")
	case l.state == running:
		panicMisuse("Result."+method, "the list runs; read a result after Run")
	case !l.ran:
		panicMisuse("Result."+method, "the list did not run; read a result after Run")
	case float:
		panicMisuse("Result."+method, "the result is no double; use Int, Uint or Pointer")
	default:
		panicMisuse("Result."+method, "the result is a double; use Float")
	}
}

// Int returns the result as an integer with a sign. Narrow integers were widened.
func (r Result) Int() int64 { return int64(r.read("Int", false)) }

// Uint returns the result as an integer without a sign.
func (r Result) Uint() uint64 { return r.read("Uint", false) }

// Float returns the result, a double or a float.
func (r Result) Float() float64 { return math.Float64frombits(r.read("Float", true)) }

// Pointer returns the result, a pointer.
func (r Result) Pointer() unsafe.Pointer { return pointer(r.read("Pointer", false)) }

// pointer converts a word that C has returned, or an address outside the Go heap.
func pointer(word uint64) unsafe.Pointer {
	address := uintptr(word)
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// index returns where a call begins that was recorded before in this list.
func (r Result) index(l *List, method string) int {
	if r.list != l || r.gen != l.gen {
		panicMisuse(method, "the result is not of an earlier call of this recording")
	}
	return int(r.at &^ resultFloat)
}

// Errno records that errno, as the call before has left it, is kept as a result. C functions
// set errno only when they fail: [List.ClearErrno] before the call makes it 0.
func (l *List) Errno() Result {
	w, at := l.add(C.cheap_calls_errno, 2)
	w[1] = 0
	return Result{l, uint32(at), l.gen}
}

// ClearErrno records that errno becomes 0.
func (l *List) ClearErrno() { l.add(C.cheap_calls_clear_errno, 1) }

// Len returns how many words the recording has. A call has two and its arguments.
func (l *List) Len() int { return max(l.n-header, 0) }

// Bit returns 1 for true and 0 for false. Generated code calls it.
func Bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
