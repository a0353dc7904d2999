//go:build cgo && unix

package cside

/*
#include <stdlib.h>

#include "text.h"
*/
import "C"

import (
	"strings"
	"unsafe"
)

// Text returns a text of n bytes, at least 2, for Take.
func Text(n int) string {
	return string(rune(C.cside_text_first)) + strings.Repeat("-", n-2) + string(rune(C.cside_text_last))
}

// Take passes a text to C, which counts it if it is intact. One goroutine at a
// time may call it.
func Take(text unsafe.Pointer, n int) { C.cside_take((*C.char)(text), C.size_t(n)) }

// TakeCString is Take of a copy that C.CString makes and C.free frees.
func TakeCString(s string) {
	text := C.CString(s)
	C.cside_take(text, C.size_t(len(s)))
	C.free(unsafe.Pointer(text))
}

// Taken returns how many texts C has counted.
func Taken() uint64 { return uint64(C.cside_taken()) }
