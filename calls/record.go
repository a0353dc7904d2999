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

// Begin begins to record a call. Only code that callgen writes calls it. The caller appends the
// words of the call, as ops.h describes them, to those that Begin returns, and nothing else; the
// result is a 0. Begin returns the result of the call, too.
//
// Recording is an append because a method that calls no function is inlined.
func (l *List) Begin() (*[]uint64, Result) {
	if l.state != idle {
		panic(refusals[l.state])
	}
	return &l.words, Result{l, uint32(len(l.words) + 1), l.gen}
}

// BeginFloat is [List.Begin] of a call whose result is a double or a float. Only code that callgen
// writes calls it.
func (l *List) BeginFloat() (*[]uint64, Result) {
	if l.state != idle {
		panic(refusals[l.state])
	}
	return &l.words, Result{l, uint32(len(l.words) + 1), l.gen | genFloat}
}

// Op returns the address of the struct that describes a C function as a word. Only code
// that callgen writes calls it.
func Op(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }

// A Result is the result of a recorded call. After [List.Run] its methods read it, and before
// it can be an argument of a later call of the same recording, or part of a condition. It is
// comparable.
//
// The result of a call that the run did not make is that of an earlier run of the same
// recording, or 0.
type Result struct {
	list *List
	at   uint32 // the index of the word of the result
	gen  uint32 // of the recording; and genFloat
}

func (r Result) isFloat() bool { return r.gen&genFloat != 0 }

// Int returns the result as an integer with a sign. Narrow integers were widened.
func (r Result) Int() int64 {
	if !r.isRead(0) {
		r.panicRead("Int", false)
	}
	return int64(r.list.words[r.at])
}

// Uint returns the result as an integer without a sign.
func (r Result) Uint() uint64 {
	if !r.isRead(0) {
		r.panicRead("Uint", false)
	}
	return r.list.words[r.at]
}

// Float returns the result, a double or a float.
func (r Result) Float() float64 {
	if !r.isRead(genFloat) {
		r.panicRead("Float", true)
	}
	return math.Float64frombits(r.list.words[r.at])
}

// Pointer returns the result, a pointer.
func (r Result) Pointer() unsafe.Pointer {
	if !r.isRead(0) {
		r.panicRead("Pointer", false)
	}
	return pointer(r.list.words[r.at])
}

// isRead reports whether the result can be read, as a double or as something else.
func (r Result) isRead(float uint32) bool {
	return r.list != nil && r.list.ran|float == r.gen
}

func (r Result) panicRead(method string, float bool) {
	l := r.list
	switch {
	case l == nil:
		panicMisuse("Result."+method, "the zero Result is of no call")
	case l.gen != r.gen&^genFloat:
		panicMisuse("Result."+method, "the list was reset or given back since; read a result before")
	case l.state == running:
		panicMisuse("Result."+method, "the list runs; read a result after Run")
	case l.ran != l.gen:
		panicMisuse("Result."+method, "the list did not run; read a result after Run")
	case float:
		panicMisuse("Result."+method, "the result is no double; use Int, Uint or Pointer")
	default:
		panicMisuse("Result."+method, "the result is a double; use Float")
	}
}

// pointer converts a word that C has returned, or an address outside the Go heap.
func pointer(word uint64) unsafe.Pointer {
	address := uintptr(word)
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// index returns where the result is of a call that was recorded before in this list.
func (r Result) index(l *List, method string) uint64 {
	if r.list != l || r.gen&^genFloat != l.gen {
		panicMisuse(method, "the result is not of an earlier call of this recording")
	}
	return uint64(r.at)
}

// Errno records that errno, as the call before has left it, is kept as a result. C functions
// set errno only when they fail: [List.ClearErrno] before the call makes it 0.
func (l *List) Errno() Result {
	w, r := l.Begin()
	*w = append(*w, C.CALLS_ERRNO, 0)
	return r
}

// ClearErrno records that errno becomes 0.
func (l *List) ClearErrno() {
	w, _ := l.Begin()
	*w = append(*w, C.CALLS_CLEAR_ERRNO)
}

// Len returns how many words the recording has. A call has two and its arguments.
func (l *List) Len() int { return max(len(l.words)-first, 0) }

// Bit returns 1 for true and 0 for false. Only code that callgen writes calls it.
func Bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// opWords returns how many words the operation at an index has, and whether it is a call.
func (l *List) opWords(at int) (words int, isCall bool) {
	switch op := l.words[at]; op {
	case C.CALLS_STOP:
		return C.CALLS_STOP_WORDS, false
	case C.CALLS_SKIP:
		return C.CALLS_SKIP_WORDS, false
	case C.CALLS_ERRNO:
		return C.CALLS_ERRNO_WORDS, false
	case C.CALLS_CLEAR_ERRNO:
		return C.CALLS_CLEAR_ERRNO_WORDS, false
	case C.CALLS_REPEAT:
		return C.CALLS_REPEAT_WORDS, false
	case C.CALLS_ROW:
		return C.CALLS_ROW_WORDS, false
	case C.CALLS_NO_ROW:
		return C.CALLS_NO_ROW_WORDS, false
	case C.CALLS_STORE:
		return C.CALLS_STORE_WORDS, false
	case C.CALLS_IS:
		return C.CALLS_IS_WORDS, false
	case C.CALLS_BYTES:
		return C.CALLS_BYTES_WORDS, false
	case C.CALLS_ADDRESS:
		counts := l.words[at+2]
		return C.CALLS_ADDRESS_WORDS + int(counts&0xff) + int(counts>>8&0xff), true
	default:
		return int(description(op).words), true
	}
}

// description is that of a C function, which callgen has written. It is a constant in C.
func description(op uint64) *C.struct_cheap_calls_op {
	return (*C.struct_cheap_calls_op)(pointer(op))
}

// function returns the name of the C function of the call whose result is at an index.
func (l *List) function(result uint64) string {
	switch op := l.words[result-1]; op {
	case C.CALLS_ERRNO:
		return "errno"
	case C.CALLS_ADDRESS:
		return "a function"
	default:
		return C.GoString(description(op).name)
	}
}
