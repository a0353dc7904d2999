package main

/*
#include <stdlib.h>

#include "work.h"
*/
import "C"

import (
	"strings"
	"unsafe"
)

//export goNothing
func goNothing() { called++ }

var called int

func init() {
	scenes["noop"] = scene{noops, func() map[string]float64 {
		ns := timed(noops, noops33, goLoop)
		c := ofNothing(ns[1], ns[0])
		return map[string]float64{"c": c / ns[0], "crossing": (ns[0] - c - ns[2]) / ns[0]}
	}}
	for name, count := range map[string]int{"spin-200": 200, "spin-2000": 2000} {
		spins := func(n int) {
			for range n {
				C.spin(C.long(count))
			}
		}
		scenes[name] = scene{spins, func() map[string]float64 {
			ns := timed(spins, noops, noops33)
			crossing := (ns[1] - ofNothing(ns[2], ns[1])) / ns[0]
			return map[string]float64{"c": 1 - crossing, "crossing": crossing}
		}}
	}
	for name, count := range map[string]int{"callback": 1, "callback-10": 10} {
		calls := func(n int) {
			for range n {
				C.call_go(C.long(count))
			}
		}
		callsC := func(n int) {
			for range n {
				C.call_c(C.long(count))
			}
		}
		scenes[name] = scene{calls, func() map[string]float64 {
			ns := timed(calls, callsC, noops, noops33, goLoop)
			c := float64(count) * ofNothing(ns[3], ns[2]) // the body of the C function
			return map[string]float64{
				"c":        c / ns[0],
				"callback": (ns[0] - ns[1] - float64(count)*ns[4]) / ns[0],
				"crossing": (ns[1] - c) / ns[0],
			}
		}}
	}
	for name, size := range map[string]int{"cstring": 20, "cstring-4096": 4096} {
		text := strings.Repeat("x", size)
		strings := func(n int) {
			for range n {
				p := C.CString(text)
				C.free(unsafe.Pointer(p))
			}
		}
		inC := func(n int) { C.pairs(C.long(n), C.long(size+1)) }
		scenes[name] = scene{strings, func() map[string]float64 {
			ns := timed(strings, inC)
			return map[string]float64{
				"c":       ns[1] / ns[0],
				"strings": 1,
			}
		}}
	}
}

func noops(n int) {
	for range n {
		C.noop()
	}
}

func noops33(n int) {
	for range n {
		C.noop_33()
	}
}

// ofNothing returns the time of a function of C that does nothing, of the times of noop_33 and
// of noop: 32 of them are the difference.
func ofNothing(noop33, noop float64) float64 { return (noop33 - noop) / 32 }

func goLoop(n int) {
	for range n {
		called++
	}
}
