package fixheaders

// #define _GNU_SOURCE
// int look(const char *s);
import "C"

func lines(name string) {
	C.look(C.CString(name)) // want `nothing has it`
	C.look(C.CString(name)) // want `nothing has it`
}
