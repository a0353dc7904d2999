// Package cheaparrow gives Apache Arrow for Go memory from a heap of package
// cheap. The memory is outside the Go heap: C code may keep it, and the collector
// does not scan it. No call is a cgo call.
//
//	mem := cheaparrow.Allocator{}
//	b := array.NewInt64Builder(mem)
//
// Functions of arrow that are not given an allocator use memory.DefaultAllocator.
// A program can set that variable to an [Allocator] before it uses arrow.
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
// heap. Two Allocators on the same heap may free the buffers of each other.
//
// All methods may be called from any goroutine. A buffer that arrow never
// releases is never freed, as with every allocator of arrow but that for Go
// memory. The Stats of the heap count such buffers, and memory.NewCheckedAllocator
// around an Allocator reports where they were allocated.
//
// Unlike arrow's allocators an Allocator detects misuse. It panics with a
// [cheap.MisuseError] if a buffer is not from its heap, or is free already and its
// memory was not allocated again. A slice without capacity that is not the start of
// a live block counts as a buffer of size 0, and is ignored.
//
// A program that reads a buffer after its release reads memory that may belong to
// another buffer. With CHEAP_CHECK=blocks in the environment such a read finds a pattern, and a
// write to such a buffer panics in a later call.
type Allocator struct {
	Heap *cheap.Heap // nil means cheap.Default()

	// Align is for consumers that take whole pages, such as a graphics card: 4096, or 16384
	// where pages are that large. A buffer of Align bytes or more starts at a multiple of
	// Align, and its capacity is one. Smaller buffers stay as they are with 0. Align must be
	// a power of two, and 64 or more. Methods panic with a [cheap.MisuseError] if it is not.
	Align int
}

var _ memory.Allocator = Allocator{}

// alignment is the alignment in bytes that the format recommends for the start of
// a buffer and for its padded length. A heap aligns a block to every power of two
// that divides the block's size, up to a page. The block for a multiple of 64 has
// a size that is a multiple of 64, so Malloc aligns it; TestAlignment tries all
// sizes.
const alignment = 64

// ownPages is the size in bytes above which blocks have pages of their own, which
// the heap may know to be zero; see cheap.GoodSize.
const ownPages = 32 << 10

// empty returns the address of all buffers of size 0. It is outside Go memory, so
// that C memory may contain it as it may contain the address of any buffer. It is
// inside a block, so that Free of it would panic.
var empty = sync.OnceValue(func() unsafe.Pointer {
	p := cheap.Malloc(2 * alignment)
	if p == nil {
		panic(noMemory("Allocate", 0, cheap.ErrNoMemory))
	}
	return unsafe.Add(p, alignment)
})

// Allocate returns a buffer of size bytes, at an address that is a multiple of 64, or
// of Align. Its capacity is size rounded up to such a multiple. All bytes up to the capacity
// are zero. Allocate panics with a [cheap.MisuseError] if size is negative, and
// with an error that wraps [cheap.ErrNoMemory] or [cheap.ErrLimit] if there is no
// memory.
//
// For a size of 0 the slice is not nil, and need not be freed. Such buffers take no
// memory, except 128 bytes of cheap.Default() once.
func (a Allocator) Allocate(size int) []byte {
	if size <= 0 {
		return none("Allocate", size)
	}
	align := a.alignOf("Allocate", size)
	padded := pad("Allocate", size, align)
	heap := a.heap()
	var p unsafe.Pointer
	if padded > ownPages {
		p = heap.Calloc(1, padded)
	} else if p = heap.Malloc(padded); p != nil {
		clear(unsafe.Slice((*byte)(p), padded))
	}
	if p != nil && !aligned(p, align) { // beyond a page, or a heap with a CheckLevel
		heap.Free(p)
		if p = heap.AlignedMalloc(padded, align); p != nil {
			clear(unsafe.Slice((*byte)(p), padded))
		}
	}
	if p == nil {
		panic(noMemory("Allocate", size, why(heap, padded)))
	}
	return unsafe.Slice((*byte)(p), padded)[:size]
}

// Free frees a buffer. b must start at the first byte that Allocate or Reallocate
// returned; its length and capacity do not matter. If b is nil or a buffer of size
// 0, Free does nothing.
func (a Allocator) Free(b []byte) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if heap := a.heap(); !isNone(heap, b) {
		heap.Free(p)
	}
}

// Reallocate resizes the buffer b to size bytes and returns it. The address may
// change, and b must not be used any more. The contents are kept, up to the smaller
// of size and the length of b. All bytes after them, up to the new capacity, are
// zero, also those that were part of the old buffer. b must be as in
// [Allocator.Free]. Reallocate panics as [Allocator.Allocate] does, and then b has
// not changed.
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
	align := a.alignOf("Reallocate", size)
	if align > alignment {
		return a.reallocateAligned(heap, size, b, align)
	}
	padded := pad("Reallocate", size, align)
	// The heap is called also if the capacity stays the same, because it checks
	// that the block is live and belongs to it.
	q := heap.Realloc(p, padded)
	if q == nil {
		panic(noMemory("Reallocate", size, why(heap, padded)))
	}
	if !aligned(q, alignment) { // a heap with a CheckLevel
		if r := heap.AlignedMalloc(padded, alignment); r != nil { // else b is gone, and q better than nothing
			copy(unsafe.Slice((*byte)(r), padded), unsafe.Slice((*byte)(q), min(len(b), size)))
			heap.Free(q)
			q = r
		}
	}
	buf := unsafe.Slice((*byte)(q), padded)
	clear(buf[min(len(b), size):])
	return buf[:size]
}

// reallocateAligned is Reallocate of a buffer that is to have more than the usual alignment, which
// Heap.Realloc does not promise.
func (a Allocator) reallocateAligned(heap *cheap.Heap, size int, b []byte, align int) []byte {
	p := unsafe.Pointer(unsafe.SliceData(b))
	kept := min(len(b), size)
	padded, room := pad("Reallocate", size, align), heap.UsableSize(p) // which panics if p is no live block
	if aligned(p, align) && padded <= room && padded > room/2 {
		buf := unsafe.Slice((*byte)(p), padded)
		clear(buf[kept:])
		return buf[:size]
	}
	buf := a.Allocate(size)
	copy(buf, b[:kept])
	heap.Free(p)
	return buf
}

// alignOf returns the alignment of a buffer of size bytes.
func (a Allocator) alignOf(op string, size int) int {
	if a.Align != 0 && (a.Align < alignment || a.Align&(a.Align-1) != 0) {
		panic(&cheap.MisuseError{Op: "arrow.Allocator." + op, Reason: fmt.Sprintf("Align is %d; it must be 0, or a power of two from %d on", a.Align, alignment)})
	}
	if a.Align > 0 && size >= a.Align {
		return a.Align
	}
	return alignment
}

func aligned(p unsafe.Pointer, align int) bool { return uintptr(p)&uintptr(align-1) == 0 }

func (a Allocator) heap() *cheap.Heap {
	if a.Heap != nil {
		return a.Heap
	}
	return cheap.Default()
}

// pad returns size rounded up to a multiple of align.
func pad(op string, size, align int) int {
	if size > math.MaxInt-(align-1) {
		panic(noMemory(op, size, cheap.ErrNoMemory))
	}
	return (size + align - 1) &^ (align - 1)
}

// none returns a buffer of size 0.
func none(op string, size int) []byte {
	if size < 0 {
		panic(&cheap.MisuseError{Op: "arrow.Allocator." + op, Reason: fmt.Sprintf("the size %d is negative", size)})
	}
	return unsafe.Slice((*byte)(empty()), alignment)[:0:0]
}

// isNone reports whether b has no memory. A block that was sliced until its capacity
// is 0 still has memory: its start is known.
func isNone(heap *cheap.Heap, b []byte) bool {
	return cap(b) == 0 && !heap.Owns(unsafe.Pointer(unsafe.SliceData(b)))
}

// why returns the reason why there was no block of size bytes.
func why(heap *cheap.Heap, size int) error {
	p, err := heap.TryMalloc(size)
	if err == nil { // there is memory now, too late
		heap.Free(p)
		return cheap.ErrNoMemory
	}
	return err
}

func noMemory(op string, size int, err error) error {
	return fmt.Errorf("cheap: arrow.Allocator.%s: %d bytes: %w", op, size, err)
}
