// Package cheaparrow gives Apache Arrow for Go memory from a heap of package
// cheap: outside the Go heap, so that C may keep it and the collector need not
// look at it, and without a cgo call.
//
//	mem := cheaparrow.Allocator{}
//	b := array.NewInt64Builder(mem)
//
// Where a caller names no allocator arrow takes memory.DefaultAllocator, which
// can be set to one of these before arrow is used.
package cheaparrow

import (
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cheapgo/cheap"
)

// An Allocator is a memory.Allocator on a heap. The zero value uses the default
// heap. Allocators are alike if their heaps are: a buffer that came from one may
// be freed through the other.
//
// All methods may be called from any number of goroutines at once. What arrow
// does not release stays, as with any allocator but arrow's own for Go memory;
// the Stats of the heap count it, and memory.NewCheckedAllocator around an
// Allocator says where it came from.
//
// Unlike arrow's allocators this one panics with a *[cheap.MisuseError] when it
// is given a buffer that is free already, as long as the memory has not been
// handed out again, or that it did not give out. A slice without capacity that
// is not the start of a live block counts as a buffer of size 0, and is ignored.
type Allocator struct {
	Heap *cheap.Heap // or nil for cheap.Default()
}

var _ memory.Allocator = Allocator{}

// alignment is what the format recommends, in bytes, for the start of a buffer
// and for its padded length. A heap aligns a block to every power of two that
// divides its size, up to a page, and the size of a block for a multiple of 64
// is one, so Malloc aligns as is wanted; TestAlignment looks at all of them.
const alignment = 64

// ownPages is the size, in bytes, above which blocks have pages of their own,
// which the heap may know to be zero; see cheap.RoundUp.
const ownPages = 32 << 10

// empty is where buffers of size 0 lie. That is not in Go memory, so that it may
// be stored in C memory as the address of any other buffer; and it is the inside
// of a block, so that it is nobody's to free.
var empty = sync.OnceValue(func() unsafe.Pointer {
	p := cheap.Malloc(2 * alignment)
	if p == nil {
		panic(noMemory("Allocate", 0, cheap.ErrNoMemory))
	}
	return unsafe.Add(p, alignment)
})

// Allocate returns size bytes that are zero, at an address that is a multiple
// of 64. The capacity is size rounded up to a multiple of 64, and as far as that
// goes all is zero. A negative size panics. So does one that there is no memory
// for, with an error that wraps [cheap.ErrNoMemory] or [cheap.ErrLimit].
//
// A size of 0 takes no memory, but for 128 bytes of cheap.Default() once. The
// slice is not nil, and need not be freed.
func (a Allocator) Allocate(size int) []byte {
	if size <= 0 {
		return none("Allocate", size)
	}
	padded := pad("Allocate", size)
	heap := a.heap()
	var p unsafe.Pointer
	if padded > ownPages {
		p = heap.Calloc(1, padded)
	} else if p = heap.Malloc(padded); p != nil {
		clear(unsafe.Slice((*byte)(p), padded))
	}
	if p == nil {
		panic(noMemory("Allocate", size, why(heap, padded)))
	}
	return unsafe.Slice((*byte)(p), padded)[:size]
}

// Free gives a buffer back. Its length and capacity do not matter, as long as it
// starts where the buffer that was allocated did. A nil buffer and one of size 0
// are ignored.
func (a Allocator) Free(b []byte) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if heap := a.heap(); !isNone(heap, b) {
		heap.Free(p)
	}
}

// Reallocate makes b a buffer of size bytes and returns that: in the same place
// if there is room. The contents stay, up to the smaller of size and the length
// of b, and what lies behind them, up to the new capacity, is zero, even where
// it lies within the old one. b must not be used any more. [Allocator.Free] says
// what b may be, and [Allocator.Allocate] what becomes of a size; where that
// panics, b is as it was.
func (a Allocator) Reallocate(size int, b []byte) []byte {
	if size < 0 {
		return none("Reallocate", size)
	}
	heap := a.heap()
	if isNone(heap, b) {
		return a.Allocate(size)
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if size == 0 {
		heap.Free(p)
		return none("Reallocate", 0)
	}
	padded := pad("Reallocate", size)
	// Also where the capacity stays the same: the heap looks whether the block is
	// its own and live.
	q := heap.Realloc(p, padded)
	if q == nil {
		panic(noMemory("Reallocate", size, why(heap, padded)))
	}
	buf := unsafe.Slice((*byte)(q), padded)
	clear(buf[min(len(b), size):])
	return buf[:size]
}

func (a Allocator) heap() *cheap.Heap {
	if a.Heap != nil {
		return a.Heap
	}
	return cheap.Default()
}

// pad returns size rounded up to a multiple of 64.
func pad(op string, size int) int {
	if size > math.MaxInt-(alignment-1) {
		panic(noMemory(op, size, cheap.ErrNoMemory))
	}
	return (size + alignment - 1) &^ (alignment - 1)
}

// none returns a buffer of size 0.
func none(op string, size int) []byte {
	if size < 0 {
		panic(&cheap.MisuseError{Op: "arrow.Allocator." + op, Reason: fmt.Sprintf("negative size %d", size)})
	}
	return unsafe.Slice((*byte)(empty()), alignment)[:0:0]
}

// isNone reports whether b has no memory. A block that was sliced until its
// capacity is 0 still has, and where it starts is not lost.
func isNone(heap *cheap.Heap, b []byte) bool {
	return cap(b) == 0 && !heap.Owns(unsafe.Pointer(unsafe.SliceData(b)))
}

// why returns the error for which there was no block of size bytes.
func why(heap *cheap.Heap, size int) error {
	p, err := heap.TryMalloc(size)
	if err == nil { // there is one now, too late
		heap.Free(p)
		return cheap.ErrNoMemory
	}
	return err
}

func noMemory(op string, size int, err error) error {
	return fmt.Errorf("cheap: arrow.Allocator.%s: %d bytes: %w", op, size, err)
}
