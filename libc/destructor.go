//go:build cgo

package libc

/*
// The quiet functions are for destructors of which the pool has promised that
// they do not call back into Go. The others have no noescape and no nocallback:
// during a callback Go may move the stack, and with it an array that is there
// because it does not escape.
#cgo noescape cheap_libc_destroy_quiet
#cgo nocallback cheap_libc_destroy_quiet
#cgo noescape cheap_libc_destroy_with_quiet
#cgo nocallback cheap_libc_destroy_with_quiet
#cgo noescape cheap_libc_destroy_pairs_quiet
#cgo nocallback cheap_libc_destroy_pairs_quiet

#include <stddef.h>
#include <stdint.h>

typedef void cheap_libc_destructor(void *resource);
typedef void cheap_libc_context_destructor(void *context, void *resource);

// Functions and contexts are passed as numbers: cgo checks every pointer that is
// passed, which is useless for pointers to C memory.

static void cheap_libc_destroy_one(uintptr_t fn, uintptr_t resource) {
	((cheap_libc_destructor *)fn)((void *)resource);
}

static void cheap_libc_destroy(uintptr_t fn, const uintptr_t *resources, size_t n) {
	cheap_libc_destructor *destroy = (cheap_libc_destructor *)fn;
	for (size_t i = 0; i < n; i++) {
		destroy((void *)resources[i]);
	}
}

static void cheap_libc_destroy_with(uintptr_t fn, uintptr_t context, const uintptr_t *resources, size_t n) {
	cheap_libc_context_destructor *destroy = (cheap_libc_context_destructor *)fn;
	for (size_t i = 0; i < n; i++) {
		destroy((void *)context, (void *)resources[i]);
	}
}

static void cheap_libc_destroy_pairs(uintptr_t fn, const uintptr_t *words, size_t n) {
	cheap_libc_context_destructor *destroy = (cheap_libc_context_destructor *)fn;
	for (size_t i = 0; i < n; i += 2) {
		destroy((void *)words[i + 1], (void *)words[i]);
	}
}

static void cheap_libc_destroy_quiet(uintptr_t fn, const uintptr_t *resources, size_t n) {
	cheap_libc_destroy(fn, resources, n);
}

static void cheap_libc_destroy_with_quiet(uintptr_t fn, uintptr_t context, const uintptr_t *resources, size_t n) {
	cheap_libc_destroy_with(fn, context, resources, n);
}

static void cheap_libc_destroy_pairs_quiet(uintptr_t fn, const uintptr_t *words, size_t n) {
	cheap_libc_destroy_pairs(fn, words, n);
}
*/
import "C"

import "unsafe"

// A Releaser calls a C function that destroys resources, for a whole batch of
// them in one cgo call. It suits Options.Destructor of package own. It is made by
// [Destructor], [DestructorWith] or [ContextDestructor]. Using a nil or zero
// Releaser panics.
//
// A Releaser may be used from any goroutine, and by several goroutines at once if
// the C function allows that.
type Releaser struct {
	words   int     // of a resource; 0 in the zero value
	fn      uintptr // C code
	context uintptr // for withContext
	kind    releaserKind
}

// A releaserKind is the kind of the C function's parameters.
type releaserKind uint8

const (
	alone       releaserKind = iota // fn(resource)
	withContext                     // fn(context of the Releaser, resource)
	inPairs                         // fn(context of the resource, resource)
)

// Destructor returns a Releaser of resources of one word. fn is the address of a C
// function
//
//	void fn(void *resource)
//
// such as free, which is called once for each resource. In Go the address of a C
// function that the cgo comment of the file declares is
//
//	unsafe.Pointer(C.free)
//
// A function that is static, inline or a macro, or has parameters that are not
// pointers, needs a small C function around it that the linker can see.
//
// The C function may be called on any thread. It may call into Go, unless
// [Releaser.ReleaseAll] is told that it does not. Destructor panics if fn is nil.
func Destructor(fn unsafe.Pointer) *Releaser {
	return newReleaser("Destructor", fn, nil, alone)
}

// DestructorWith is [Destructor] for a C function
//
//	void fn(void *context, void *resource)
//
// with one context for all resources. The context is C memory, or pinned Go
// memory ([runtime.Pinner]). It must stay valid while resources are destroyed; the
// Releaser does not keep it alive.
func DestructorWith(fn, context unsafe.Pointer) *Releaser {
	return newReleaser("DestructorWith", fn, context, withContext)
}

// ContextDestructor is [Destructor] for a C function
//
//	void fn(void *context, void *resource)
//
// and resources of two words: the resource, and a context of its own.
func ContextDestructor(fn unsafe.Pointer) *Releaser {
	return newReleaser("ContextDestructor", fn, nil, inPairs)
}

func newReleaser(name string, fn, context unsafe.Pointer, kind releaserKind) *Releaser {
	if fn == nil {
		panicMisuse(name, "the C function is nil; pass the address of one, such as unsafe.Pointer(C.free)")
	}
	r := &Releaser{words: 1, fn: uintptr(fn), context: uintptr(context), kind: kind}
	if kind == inPairs {
		r.words = 2
	}
	return r
}

// ReleaseAll destroys resources, in their order, in one cgo call. It allocates no
// Go memory, and neither changes nor keeps the slice.
//
// words is the number of elements per resource: 2 for a Releaser made by
// [ContextDestructor], where the slice has resource, context, resource, context,
// and so on, and 1 for all others. ReleaseAll panics if words is wrong, or a
// context is missing, before it destroys anything. It does so also for an empty
// slice, by which a pool finds out whether words is right.
//
// If noCallback is set, the caller promises that the C function never calls into
// Go, neither directly nor through other functions. If it does so anyway, the
// program may end. If noCallback is not set, the C function may call into Go. A
// panic there reaches the caller of ReleaseAll, and the remaining resources are
// not destroyed.
func (r *Releaser) ReleaseAll(resources []uintptr, words int, noCallback bool) {
	if r == nil || words != r.words || words == 0 || words == 2 && len(resources)%2 != 0 {
		r.panicWrongWords(len(resources), words)
	}
	if len(resources) == 0 {
		return
	}
	if len(resources) == 1 && r.kind == alone {
		C.cheap_libc_destroy_one(C.uintptr_t(r.fn), C.uintptr_t(resources[0]))
		return
	}
	// To turn callbacks off and on takes 4 ns, as much as to destroy one more
	// resource, and only detects a broken promise. For a batch that is negligible.
	noCallback = noCallback && len(resources) > 2
	fn, context := C.uintptr_t(r.fn), C.uintptr_t(r.context)
	// The array has no Go pointers, and C reads it during the call only.
	array, n := (*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(resources))), C.size_t(len(resources))
	switch {
	case r.kind == alone && noCallback:
		C.cheap_libc_destroy_quiet(fn, array, n)
	case r.kind == alone:
		C.cheap_libc_destroy(fn, array, n)
	case r.kind == withContext && noCallback:
		C.cheap_libc_destroy_with_quiet(fn, context, array, n)
	case r.kind == withContext:
		C.cheap_libc_destroy_with(fn, context, array, n)
	case noCallback:
		C.cheap_libc_destroy_pairs_quiet(fn, array, n)
	default:
		C.cheap_libc_destroy_pairs(fn, array, n)
	}
}

// panicWrongWords panics with the reason why a slice of n words cannot be destroyed.
func (r *Releaser) panicWrongWords(n, words int) {
	const method = "Releaser.ReleaseAll"
	switch {
	case r == nil || r.words == 0:
		panicMisuse(method, "the Releaser is nil or the zero value; make one with Destructor")
	case words == r.words:
		panicMisuse(method, "%d words are no pairs; pass a context for each resource", n)
	case r.words == 2:
		panicMisuse(method, "resources have %d words, and the C function needs 2; for resources without a context use Destructor or DestructorWith", words)
	default:
		panicMisuse(method, "resources have %d words, and the C function needs 1; for resources with a context each use ContextDestructor", words)
	}
}
