package cheap

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/pointerfree"
)

// New allocates a zero T from a. It returns nil if a has no memory for it. Free the T
// with [Delete].
//
// T must not contain Go pointers: the garbage collector does not look into memory
// outside its heap, so it would free the objects that only this memory refers to. New
// panics if T contains one, and the panic names the field. These types count as Go
// pointers: pointers, slices, strings, maps, channels, functions, interfaces and
// unsafe.Pointer.
//
// These types do not count: the types that cgo makes of C types (C.struct_s, with all
// its fields), and pointers to them (*C.char, **C.char). Such a field may hold a C
// pointer; by the rules of cgo it must not hold a Go pointer. A field of any other
// type holds an address as a uintptr.
func New[T any](a Allocator) *T {
	if t := any((*T)(nil)); !pointerfree.Known(t) {
		mustBePointerFree("New", t)
	}
	var zero T
	var p unsafe.Pointer
	switch a := a.(type) { // a call by the interface would have a frame more
	case *Heap:
		p = a.Malloc(int(unsafe.Sizeof(zero)))
	case *Local:
		p = a.Malloc(int(unsafe.Sizeof(zero)))
	default:
		p = a.Malloc(int(unsafe.Sizeof(zero)))
	}
	clearBytes(p, unsafe.Sizeof(zero))
	return (*T)(p) // p has the size of a T, and its alignment, 16, suits every T that passes
}

// Delete frees the T at p, which [New] allocated from a. It ignores a nil p. It is
// a.Free(unsafe.Pointer(p)).
func Delete[T any](a Allocator, p *T) { a.Free(unsafe.Pointer(p)) }

// MakeSlice allocates a slice of length len and capacity cap from a. All elements up
// to cap are zero. It returns nil if a has no memory for it, or if the size in bytes
// overflows an int. A slice of capacity 0 has a block too, and is not nil. Free the
// slice with [FreeSlice].
//
// MakeSlice panics if len is negative or larger than cap, and if T contains Go
// pointers; see [New].
func MakeSlice[T any](a Allocator, len, cap int) []T {
	if t := any((*T)(nil)); !pointerfree.Known(t) {
		mustBePointerFree("MakeSlice", t)
	}
	if len < 0 || cap < len {
		panicMisuse("MakeSlice", 0, "length %d with capacity %d; want 0 <= length <= capacity", len, cap)
	}
	var zero T
	size, ok := heap.Mul(cap, unsafe.Sizeof(zero))
	if !ok {
		return nil
	}
	p := allocZeroedBytes(a, size)
	if p == nil {
		return nil
	}
	return unsafe.Slice((*T)(p), cap)[:len] // the block has size bytes: cap Ts
}

// Append appends elems to s, which is from [MakeSlice] or Append with the same
// allocator, or nil. If the capacity is too small, Append allocates a larger block,
// copies the elements, and frees the old block: the caller must then use only the
// result, and neither s nor another slice of the old block.
//
// s must not be a Go slice such as []T{}. If it is one and has room, the elements go
// into Go memory, and only FreeSlice detects that. If it has no room, Append panics,
// provided that the allocator can detect it.
//
// If there is no memory, Append returns s unchanged, and an error that wraps
// [ErrNoMemory] or [ErrLimit]. It panics if T contains Go pointers; see [New].
func Append[T any](a Allocator, s []T, elems ...T) ([]T, error) {
	if t := any((*T)(nil)); !pointerfree.Known(t) {
		mustBePointerFree("Append", t)
	}
	if len(elems) <= cap(s)-len(s) && s != nil {
		return append(s, elems...), nil // in place
	}
	return grow(a, s, elems)
}

// FreeSlice frees the block of s, which is from [MakeSlice] or [Append] with the same
// allocator, or a slice of it that starts at the same element. It ignores a nil slice.
func FreeSlice[T any](a Allocator, s []T) {
	a.Free(unsafe.Pointer(unsafe.SliceData(s))) // the block, also if the capacity is 0
}

// tryAlloc is a.Malloc with an error instead of nil.
func tryAlloc(a Allocator, size int) (unsafe.Pointer, error) {
	if t, ok := a.(TryAllocator); ok {
		return t.TryMalloc(size)
	}
	if p := a.Malloc(size); p != nil {
		return p, nil
	}
	return nil, ErrNoMemory
}

// grow is Append to a slice that is too short.
func grow[T any](a Allocator, s, elems []T) ([]T, error) {
	var zero T
	want := len(s) + len(elems)
	newCap := want
	if want >= 0 && want/2 < cap(s) {
		newCap = max(want, cap(s)+cap(s)/2) // amortizes a loop of Appends
	}
	size, ok := heap.Mul(newCap, unsafe.Sizeof(zero))
	if !ok {
		size, ok = heap.Mul(want, unsafe.Sizeof(zero))
		newCap = want
	}
	if want < 0 || !ok {
		return s, fmt.Errorf("cheap: Append: %d and %d elements of %d bytes do not fit in memory: %w",
			len(s), len(elems), unsafe.Sizeof(zero), ErrNoMemory)
	}
	if u, ok := a.(UsableSizeAllocator); ok {
		u.UsableSize(unsafe.Pointer(unsafe.SliceData(s))) // panics for a Go slice, before anything has changed
	}
	// The old block stays until the elements are copied: elems may be in it.
	p, err := tryAlloc(a, int(size))
	if err != nil && newCap > want {
		newCap = want
		size, _ = heap.Mul(want, unsafe.Sizeof(zero)) // less than a size that did not overflow
		p, err = tryAlloc(a, int(size))
	}
	if err != nil {
		return s, fmt.Errorf("cheap: Append: %d elements of %d bytes: %w", newCap, unsafe.Sizeof(zero), err)
	}
	// Cleared before it becomes a []T: a store into a pointer field (of a C type) makes
	// the collector look at the old contents.
	clearBytes(p, size)
	grown := unsafe.Slice((*T)(p), newCap)[:want] // the block has size bytes: newCap Ts
	copy(grown[copy(grown, s):], elems)
	FreeSlice(a, s)
	return grown, nil
}

// clearBytes zeroes size bytes at p, which are outside the Go heap or hold no Go
// pointers. It has no write barriers, on purpose: the old contents are not pointers,
// but anything that the last user left there. It ignores a nil p.
func clearBytes(p unsafe.Pointer, size uintptr) {
	if p != nil {
		clear(unsafe.Slice((*byte)(p), size)) // callers have allocated that much
	}
}

// callocThreshold is the size in bytes from which asking the allocator for zeroed
// memory pays. Below, clearing costs less than the type assertion.
const callocThreshold = 16 << 10

// allocZeroedBytes returns size zero bytes, or nil. Memory that is fresh from the operating
// system is not cleared again, if the allocator knows that it is.
func allocZeroedBytes(a Allocator, size uintptr) unsafe.Pointer {
	if size >= callocThreshold {
		if c, ok := a.(CallocAllocator); ok {
			return c.Calloc(1, int(size))
		}
	}
	var p unsafe.Pointer
	switch a := a.(type) { // as in New
	case *Heap:
		p = a.Malloc(int(size))
	case *Local:
		p = a.Malloc(int(size))
	default:
		p = a.Malloc(int(size))
	}
	clearBytes(p, size)
	return p
}

// mustBePointerFree takes a nil *T and panics if a T may contain Go pointers. It is
// for a T that is not pointerfree.Known.
func mustBePointerFree(op string, ptr any) {
	if reason := pointerfree.Check(ptr); reason != "" {
		panicMisuse(op, 0, "%s", reason)
	}
}
