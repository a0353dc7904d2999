package memory

import "unsafe"

// Malloc returns a slice of size bytes with undefined contents. Its capacity is the
// usable size of the block. For a size of 0 Malloc returns nil and no error. It panics
// if size is negative. The error wraps [cheap.ErrNoMemory].
//
// The slice may be resliced, as long as it begins at the same byte. The result of
// append may be another array, which must not be passed to Free or Realloc.
func (a *Allocator) Malloc(size int) ([]byte, error) {
	p, err := a.UnsafeMalloc(size)
	return a.slice(p, size), err
}

// Calloc is Malloc of a slice whose first size bytes are zero.
func (a *Allocator) Calloc(size int) ([]byte, error) {
	p, err := a.UnsafeCalloc(size)
	return a.slice(p, size), err
}

// Realloc resizes the block of b, which Malloc, Calloc or Realloc returned, to size
// bytes. The contents are kept, up to the smaller of the two sizes; added bytes are
// undefined. The block may move, and then b is freed. If Realloc returns an error, b
// has not changed.
//
// If b has no capacity, Realloc is Malloc. Otherwise, for a size of 0, it is Free.
func (a *Allocator) Realloc(b []byte, size int) ([]byte, error) {
	p, err := a.UnsafeRealloc(start(b), size)
	return a.slice(p, size), err
}

// Free frees the block of b, which Malloc, Calloc or Realloc returned. If b has no
// capacity, Free does nothing. The error is always nil.
func (a *Allocator) Free(b []byte) error { return a.UnsafeFree(start(b)) }

// slice returns the first size bytes of the block at p, with the rest as capacity. p
// is nil or a block of a.
func (a *Allocator) slice(p unsafe.Pointer, size int) []byte {
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(p), a.heap.UsableSize(p))[:size]
}

// start returns the address of the array of b, or nil if b has no capacity. For such
// a slice unsafe.SliceData may return any pointer.
func start(b []byte) unsafe.Pointer {
	if cap(b) == 0 {
		return nil
	}
	return unsafe.Pointer(unsafe.SliceData(b))
}
