//go:build cgo

package ctest

/*
#include <stdlib.h>
#include "mock.h"
*/
import "C"

import "unsafe"

//go:generate go run github.com/cheapgo/cheap/calls/callgen -include mock.h -strip ctest_ -o lists.go ctest_add ctest_mix ctest_mul ctest_scale ctest_note ctest_self ctest_new ctest_free ctest_char ctest_byte ctest_short ctest_ushort ctest_uint ctest_not ctest_float ctest_darker ctest_length ctest_sum ctest_fill ctest_fail ctest_callback ctest_next ctest_integer ctest_real ctest_text ctest_bytes

// A Machine counts and mixes calls.
type Machine = *C.ctest_machine

// NewMachine returns a machine in C memory, for FreeMachine.
func NewMachine() Machine {
	m := (Machine)(C.calloc(1, C.sizeof_ctest_machine))
	return m
}

// FreeMachine frees a machine.
func FreeMachine(m Machine) { C.free(unsafe.Pointer(m)) }

// State returns the state of a machine, and how many calls it had.
func State(m Machine) (state uint64, calls int64) { return uint64(m.state), int64(m.calls) }

// Add, Mix, Mul, Scale, Note and Self are the functions by plain cgo calls.
func Add(a, b int32) int32 { return int32(C.ctest_add(C.int(a), C.int(b))) }

// Mix is one of them.
func Mix(a, b, c, d int32, e, f, g, h float64) float64 {
	return float64(C.ctest_mix(C.int(a), C.int(b), C.int(c), C.int(d), C.double(e), C.double(f), C.double(g), C.double(h)))
}

// Mul is one of them.
func Mul(m Machine, x, y int64) int64 {
	return int64(C.ctest_mul(m, C.int64_t(x), C.int64_t(y)))
}

// Scale is one of them.
func Scale(m Machine, x float64, y int32) float64 {
	return float64(C.ctest_scale(m, C.double(x), C.int(y)))
}

// Note is one of them.
func Note(m Machine, x uint32) { C.ctest_note(m, C.uint32_t(x)) }

// Self is one of them.
func Self(m Machine) Machine { return C.ctest_self(m) }

// Addresses of functions, for calls by address.
var (
	AddressOfAdd  = unsafe.Pointer(C.ctest_add)
	AddressOfMix  = unsafe.Pointer(C.ctest_mix)
	AddressOfMul  = unsafe.Pointer(C.ctest_mul)
	AddressOfUint = unsafe.Pointer(C.ctest_uint)
)

// A Cursor goes over rows.
type Cursor = *C.ctest_cursor

// NewCursor returns a cursor over n rows, for [FreeCursor].
func NewCursor(n int) Cursor {
	c := (Cursor)(C.calloc(1, C.sizeof_ctest_cursor))
	c.rows = C.int64_t(n)
	return c
}

// FreeCursor frees a cursor.
func FreeCursor(c Cursor) { C.free(unsafe.Pointer(c)) }

// Row is what ctest_next is at.
type Row struct {
	Integer int64
	Real    float64
	Text    string
	Null    bool
}

// Next returns the next row, by plain cgo calls.
func Next(c Cursor) (row Row, ok bool) {
	if C.ctest_next(c) != C.CTEST_ROW {
		return row, false
	}
	row.Integer, row.Real = int64(C.ctest_integer(c)), float64(C.ctest_real(c))
	text := C.ctest_text(c)
	row.Null = text == nil
	if text != nil {
		row.Text = C.GoStringN((*C.char)(unsafe.Pointer(text)), C.ctest_bytes(c))
	}
	return row, true
}

// Pointer converts the address of a machine.
func Pointer(m Machine) unsafe.Pointer { return unsafe.Pointer(m) }
