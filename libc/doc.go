// Package libc gives package own the C functions that destroy and make resources, many of
// them in one cgo call, and gives Go the malloc of the C library. A binding of a C library
// needs it; a program that only needs memory takes a [github.com/cheapgo/cheap.Heap].
//
//	// void image_free(void *image);
//	import "C"
//
//	var images = own.NewPool(own.Options{
//		Name: "Image", CHeap: true,
//		Release: libc.Destructor(unsafe.Pointer(C.image_free)),
//	})
//
//	p := libc.Allocator{}.Malloc(100) // C code may pass it to free
//
// # What it has
//
//   - [Allocator] is the malloc and free of the C library as a
//     [github.com/cheapgo/cheap.Allocator]. It is for memory that C code passes
//     to free, or that C code has allocated and Go must free. Every call is a cgo
//     call, which costs several times what malloc does. For all other memory a
//     [github.com/cheapgo/cheap.Heap] is cheaper.
//   - [Destructor], [ContextDestructor] and [StatusDestructor] return a function that
//     destroys resources by a C function, many of them in one cgo call. It is
//     Options.Release of package own.
//   - [Constructor] returns a function that calls a C function that makes
//     resources, many of them in one cgo call. It is Options.Construct of package
//     own.
//   - For libraries of C++, github.com/cheapgo/cheap/libc/cxx writes a header whose
//     templates destroy an object, a unique_ptr or a shared_ptr of any class, as the C
//     function of [Destructor].
//
// # Without cgo
//
// The package needs cgo: the environment variable CGO_ENABLED must be 1, and a C
// compiler must be installed. The go command sets CGO_ENABLED to 0 by itself if
// it finds no C compiler, and if it compiles for another system.
//
// Without it the package has no names: the compiler says "undefined: libc.Trim".
// The packages cheap, own, pace and cheaptest work without cgo.
package libc
