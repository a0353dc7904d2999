// Package cgoparam is a drop-in for github.com/CannibalVox/cgoparam v1.1.0. It
// allocates the arguments of one call of a C function, and frees them together. A
// program changes the import, and its go.mod; docs/porting.md shows how.
//
//	alloc := cgoparam.GetAlloc()
//	defer cgoparam.ReturnAlloc(alloc)
//	info := (*C.VkBufferCreateInfo)(alloc.Malloc(C.sizeof_struct_VkBufferCreateInfo))
//
// An [Allocator] is an arena of [github.com/cheapgo/cheap.GetArena], which new
// programs use directly.
//
// # Differences
//
//   - Blocks are aligned to 16 bytes, as those of C's malloc. The original aligns
//     them to 8.
//   - If an Allocator becomes unreachable without [ReturnAlloc], all its memory is
//     freed. The original leaks all but one page of it.
//   - Any use after ReturnAlloc panics, until another [GetAlloc] returns the same
//     Allocator. The original returns memory that other goroutines use.
//   - The memory is from the default heap of package cheap, so the package needs
//     no cgo. C code may use a block but not pass it to free. The original does
//     not allow that either.
//   - Malloc panics if the size is negative or there is no memory. The original
//     ends the program if there is no memory.
package cgoparam

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// An Allocator allocates blocks, which [ReturnAlloc] frees together. It is
// returned by [GetAlloc]. The zero value is not ready for use.
//
// Only one goroutine at a time may use an Allocator. It must stay reachable while
// its blocks are in use; a deferred ReturnAlloc keeps it reachable.
type Allocator cheap.Arena

// GetAlloc returns an Allocator without blocks. It may be called from any
// goroutine.
func GetAlloc() *Allocator { return (*Allocator)(cheap.GetArena()) }

// ReturnAlloc frees all blocks of alloc, which must not be used any more. A later
// use of alloc, or a second ReturnAlloc, panics with a [cheap.MisuseError], until
// GetAlloc has returned the same Allocator again.
func ReturnAlloc(alloc *Allocator) { (*cheap.Arena)(alloc).Put() }

// Malloc returns a block of size bytes with undefined contents, aligned to 16
// bytes. A size of 0 returns a distinct block. Malloc panics if size is negative.
//
// Malloc never returns nil, because programs that were written for the original
// do not check for nil. If there is no memory, it panics with an error that wraps
// [cheap.ErrNoMemory].
//
//go:nosplit
func (a *Allocator) Malloc(size int) unsafe.Pointer {
	// The check of the result makes this function too large to inline. nosplit
	// saves the check of the stack, which is safe: the frame has a few words, and
	// the functions that are called check the stack themselves.
	if p := (*cheap.Arena)(a).Malloc(size); p != nil {
		return p
	}
	panic(noMemory(size))
}

// CString copies str to a block, with a NUL after it, and returns the block: a
// char * for C. If there is no memory, it panics as [Allocator.Malloc] does.
func (a *Allocator) CString(str string) unsafe.Pointer {
	p := cheap.CString((*cheap.Arena)(a), str)
	if p == nil {
		panic(noMemory(len(str) + 1))
	}
	return p
}

// CBytes copies b to a block, and returns the block. If there is no memory, it
// panics as [Allocator.Malloc] does.
func (a *Allocator) CBytes(b []byte) unsafe.Pointer {
	p := cheap.CBytes((*cheap.Arena)(a), b)
	if p == nil {
		panic(noMemory(len(b)))
	}
	return p
}

// noMemory returns the panic value if there is no memory.
//
//go:noinline
func noMemory(size int) error {
	return fmt.Errorf("cheap: cgoparam.Allocator: %d bytes: %w", size, cheap.ErrNoMemory)
}
