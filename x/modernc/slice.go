package memory

import "unsafe"

// Malloc returns a slice of size bytes, whose contents are undefined and whose
// capacity is the usable size of the block. It panics for a negative size, and
// returns nil and no error for 0. An error wraps cheap.ErrNoMemory.
//
// The slice may be resliced as long as it begins where it began. What append
// returns may be another array, which must not be given to Free or Realloc.
func (a *Allocator) Malloc(size int) ([]byte, error) {
	p, err := a.UnsafeMalloc(size)
	return a.slice(p, size), err
}

// Calloc is like Malloc except that the first size bytes are zero.
func (a *Allocator) Calloc(size int) ([]byte, error) {
	p, err := a.UnsafeCalloc(size)
	return a.slice(p, size), err
}

// Realloc makes the block of b, which Malloc, Calloc or Realloc returned, one
// of size bytes. The contents stay, up to the smaller of the two sizes; what is
// added is undefined. The block may have been moved, and then b is freed. In
// case of an error b stays as it is.
//
// A b without capacity makes it Malloc. For any other a size of 0 makes it
// Free.
func (a *Allocator) Realloc(b []byte, size int) ([]byte, error) {
	p, err := a.UnsafeRealloc(start(b), size)
	return a.slice(p, size), err
}

// Free frees the block of b, which Malloc, Calloc or Realloc returned. A b
// without capacity is ignored. The error is always nil.
func (a *Allocator) Free(b []byte) error { return a.UnsafeFree(start(b)) }

// slice returns the first size bytes of the block at p, which is nil or one of
// a's, with the rest as capacity.
func (a *Allocator) slice(p unsafe.Pointer, size int) []byte {
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(p), a.heap.UsableSize(p))[:size]
}

// start returns the address of the array of b, and nil where it has none.
// unsafe.SliceData of a slice without capacity may be anything.
func start(b []byte) unsafe.Pointer {
	if cap(b) == 0 {
		return nil
	}
	return unsafe.Pointer(unsafe.SliceData(b))
}
