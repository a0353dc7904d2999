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
	for name, k := range kinds {
		scenes[name] = scene{k.one, func() map[string]float64 {
			ns := timed(k.one, k.more, goLoop)
			c := ofNothing(ns[1], ns[0])
			return map[string]float64{"c": c / ns[0], "crossing": (ns[0] - c - ns[2]) / ns[0]}
		}}
	}
	for name, s := range spins {
		scenes[name] = scene{s.run, func() map[string]float64 {
			ns := timed(s.run, kinds[s.kind].one, kinds[s.kind].more)
			crossing := (ns[1] - ofNothing(ns[2], ns[1])) / ns[0]
			return map[string]float64{"c": 1 - crossing, "crossing": crossing}
		}}
	}
	for name, count := range map[string]int{"callback": 1, "callback-10": 10, "callback-10000": 10_000} {
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

// A kind of function: one call of it, and one of what does 32 calls more.
type kind struct{ one, more func(n int) }

var kinds = map[string]kind{
	"noop":   {noops, noops33},
	"result": {results, results33},
	"struct": {structs, structs33},
}

// spins call a function of a kind that counts.
var spins = map[string]struct {
	run  func(n int)
	kind string
}{
	"spin-200":        {spin(200), "noop"},
	"spin-2000":       {spin(2000), "noop"},
	"spin-here-200":   {spinHere, "noop"},
	"spin-result-200": {spinResults, "result"},
	"spin-struct-200": {spinStructs, "struct"},
}

func spin(count int) func(n int) {
	return func(n int) {
		for range n {
			C.spin(C.long(count))
		}
	}
}

func spinHere(n int) {
	for range n {
		C.spin_here(200)
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

func results(n int) {
	for range n {
		called += int(C.next(1))
	}
}

func results33(n int) {
	for range n {
		called += int(C.next_33(1))
	}
}

func spinResults(n int) {
	for range n {
		called += int(C.spin_next(200))
	}
}

var numbers = C.struct_numbers{of: [6]C.long{200}}

func structs(n int) {
	for range n {
		numbers = C.same(numbers)
	}
}

func structs33(n int) {
	for range n {
		numbers = C.same_33(numbers)
	}
}

func spinStructs(n int) {
	for range n {
		numbers = C.spin_same(numbers)
	}
}

// ofNothing returns the time of a function of C that does nothing, of the times of 33 of them in one
// call, and of one.
func ofNothing(more, one float64) float64 { return (more - one) / 32 }

func goLoop(n int) {
	for range n {
		called++
	}
}
