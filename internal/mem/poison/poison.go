// Package poison tells the address sanitizer which memory no code may touch, and the leak
// sanitizer where C pointers may be.
//
// Only code with cgo can tell them, and the packages that every program gets have none. So
// the functions here call a [Sanitizer], which package asan implements. Without the build tag
// asan, which go build -asan sets, Build is false, and no code of this package is in the
// program.
package poison

// Heaps are the heaps of the program.
type Heaps interface {
	// SanitizerSet is called once, when there is a sanitizer: the heaps tell it of their blocks
	// from then on.
	SanitizerSet()
}

// A Sanitizer is package asan. Its methods may be called by several goroutines at the same time.
type Sanitizer interface {
	// Poison has the sanitizer report each access to the size bytes at addr. Unpoison ends
	// that. The sanitizer counts in steps of 8 bytes: what is poisoned begins anywhere, and
	// ends at a multiple of 8, or before memory that is poisoned.
	Poison(addr, size uintptr)
	Unpoison(addr, size uintptr)

	// Register has the leak sanitizer look for pointers in the size bytes at addr, as far as
	// they can be read. Unregister, of the same two, ends that.
	Register(addr, size uintptr)
	Unregister(addr, size uintptr)

	// Seal says by which factor package cheap seals the headers of blocks.
	Seal(factor uint64)

	// Stack says what the stack with that number is, for reports about blocks. Only the first
	// call for a number counts.
	Stack(id uint32, text string)
}
