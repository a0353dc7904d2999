//go:build cgo

package main

// static void write_byte(char *p) { p[8] = 7; }
import "C"

import "unsafe"

func init() { writeInC = func(p unsafe.Pointer) { C.write_byte((*C.char)(p)) } }
