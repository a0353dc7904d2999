package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap"
)

// std is the heap of the package-level functions.
var std = (*Heap)(heap.Default())

// Default returns the heap that [Malloc], [Calloc], [Realloc] and [Free] use. It
// has no limit. It cannot be destroyed: its Destroy and DestroyAll panic.
func Default() *Heap { return std }

// Malloc is [Heap.Malloc] of the default heap.
func Malloc(size int) unsafe.Pointer { return std.Malloc(size) }

// Calloc is [Heap.Calloc] of the default heap.
func Calloc(count, size int) unsafe.Pointer { return std.Calloc(count, size) }

// Realloc is [Heap.Realloc] of the default heap.
func Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer { return std.Realloc(ptr, size) }

// Free is [Heap.Free] of the default heap.
func Free(ptr unsafe.Pointer) { std.Free(ptr) }
