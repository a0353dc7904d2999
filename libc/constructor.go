//go:build cgo

package libc

/*
#include <stddef.h>
#include <stdint.h>

typedef void *cheap_libc_constructor(void *context);

// cheap_libc_construct fills resources up to the first NULL, and returns the
// number of resources. It may call back into Go, so it has no noescape and no
// nocallback; see cheap_libc_destroy.
static size_t cheap_libc_construct(uintptr_t fn, uintptr_t context, uintptr_t *resources, size_t n) {
	cheap_libc_constructor *construct = (cheap_libc_constructor *)fn;
	for (size_t i = 0; i < n; i++) {
		void *resource = construct((void *)context);
		if (resource == NULL) {
			return i;
		}
		resources[i] = (uintptr_t)resource;
	}
	return n;
}
*/
import "C"

import (
	"errors"
	"unsafe"
)

// ErrConstruct is returned if a C constructor returned NULL. Only the C library
// itself may know the reason.
var ErrConstruct = errors.New("cheap: libc.Constructor: the C function returned NULL")

// Constructor returns a function that makes many resources in one cgo call. The
// function suits Options.Construct of package own. fn is the address of a C function
//
//	void *fn(void *context)
//
// which is called once for each resource; see [Destructor] for how to get the
// address. context is C memory, or pinned Go memory, and must stay valid while
// resources are made. Constructor panics if fn is nil.
//
// The returned function fills resources from the front, and returns the number of
// resources that it made. If fn returns NULL, it stops with [ErrConstruct], and
// does not change the rest of the slice. It allocates no Go memory. It may be
// called from any goroutine, and by several goroutines at once if the C function
// allows that. The C function may call into Go. After a panic there, the
// resources made in the same call leak.
func Constructor(fn, context unsafe.Pointer) func(resources []uintptr) (n int, err error) {
	if fn == nil {
		panicMisuse("Constructor", "the C function is nil; pass the address of one, such as unsafe.Pointer(C.new_image)")
	}
	f, c := C.uintptr_t(uintptr(fn)), C.uintptr_t(uintptr(context))
	return func(resources []uintptr) (n int, err error) {
		if len(resources) == 0 {
			return 0, nil
		}
		// C writes to the array during the call only, and writes addresses of C
		// memory, not Go pointers.
		array := (*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(resources)))
		n = int(C.cheap_libc_construct(f, c, array, C.size_t(len(resources))))
		if n < len(resources) {
			return n, ErrConstruct
		}
		return n, nil
	}
}
