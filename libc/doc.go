// Package libc uses the C library, and constructors and destructors in C, from
// Go.
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
