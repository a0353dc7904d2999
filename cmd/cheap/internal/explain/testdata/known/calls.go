package main

/*
#include <stdlib.h>
#include <string.h>

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
	for name, count := range map[string]int{"callback-10": 10, "callback-10000": 10_000} {
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
	for name, run := range map[string]func(n int){"cstring": texts, "malloc": blocks} {
		scenes[name] = scene{run, func() map[string]float64 {
			ns := timed(run, func(n int) { C.pairs(C.long(n), 21) })
			return map[string]float64{
				"c":       ns[1] / ns[0],
				"strings": 1,
			}
		}}
	}
	scenes["go"] = scene{func(int) { phases[0].run() }, func() map[string]float64 {
		return map[string]float64{"c": 0, "crossing": 0, "callback": 0, "strings": 0}
	}}
	// strlen is in the library of C.
	scenes["library"] = scene{lengths, func() map[string]float64 {
		ns := timed(lengths, noops)
		return map[string]float64{"c": 1 - ns[1]/ns[0], "crossing": ns[1] / ns[0]}
	}}
	scenes["checks"] = scene{checked, func() map[string]float64 {
		ns := timed(checked, unchecked, results, results33, goLoop)
		c := ofNothing(ns[3], ns[2])
		return map[string]float64{"c": c / ns[0], "crossing": (ns[0] - c - ns[4]) / ns[0], "checks": (ns[0] - ns[1]) / ns[0]}
	}}
	scenes["getters"] = scene{getters, func() map[string]float64 {
		ns := timed(getters, results, results33, goLoop)
		c := 2 * ofNothing(ns[2], ns[1])
		return map[string]float64{"c": c / ns[0], "crossing": (ns[0] - c - ns[3]) / ns[0]}
	}}
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
	"spin-200":        {spins200, "noop"},
	"spin-here-200":   {spinHere, "noop"},
	"spin-struct-200": {spinStructs, "struct"},
}

func spins200(n int) {
	for range n {
		C.spin(200)
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

func texts(n int) {
	for range n {
		p := C.CString("a text of 20 letters")
		C.free(unsafe.Pointer(p))
	}
}

func blocks(n int) {
	for range n {
		p := C.malloc(21)
		*(*byte)(p) = 1
		C.free(p)
	}
}

// text is long enough for C to take most of a call.
var text = C.CString(strings.Repeat("x", 16<<10))

func lengths(n int) {
	for range n {
		called += int(C.strlen(text))
	}
}

func getters(n int) {
	for range n {
		called += int(C.first(&numbers) + C.last(&numbers))
	}
}

// a record has a pointer, so cgo checks what the argument points to.
var record C.struct_record

func checked(n int) {
	for range n {
		called += int(C.of_record(&record))
	}
}

func unchecked(n int) {
	for range n {
		called += int(C.of_address(C.uintptr_t(uintptr(unsafe.Pointer(&record)))))
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
