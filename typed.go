package cheap

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/cheapgo/cheap/internal/pointerfree"
)

// New allocates a zero T from a, or returns nil when a has no memory for it.
// Free it with a.Free(unsafe.Pointer(p)).
//
// T must not contain Go pointers, because the garbage collector does not look
// into off-heap memory: what only that memory refers to would be freed while it
// is in use. New panics if it does, and the panic names the field. These count
// as Go pointers: pointers, slices, strings, maps, channels, functions,
// interfaces and unsafe.Pointer.
//
// These do not: the types that cgo makes of C's (C.struct_s, with all that is in
// it), and pointers to them (*C.char, **C.char). Such a field may hold a C
// pointer, and by cgo's own rules must not hold a Go one. An address in any
// other type of field is a uintptr.
func New[T any](a Allocator) *T {
	if t := any((*T)(nil)); !pointerfree.Known(t) {
		checkPointerFree("New", t)
	}
	var zero T
	p := a.Malloc(int(unsafe.Sizeof(zero)))
	clearBytes(p, unsafe.Sizeof(zero))
	return (*T)(p) // as large as a T, and aligned to 16, which suits every T that passes
}

// MakeSlice allocates a slice of length len and capacity cap from a, with all
// elements up to cap zero. It returns nil when a has no memory for it, or when
// its bytes cannot be counted in an int. A slice of capacity 0 is a block too,
// and not nil. Free it with [FreeSlice].
//
// A negative len and a cap smaller than len panic, and so does a T that
// contains Go pointers; see [New].
func MakeSlice[T any](a Allocator, len, cap int) []T {
	if t := any((*T)(nil)); !pointerfree.Known(t) {
		checkPointerFree("MakeSlice", t)
	}
	if len < 0 || cap < len {
		misuse("MakeSlice", 0, "length %d with capacity %d; want 0 <= length <= capacity", len, cap)
	}
	var zero T
	size, ok := mulSize(cap, unsafe.Sizeof(zero))
	if !ok {
		return nil
	}
	p := callocBytes(a, size)
	if p == nil {
		return nil
	}
	return unsafe.Slice((*T)(p), cap)[:len] // cap Ts fit in size bytes
}

// Append appends elems to s, which comes from [MakeSlice] or Append with the
// same allocator, or is nil. Where the capacity does not suffice it allocates a
// larger block, copies, and frees the old one: s and every slice of it must not
// be used afterwards, only the result.
//
// When there is no memory it returns s as it was and an error that wraps
// [ErrNoMemory]. A T that contains Go pointers panics; see [New].
func Append[T any](a Allocator, s []T, elems ...T) ([]T, error) {
	if t := any((*T)(nil)); !pointerfree.Known(t) {
		checkPointerFree("Append", t)
	}
	if len(elems) <= cap(s)-len(s) && s != nil {
		return append(s, elems...), nil // in place
	}
	return grow(a, s, elems)
}

// FreeSlice frees the block of s, which comes from [MakeSlice] or [Append] with
// the same allocator, and starts where that slice starts. A nil slice is
// ignored.
func FreeSlice[T any](a Allocator, s []T) {
	a.Free(unsafe.Pointer(unsafe.SliceData(s))) // of a slice of capacity 0, too, it is the block
}

// tryMalloc is a.Malloc with an error that says why, as far as a can tell.
func tryMalloc(a Allocator, size int) (unsafe.Pointer, error) {
	if t, ok := a.(interface {
		TryMalloc(size int) (unsafe.Pointer, error)
	}); ok {
		return t.TryMalloc(size)
	}
	if p := a.Malloc(size); p != nil {
		return p, nil
	}
	return nil, ErrNoMemory
}

// grow is Append where elems do not fit.
func grow[T any](a Allocator, s, elems []T) ([]T, error) {
	var zero T
	want := len(s) + len(elems)
	newCap := want
	if want >= 0 && want/2 < cap(s) {
		newCap = max(want, cap(s)+cap(s)/2) // amortizes a loop of Appends
	}
	size, ok := mulSize(newCap, unsafe.Sizeof(zero))
	if !ok {
		size, ok = mulSize(want, unsafe.Sizeof(zero))
		newCap = want
	}
	if want < 0 || !ok {
		return s, fmt.Errorf("cheap: Append: %d and %d elements of %d bytes are more than can be addressed: %w",
			len(s), len(elems), unsafe.Sizeof(zero), ErrNoMemory)
	}
	// The old block stays until the elements are copied: elems may lie in it.
	p, err := tryMalloc(a, int(size))
	if err != nil && newCap > want {
		newCap = want
		size, _ = mulSize(want, unsafe.Sizeof(zero)) // less than what did not overflow
		p, err = tryMalloc(a, int(size))
	}
	if err != nil {
		return s, fmt.Errorf("cheap: Append: %d elements of %d bytes: %w", newCap, unsafe.Sizeof(zero), err)
	}
	// Cleared before it is seen as Ts: a store into a pointer field (of a C
	// type) makes the collector look at what was there before.
	clearBytes(p, size)
	grown := unsafe.Slice((*T)(p), newCap)[:want] // newCap Ts fit in size bytes
	copy(grown[copy(grown, s):], elems)
	FreeSlice(a, s)
	return grown, nil
}

// mulSize returns n*size, and false when that does not fit in an int.
func mulSize(n int, size uintptr) (uintptr, bool) {
	hi, lo := bits.Mul(uint(n), uint(size))
	return uintptr(lo), hi == 0 && int(lo) >= 0
}

// clearBytes zeroes size bytes at p, which lie outside the Go heap or hold no
// Go pointers: it leaves no trace for the garbage collector, on purpose, as
// what the memory held before is not a pointer but whatever its last user left
// there. A nil p is ignored.
func clearBytes(p unsafe.Pointer, size uintptr) {
	if p != nil {
		clear(unsafe.Slice((*byte)(p), size)) // callers have allocated that much
	}
}

// callocThreshold is the size from which it pays to ask an allocator whether it
// has zero memory: below, clearing costs less than the question.
const callocThreshold = 16 << 10

// callocBytes returns size zero bytes, or nil. Memory that is fresh from the
// operating system is not cleared again if the allocator knows that.
func callocBytes(a Allocator, size uintptr) unsafe.Pointer {
	if size >= callocThreshold {
		if c, ok := a.(interface {
			Calloc(count, size int) unsafe.Pointer
		}); ok {
			return c.Calloc(1, int(size))
		}
	}
	p := a.Malloc(int(size))
	clearBytes(p, size)
	return p
}
