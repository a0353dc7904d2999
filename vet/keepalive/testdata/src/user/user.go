package user

// static int look(const void *s) { return s != 0; }
import "C"

import (
	"runtime"

	"lib"
)

type Widget struct{ *lib.Object }

func (w *Widget) Look() int {
	return int(C.look(w.Native())) // want `w may be collected while C.look`
}

func (w *Widget) LookKept() int {
	n := C.look(w.Native())
	runtime.KeepAlive(w)
	return int(n)
}

func look(o *lib.Object) int {
	return int(C.look(o.Native())) // want `o may be collected while C.look`
}
