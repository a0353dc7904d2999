package recall

/*
#include <stdlib.h>
typedef struct lib lib;
int lib_exec(lib *l, char **argv, int n);
void lib_close(lib *l);
*/
import "C"

import (
	"fmt"
	"unsafe"
)

type DB struct{ h *C.lib }

func (d *DB) Close() { C.lib_close(d.h); d.h = nil }

func badArgvIn(d *DB, args []string) error {
	argv := make([]*C.char, 0, len(args)+1)
	for _, a := range args {
		if len(a) > 255 {
			return fmt.Errorf("too long: %q", a)
		}
		argv = append(argv, C.CString(a))
	}
	argv = append(argv, nil)
	C.lib_exec(d.h, (**C.char)(unsafe.Pointer(&argv[0])), C.int(len(args)))
	for i := 0; i < len(args); i++ {
		C.free(unsafe.Pointer(argv[i]))
	}
	return nil
}
func goodArgvIn(d *DB, args []string) error {
	argv := make([]*C.char, 0, len(args)+1)
	defer func() {
		for _, p := range argv {
			if p != nil {
				C.free(unsafe.Pointer(p))
			}
		}
	}()
	for _, a := range args {
		if len(a) > 255 {
			return fmt.Errorf("too long: %q", a)
		}
		argv = append(argv, C.CString(a))
	}
	C.lib_exec(d.h, &argv[0], C.int(len(args)))
	return nil
}
