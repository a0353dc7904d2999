// Package cgoparam is a drop-in for github.com/CannibalVox/cgoparam v1.1.0: the
// arguments of one call of a C function, allocated one by one and given back
// together. A program changes the import, and nothing else.
//
//	alloc := cgoparam.GetAlloc()
//	defer cgoparam.ReturnAlloc(alloc)
//	info := (*C.VkBufferCreateInfo)(alloc.Malloc(C.sizeof_struct_VkBufferCreateInfo))
//
// An [Allocator] is an arena of [github.com/cheapgo/cheap.GetArena], which new
// programs use directly. What is different from the original:
//
//   - Blocks are aligned to 16, as C's malloc has them, and not to 8.
//   - An Allocator that is dropped without [ReturnAlloc] gives all its memory
//     back when the collector finds that. The original leaks all but a page.
//   - Any use after ReturnAlloc panics, until somebody else has the Allocator
//     from [GetAlloc]. In the original it hands out memory that others use.
//   - Memory is the module's default heap, so the package needs no cgo. C may
//     use a block but not pass it to free, which the original does not allow
//     either.
//   - A negative size panics. Where there is no memory, Malloc panics, too; the
//     original ends the program.
package cgoparam

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// An Allocator hands out blocks that are given back by [ReturnAlloc], all at
// once. It comes from [GetAlloc]; the zero value is not ready for use.
//
// It may be used by one goroutine at a time, and must stay reachable while its
// blocks are in use, which a deferred ReturnAlloc sees to.
type Allocator cheap.Arena

// GetAlloc returns an Allocator without blocks. It may be called from any
// goroutine.
func GetAlloc() *Allocator { return (*Allocator)(cheap.GetArena()) }

// ReturnAlloc frees all blocks of alloc, which must not be used any more: until
// GetAlloc has returned the same again, that panics with a
// [cheap.MisuseError], and so does a second ReturnAlloc.
func ReturnAlloc(alloc *Allocator) { (*cheap.Arena)(alloc).Put() }

// Malloc returns a block of size bytes with undefined contents, aligned to 16. A
// size of 0 gives a distinct block, a negative one panics.
//
// It never returns nil: what was written for the original does not look. Where
// there is no memory it panics with an error that wraps [cheap.ErrNoMemory].
//
// The look at the result makes it too large to inline, so it does without what
// else a call costs: it has no frame to speak of, and who it calls looks at the
// stack.
//
//go:nosplit
func (a *Allocator) Malloc(size int) unsafe.Pointer {
	if p := (*cheap.Arena)(a).Malloc(size); p != nil {
		return p
	}
	panic(noMemory(size))
}

// CString copies str into a block, with a NUL after it: a char * for C.
func (a *Allocator) CString(str string) unsafe.Pointer {
	p := cheap.CString((*cheap.Arena)(a), str)
	if p == nil {
		panic(noMemory(len(str) + 1))
	}
	return p
}

// CBytes copies b into a block.
func (a *Allocator) CBytes(b []byte) unsafe.Pointer {
	p := cheap.CBytes((*cheap.Arena)(a), b)
	if p == nil {
		panic(noMemory(len(b)))
	}
	return p
}

// noMemory returns what to panic with.
//
//go:noinline
func noMemory(size int) error {
	return fmt.Errorf("cgoparam: no memory for %d bytes: %w", size, cheap.ErrNoMemory)
}
