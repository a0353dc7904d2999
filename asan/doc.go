// Package asan makes the address sanitizer and the leak sanitizer of the C compiler know the
// memory of package cheap. A program, or a test, imports it for that alone:
//
//	import _ "github.com/cheapgo/cheap/asan"
//
// It needs go build -asan, or go test -asan, and so cgo. In any other build the package is
// empty, and the import may stay.
//
// With it, all heaps of the program are checked as with cheap.CheckStacks, and besides the
// sanitizer ends the program when C code that is built with it, or Go code, reads or writes
//
//   - a block that was freed, as long as the heap keeps it from reuse: see
//     HeapOptions.Quarantine;
//   - bytes before or behind a block;
//   - free memory of an Arena or a FixedBlock, but for the first word of a block that was
//     freed to a FixedBlock.
//
// Below the sanitizer's report is one of this package, with the block's size, and the stacks
// of its allocation and of its free. The environment variable CHEAP_CHECK=blocks leaves the
// stacks out.
//
// The leak sanitizer looks for C pointers in the blocks of all heaps, and in the records of
// package own. Otherwise it would report C memory as leaked that only a block refers to.
//
// A heap that has blocks before this package is initialized is not watched. That may be so
// where another package allocates while it is initialized; that one imports this one, too.
package asan
