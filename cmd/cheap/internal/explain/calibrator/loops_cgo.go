//go:build cgo

package calibrator

/*
#include "interrupts.h"
#include "loops.h"
*/
import "C"

//export calibratorGoNothing
func calibratorGoNothing() {}

// loops are what is measured: n calls of C of each kind, with the same n calls in C, and n callbacks.
func loops() (kinds []loop, callbacks func(n int), err error) {
	kinds = []loop{
		{calls: func(n int) {
			for range n {
				C.calibrator_nothing()
			}
		}, inC: func(n int) { C.calibrator_nothings(C.long(n)) }},
		{calls: func(n int) {
			last := C.int(1)
			for range n {
				last = C.calibrator_number(last)
			}
		}, inC: func(n int) { C.calibrator_numbers(C.long(n)) }},
		{calls: func(n int) {
			var last C.struct_calibrator_node
			for range n {
				last = C.calibrator_node(last)
			}
		}, inC: func(n int) { C.calibrator_nodes(C.long(n)) }},
	}
	return kinds, func(n int) { C.calibrator_back(C.long(n)) }, nil
}

// interrupt has the calling thread interrupted more often than the profiler does, until the
// function that it returns is called. The caller is locked to the thread.
func interrupt(hertz int) (end func()) {
	C.calibrator_interrupt(C.long(hertz))
	return func() { C.calibrator_end() }
}
