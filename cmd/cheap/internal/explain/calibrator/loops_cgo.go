//go:build cgo

package calibrator

/*
#include "interrupts.h"
#include "loops.h"
*/
import "C"

//export calibratorGoNothing
func calibratorGoNothing() {}

// loops are what is measured: n calls of C, n callbacks, and n calls in C.
func loops() (calls, callbacks, inC func(n int), err error) {
	calls = func(n int) {
		for range n {
			C.calibrator_nothing()
		}
	}
	callbacks = func(n int) { C.calibrator_back(C.long(n)) }
	inC = func(n int) { C.calibrator_nothings(C.long(n)) }
	return calls, callbacks, inC, nil
}

// interrupt has the calling thread interrupted more often than the profiler does, until the
// function that it returns is called. The caller is locked to the thread.
func interrupt(hertz int) (end func()) {
	C.calibrator_interrupt(C.long(hertz))
	return func() { C.calibrator_end() }
}
