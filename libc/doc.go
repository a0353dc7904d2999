// Package libc joins Go to functions of C, without a cgo call for each block or
// resource where that can be avoided.
//
//   - [Allocator] is the malloc and free of the C library as a
//     [github.com/cheapgo/cheap.Allocator], for memory that C itself will free,
//     or that C has allocated and Go must free. Every call is a cgo call, which
//     costs several times what malloc does. Memory that no C code passes to free
//     is cheaper from a [github.com/cheapgo/cheap.Heap].
//   - [Destructor], [DestructorWith] and [ContextDestructor] call a C function
//     that destroys resources, and [Constructor] one that makes them, for a
//     whole batch in one cgo call. Package own takes both.
//
// The package needs cgo. Built without it, it is empty.
package libc
