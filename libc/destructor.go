//go:build cgo

package libc

/*
// The quiet functions are for destructors that, as their pool has promised, do
// not call back into Go. The others make no promise at all: during a callback
// Go may move the stack, and with it an array that was let live there because
// it does not escape.
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

// Functions and contexts come as numbers: cgo looks at every pointer that is
// passed, and in vain at those of C.

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
// them in one cgo call. It is made by [Destructor], [DestructorWith] or
// [ContextDestructor], and is what Options.Destructor of package own asks for.
//
// A Releaser may be used from any goroutine, by several at once if the C
// function allows it. The zero value, and nil, destroy nothing, and panic when
// they are told to.
type Releaser struct {
	words   int     // of a resource; 0 in the zero value
	fn      uintptr // C code
	context uintptr // for withContext
	kind    releaserKind
}

// A releaserKind says what the C function wants to be given.
type releaserKind uint8

const (
	alone       releaserKind = iota // fn(resource)
	withContext                     // fn(context of the Releaser, resource)
	inPairs                         // fn(context of the resource, resource)
)

// Destructor returns a Releaser of resources of one word, which it destroys by
// calling fn, the address of a C function
//
//	void fn(void *resource)
//
// such as free. In Go the address of a C function is
//
//	unsafe.Pointer(C.free)
//
// for a function that a file's cgo comment declares; one that is static, inline
// or a macro, or takes other types than pointers, wants a small function around
// it in C that the linker can see. A nil fn panics.
//
// The function may be called on any thread, and may call back into Go unless
// the one who calls [Releaser.ReleaseAll] says that it does not.
func Destructor(fn unsafe.Pointer) *Releaser {
	return newReleaser("Destructor", fn, nil, alone)
}

// DestructorWith is [Destructor] for a C function
//
//	void fn(void *context, void *resource)
//
// and one context that is the same for all resources. The context is memory of
// C, or pinned memory of Go ([runtime.Pinner]), and must stay valid for as long
// as resources are destroyed: the Releaser does not keep it alive.
func DestructorWith(fn, context unsafe.Pointer) *Releaser {
	return newReleaser("DestructorWith", fn, context, withContext)
}

// ContextDestructor is [Destructor] for resources of two words, the resource
// and a context of its own, and a C function
//
//	void fn(void *context, void *resource)
func ContextDestructor(fn unsafe.Pointer) *Releaser {
	return newReleaser("ContextDestructor", fn, nil, inPairs)
}

func newReleaser(name string, fn, context unsafe.Pointer, kind releaserKind) *Releaser {
	if fn == nil {
		misuse(name, "the C function is nil; pass the address of one, such as unsafe.Pointer(C.free)")
	}
	r := &Releaser{words: 1, fn: uintptr(fn), context: uintptr(context), kind: kind}
	if kind == inPairs {
		r.words = 2
	}
	return r
}

// ReleaseAll destroys resources, in their order, in one cgo call. It allocates
// nothing in Go, and does not change or keep the slice.
//
// With words 1 each element is a resource. With words 2 the elements are
// resource, context, resource, context, and so on; that is what the Releaser
// of a [ContextDestructor] takes, and no other. Words of the wrong number, and
// half a pair, panic before anything is destroyed; so they do with no resources,
// which is how a pool asks whether the words fit.
//
// With noCallback set, the caller promises that the C function calls no Go
// function, directly or through others; the program may die if it does. Without,
// the C function may, and a panic that comes out of Go reaches the caller of
// ReleaseAll, with the rest of the resources not destroyed.
func (r *Releaser) ReleaseAll(resources []uintptr, words int, noCallback bool) {
	if r == nil || words != r.words || words == 0 || words == 2 && len(resources)%2 != 0 {
		r.refuse(len(resources), words)
	}
	if len(resources) == 0 {
		return
	}
	if len(resources) == 1 && r.kind == alone {
		C.cheap_libc_destroy_one(C.uintptr_t(r.fn), C.uintptr_t(resources[0]))
		return
	}
	// To turn callbacks off and on again takes 4 ns, for nothing but to notice
	// a broken promise: as much as to destroy one more. A batch does not feel it.
	noCallback = noCallback && len(resources) > 2
	fn, context := C.uintptr_t(r.fn), C.uintptr_t(r.context)
	// The array holds no Go pointers, and C reads it during the call only.
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

// refuse panics with the reason why n words of resources cannot be destroyed.
func (r *Releaser) refuse(n, words int) {
	const method = "Releaser.ReleaseAll"
	switch {
	case r == nil || r.words == 0:
		misuse(method, "the Releaser is nil or the zero value; make one with Destructor")
	case words == r.words:
		misuse(method, "%d words are no pairs of a resource and its context", n)
	case r.words == 2:
		misuse(method, "resources of %d words, where each is to come with a context, in 2; for resources alone use Destructor or DestructorWith", words)
	default:
		misuse(method, "resources of %d words, where the C function takes one; for resources with a context each use ContextDestructor", words)
	}
}
