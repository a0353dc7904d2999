//go:build cgo

package libc

/*
// The quiet functions are for destructors that do not call back into Go; see
// NoCallback. The others have no noescape and no nocallback: during a callback Go may
// move the stack, and with it an array that is there because it does not escape.
#cgo noescape cheap_libc_destroy_quiet
#cgo nocallback cheap_libc_destroy_quiet
#cgo noescape cheap_libc_destroy_with_quiet
#cgo nocallback cheap_libc_destroy_with_quiet
#cgo noescape cheap_libc_destroy_status_quiet
#cgo nocallback cheap_libc_destroy_status_quiet

#include <stddef.h>
#include <stdint.h>

// How many resources ahead is prefetched: most resources that the collector found were not
// touched for a while. A prefetch of a number that is no address does nothing.
enum { CHEAP_LIBC_AHEAD = 8 };

typedef void cheap_libc_destructor(void *resource);
typedef void cheap_libc_context_destructor(void *context, void *resource);
typedef int cheap_libc_status_destructor(void *resource);

// Functions and contexts are passed as numbers: cgo checks every pointer that is
// passed, which is useless for pointers to C memory.

static void cheap_libc_destroy_one(uintptr_t fn, uintptr_t resource) {
	((cheap_libc_destructor *)fn)((void *)resource);
}

static void cheap_libc_destroy(uintptr_t fn, const uintptr_t *resources, size_t n) {
	cheap_libc_destructor *destroy = (cheap_libc_destructor *)fn;
	for (size_t i = 0; i < n; i++) {
		if (i + CHEAP_LIBC_AHEAD < n) {
			__builtin_prefetch((const void *)resources[i + CHEAP_LIBC_AHEAD], 1);
		}
		destroy((void *)resources[i]);
	}
}

static void cheap_libc_destroy_with(uintptr_t fn, uintptr_t context, const uintptr_t *resources, size_t n) {
	cheap_libc_context_destructor *destroy = (cheap_libc_context_destructor *)fn;
	for (size_t i = 0; i < n; i++) {
		destroy((void *)context, (void *)resources[i]);
	}
}

// Which status is a failure.
enum { CHEAP_LIBC_NOT_ZERO, CHEAP_LIBC_NEGATIVE, CHEAP_LIBC_ZERO };

#define CHEAP_LIBC_FAILED ((uint64_t)1 << 32)

// cheap_libc_destroy_status returns the first status that is a failure, with the flag
// CHEAP_LIBC_FAILED, or 0.
static uint64_t cheap_libc_destroy_status(uintptr_t fn, int failure, const uintptr_t *resources, size_t n) {
	cheap_libc_status_destructor *destroy = (cheap_libc_status_destructor *)fn;
	uint64_t first = 0;
	for (size_t i = 0; i < n; i++) {
		int status = destroy((void *)resources[i]);
		int failed = failure == CHEAP_LIBC_NOT_ZERO ? status != 0 : failure == CHEAP_LIBC_NEGATIVE ? status < 0 : status == 0;
		if (failed && first == 0) {
			first = CHEAP_LIBC_FAILED | (uint32_t)status;
		}
	}
	return first;
}

static void cheap_libc_destroy_quiet(uintptr_t fn, const uintptr_t *resources, size_t n) {
	cheap_libc_destroy(fn, resources, n);
}

static void cheap_libc_destroy_with_quiet(uintptr_t fn, uintptr_t context, const uintptr_t *resources, size_t n) {
	cheap_libc_destroy_with(fn, context, resources, n);
}

static uint64_t cheap_libc_destroy_status_quiet(uintptr_t fn, int failure, const uintptr_t *resources, size_t n) {
	return cheap_libc_destroy_status(fn, failure, resources, n);
}
*/
import "C"

import "unsafe"

// An Option changes how a destructor is called.
type Option int

// NoCallback promises that the C function never calls into Go, neither directly nor
// through other functions. It makes no call faster. In a call for three resources or more the
// promise is checked, which takes 1 ns: if the C function calls into Go, the runtime panics.
const NoCallback Option = 1

// Which results are failures for [StatusDestructor]. Without one of these options each result
// other than 0 is a failure.
const (
	// NegativeFails says that a negative result is a failure. All others are successes, for
	// example a number of bytes.
	NegativeFails Option = 2

	// ZeroFails says that 0 is a failure, for example false. All others are successes.
	ZeroFails Option = 3
)

// Destructor returns a function that destroys resources by a C function. Each of its calls
// destroys all its resources in one cgo call. It suits Options.Release of package own. fn is the address of
// a C function
//
//	void fn(void *resource)
//
// such as free, which is called once for each resource, in their order. In Go the
// address of a C function that the cgo comment of the file declares is
//
//	unsafe.Pointer(C.free)
//
// The parameter may be a pointer of any type, and the result void, or an integer or a
// pointer, which is ignored: sqlite3_finalize and ZSTD_freeCCtx need no function around
// them. All C compilers for the systems of Go make such a call work, although the C standard
// leaves it undefined. No compiler checks the type of fn; cheapvet does, where it finds the
// declaration. A static or inline function, a macro, a function with other parameters, and one
// whose result is a structure or a floating-point number need a small C function around them,
// which the linker can see. For C++ see the package documentation.
//
// The C function may be called on any thread, and on several at once. It may call into
// Go, unless [NoCallback] is set. A panic there reaches the caller, and the resources
// that follow in the slice are not destroyed.
//
// The returned function ignores its state, and its error is nil. It allocates no Go
// memory. Destructor panics if fn is nil.
func Destructor(fn unsafe.Pointer, options ...Option) func(state any, resources []uintptr) error {
	f, noCallback := mustBeFunction("Destructor", fn), quiet(options)
	return func(_ any, resources []uintptr) error {
		array, n := arrayOf(resources)
		switch {
		case n == 0:
		case n == 1:
			C.cheap_libc_destroy_one(f, *array)
		case noCallback && n > fewResources:
			C.cheap_libc_destroy_quiet(f, array, n)
		default:
			C.cheap_libc_destroy(f, array, n)
		}
		return nil
	}
}

// ContextDestructor is [Destructor] for a C function
//
//	void fn(void *context, void *resource)
//
// whose context is the state, an unsafe.Pointer: Options.State of package own for all
// resources of a pool, or the state of the parent of some (Handle.SetState). The
// context is C memory, or pinned Go memory ([runtime.Pinner]). It must stay valid while
// resources are destroyed. The returned function panics if the state is of another
// type.
func ContextDestructor(fn unsafe.Pointer, options ...Option) func(state any, resources []uintptr) error {
	f, noCallback := mustBeFunction("ContextDestructor", fn), quiet(options)
	return func(state any, resources []uintptr) error {
		p, ok := state.(unsafe.Pointer)
		if !ok {
			panicMisuse("ContextDestructor", "the state is a %T, not an unsafe.Pointer; set Options.State, or call Handle.SetState for the parent", state)
		}
		context := C.uintptr_t(uintptr(p))
		array, n := arrayOf(resources)
		switch {
		case n == 0:
		case noCallback && n > fewResources:
			C.cheap_libc_destroy_with_quiet(f, context, array, n)
		default:
			C.cheap_libc_destroy_with(f, context, array, n)
		}
		return nil
	}
}

// StatusDestructor is [Destructor] for a C function
//
//	int fn(void *resource)
//
// such as fclose, whose result says whether it succeeded. The result must be an int: a wider
// result loses its upper bits, and a narrower one, such as a bool, has undefined bits; wrap
// such a function.
//
// A failure is a result other than 0, or what the option [NegativeFails] or [ZeroFails] says. If
// there is a failure, the returned function returns check of the first one; the other resources
// are destroyed as well. A function that returns "a number of bytes, or -1" needs NegativeFails:
// otherwise its first success is taken for the first failure.
//
// Package own counts a resource as released whatever the result is. A function that may leave
// its resource alive, such as sqlite3_close, needs a function around it that does not:
// examples/sqlite has one. StatusDestructor panics if check is nil.
func StatusDestructor(fn unsafe.Pointer, check func(status int) error, options ...Option) func(state any, resources []uintptr) error {
	failure := C.int(C.CHEAP_LIBC_NOT_ZERO)
	var others []Option
	for _, o := range options {
		switch {
		case o != NegativeFails && o != ZeroFails:
			others = append(others, o)
		case failure != C.CHEAP_LIBC_NOT_ZERO:
			panicMisuse("StatusDestructor", "NegativeFails and ZeroFails exclude each other; pass one of them, once")
		case o == NegativeFails:
			failure = C.CHEAP_LIBC_NEGATIVE
		default:
			failure = C.CHEAP_LIBC_ZERO
		}
	}
	f, noCallback := mustBeFunction("StatusDestructor", fn), quiet(others)
	if check == nil {
		panicMisuse("StatusDestructor", "check is nil; pass a function that returns the error of a status, or use Destructor")
	}
	return func(_ any, resources []uintptr) error {
		array, n := arrayOf(resources)
		status := C.uint64_t(0)
		switch {
		case n == 0:
		case noCallback && n > fewResources:
			status = C.cheap_libc_destroy_status_quiet(f, failure, array, n)
		default:
			status = C.cheap_libc_destroy_status(f, failure, array, n)
		}
		if status != 0 {
			return check(int(int32(status))) // the lower half
		}
		return nil
	}
}

// A call without callbacks takes 1 ns more, and only detects a broken promise. So it is made for
// more than fewResources.
const fewResources = 2

func quiet(options []Option) bool {
	for _, o := range options {
		if o != NoCallback {
			panicMisuse("Destructor", "%d is no Option of it; pass NoCallback or nothing", o)
		}
	}
	return len(options) > 0
}

// arrayOf returns the array of a slice. The array has no Go pointers, and C reads it
// during the call only.
func arrayOf(resources []uintptr) (*C.uintptr_t, C.size_t) {
	return (*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(resources))), C.size_t(len(resources))
}

func mustBeFunction(name string, fn unsafe.Pointer) C.uintptr_t {
	if fn == nil {
		panicMisuse(name, "the C function is nil; pass the address of one, such as unsafe.Pointer(C.free)")
	}
	return C.uintptr_t(uintptr(fn))
}
