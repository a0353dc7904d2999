package cheap

import "unsafe"

// std is the heap of the package-level functions. It takes nothing from the
// system before it is used.
var std = func() *Heap {
	h := &Heap{}
	h.init(Options{})
	return h
}()

// Default returns the heap that the package-level functions use. It has no
// limit and must not be destroyed.
func Default() *Heap { return std }

// Malloc is [Heap.Malloc] of the default heap.
func Malloc(size int) unsafe.Pointer { return std.Malloc(size) }

// Calloc is [Heap.Calloc] of the default heap.
func Calloc(count, size int) unsafe.Pointer { return std.Calloc(count, size) }

// Realloc is [Heap.Realloc] of the default heap.
func Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer { return std.Realloc(ptr, size) }

// AlignedMalloc is [Heap.AlignedMalloc] of the default heap.
func AlignedMalloc(size, align int) unsafe.Pointer { return std.AlignedMalloc(size, align) }

// Free is [Heap.Free] of the default heap.
func Free(ptr unsafe.Pointer) { std.Free(ptr) }

// UsableSize is [Heap.UsableSize] of the default heap.
func UsableSize(ptr unsafe.Pointer) int { return std.UsableSize(ptr) }

// Owns is [Heap.Owns] of the default heap.
func Owns(ptr unsafe.Pointer) bool { return std.Owns(ptr) }

// Trim is [Heap.Trim] of the default heap.
func Trim() { std.Trim() }
