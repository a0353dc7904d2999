package fixheaders

/*
#define _GNU_SOURCE
int look(const char *s); */
import "C"

import "unsafe"

var _ unsafe.Pointer

func block(name string) {
	C.look(C.CString(name)) // want `nothing has it`
}
