package callbackforever

/*
#include <stdint.h>

void call(uintptr_t data);
*/
import "C"

import "runtime/cgo"

func forever(f func()) {
	C.call(C.uintptr_t(cgo.NewHandle(f))) // want `nothing in the package deletes a cgo.Handle`
	h := cgo.NewHandle(f)                 // want `nothing in the package deletes`
	C.call(C.uintptr_t(h))
}

// New gives the handle to its caller.
func New(f func()) cgo.Handle { return cgo.NewHandle(f) } // want New:`keeps .0.`
