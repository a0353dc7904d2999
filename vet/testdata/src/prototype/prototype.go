package prototype

/*
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum status { OK };
typedef struct other { int n; } other_t;
#include "thing.h"
void declared(void *first, void *second);
*/
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap/libc"
)

func check(int) error { return nil }

var (
	_ = libc.Destructor(unsafe.Pointer(C.thing_free))     // want `C.thing_free has 2 parameters, and libc.Destructor passes 1`
	_ = libc.Destructor(C.declared, libc.Option(1))       // want `C.declared has 2 parameters`
	_ = libc.Destructor(unsafe.Pointer(C.calloc))         // want `C.calloc has 2 parameters`
	_ = libc.Destructor(unsafe.Pointer(C.thing_next))     // want `C.thing_next has no parameter, and libc.Destructor passes 1`
	_ = libc.Destructor(unsafe.Pointer(C.thing_by_value)) // want `parameter 1 of C.thing_by_value is no pointer \(thing t\)`
	_ = libc.Destructor(unsafe.Pointer(C.thing_name))     // want `parameter 1 of C.thing_name is no pointer \(thing_id id\)`
	_ = libc.Destructor(unsafe.Pointer(C.thing_weight))   // want `the result of C.thing_weight is a structure or a floating-point number \(double\)`
	_ = libc.Destructor(unsafe.Pointer(C.thing_copy))     // want `the result of C.thing_copy is a structure or`

	_ = libc.StatusDestructor(unsafe.Pointer(C.thing_drop), check) // want `the result of C.thing_drop is no int \(.*void\)`
	_ = libc.StatusDestructor(unsafe.Pointer(C.thing_ok), check)   // want `the result of C.thing_ok is no int \(bool\)`
	_ = libc.StatusDestructor(unsafe.Pointer(C.thing_size), check) // want `the result of C.thing_size is no int \(unsigned long\)`
	_ = libc.StatusDestructor(unsafe.Pointer(C.pool_drop_if), nil) // want `C.pool_drop_if has 2 parameters`

	_ = libc.ContextDestructor(unsafe.Pointer(C.free))      // want `C.free has 1 parameter, and libc.ContextDestructor passes 2`
	_ = libc.ContextDestructor(unsafe.Pointer(C.pool_name)) // want `parameter 2 of C.pool_name is no pointer \(unsigned int name\)`

	_ = libc.Constructor(unsafe.Pointer(C.thing_open), nil) // want `the result of C.thing_open is no pointer \(int\)`
	_ = libc.Constructor(unsafe.Pointer(C.free), nil)       // want `the result of C.free is no pointer \(.*void\)`
	_ = libc.Constructor(unsafe.Pointer(C.thing_next), nil) // want `C.thing_next has no parameter`
	_ = libc.Constructor(unsafe.Pointer(C.alloca_of), nil)  // want `parameter 1 of C.alloca_of is no pointer \(size_t`
)

// These have the prototypes, or others that make no difference, or are not known.
var (
	_ = libc.Destructor(unsafe.Pointer(C.free))
	_ = libc.Destructor(unsafe.Pointer(C.thing_drop))
	_ = libc.Destructor(unsafe.Pointer(C.thing_close))
	_ = libc.Destructor(unsafe.Pointer(C.thing_size))
	_ = libc.Destructor(unsafe.Pointer(C.thing_status))
	_ = libc.Destructor(unsafe.Pointer(C.thing_number))
	_ = libc.Destructor(unsafe.Pointer(C.thing_unknown))
	_ = libc.Destructor(unsafe.Pointer(C.thing_old))
	_ = libc.Destructor(unsafe.Pointer(C.thing_either))
	_ = libc.StatusDestructor(unsafe.Pointer(C.thing_close), check, libc.NegativeFails)
	_ = libc.StatusDestructor(unsafe.Pointer(C.thing_status), check)
	_ = libc.ContextDestructor(unsafe.Pointer(C.pool_drop))
	_ = libc.ContextDestructor(unsafe.Pointer(C.pool_drop_if))
	_ = libc.Constructor(unsafe.Pointer(C.thing_new), C.thing_next())
	_ = libc.Constructor(unsafe.Pointer(C.thing_made), nil)
)

func pool(name string, destroy unsafe.Pointer) any { return libc.Destructor(destroy) }

func pools(destroy unsafe.Pointer) {
	pool("a", C.thing_drop)
	pool("b", C.thing_free) // want `C.thing_free has 2 parameters, and libc.Destructor passes 1`
	libc.Destructor(destroy)
}
