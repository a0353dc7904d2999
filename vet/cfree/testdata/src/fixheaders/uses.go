package fixheaders

// #include "look.h"
import "C"
import u "unsafe"

func uses(name string) {
	cs := C.CString(name)
	C.look(cs)
	C.free(u.Pointer(cs))
	C.look(C.CString(name)) // want `nothing has it`
}
