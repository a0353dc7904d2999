// Package libc offers the malloc and free of the C library as a
// [github.com/cheapgo/cheap.Allocator], for memory that C itself will free, or
// that C has allocated and Go must free.
//
// Every call is a cgo call, which costs several times what malloc does. Memory
// that no C code passes to free is cheaper from a
// [github.com/cheapgo/cheap.Heap].
//
// The package needs cgo. Built without it, it is empty.
package libc
