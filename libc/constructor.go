//go:build cgo

package libc

/*
#include <stddef.h>
#include <stdint.h>

typedef void *cheap_libc_constructor(void *context);

// cheap_libc_construct fills resources up to the first NULL, and returns how
// many there are. It may call back into Go, so nothing is promised of it; see
// cheap_libc_destroy.
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

// ErrConstruct says that a C constructor returned NULL. Whether memory was out
// or something else went wrong, the C library in question may be able to tell.
var ErrConstruct = errors.New("cheap: libc.Constructor: the C function returned NULL")

// Constructor returns a function that makes resources in advance, many in one
// cgo call, by calling fn, the address of a C function
//
//	void *fn(void *context)
//
// ([Destructor] tells how to get it) with the given context. It is what
// Options.Construct of package own asks for where resources have one word. A nil
// fn panics.
//
// What is returned fills resources from the front and says how many there are:
// all, and no error, or those before the first for which fn returned NULL, and
// [ErrConstruct]. The rest of the slice is left as it was. It allocates nothing
// in Go, and may be used from any goroutine, by several at once if the C
// function allows it. The C function may call back into Go; a panic that comes
// out of there loses what has been made in that call.
//
// The context must stay valid for as long as resources are made, as that of
// [DestructorWith].
func Constructor(fn, context unsafe.Pointer) func(resources []uintptr) (n int, err error) {
	if fn == nil {
		misuse("Constructor", "the C function is nil; pass the address of one, such as unsafe.Pointer(C.new_image)")
	}
	f, c := C.uintptr_t(uintptr(fn)), C.uintptr_t(uintptr(context))
	return func(resources []uintptr) (n int, err error) {
		if len(resources) == 0 {
			return 0, nil
		}
		// C writes addresses of its own, which are no Go pointers, and during
		// the call only.
		array := (*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(resources)))
		n = int(C.cheap_libc_construct(f, c, array, C.size_t(len(resources))))
		if n < len(resources) {
			return n, ErrConstruct
		}
		return n, nil
	}
}
