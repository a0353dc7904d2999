package rivals

import "unsafe"

// A handmade allocator is what a program builds around a plain malloc and free
// when it needs an alignment, or a block to grow.
type handmade struct {
	malloc func(size int) unsafe.Pointer
	free   func(ptr unsafe.Pointer)

	// begins maps a block that was aligned by hand to what malloc returned.
	begins map[unsafe.Pointer]unsafe.Pointer
}

// aligned is malloc at a multiple of align: it allocates a larger block and returns
// the first address in it that fits. What to free is returned by begin.
func (h *handmade) aligned(size, align int) unsafe.Pointer {
	begin := h.malloc(size + align)
	if begin == nil {
		return nil
	}
	ptr := unsafe.Add(begin, -uintptr(begin)&uintptr(align-1))
	if h.begins == nil {
		h.begins = make(map[unsafe.Pointer]unsafe.Pointer)
	}
	h.begins[ptr] = begin
	return ptr
}

// begin returns what to free instead of ptr, which may be a block of aligned, and
// forgets it.
func (h *handmade) begin(ptr unsafe.Pointer) unsafe.Pointer {
	if len(h.begins) == 0 {
		return ptr
	}
	return h.forget(ptr)
}

func (h *handmade) forget(ptr unsafe.Pointer) unsafe.Pointer {
	begin, ok := h.begins[ptr]
	if !ok {
		return ptr
	}
	delete(h.begins, ptr)
	return begin
}

// move is realloc of a block of old bytes, by allocating another.
func (h *handmade) move(ptr unsafe.Pointer, old, size int) unsafe.Pointer {
	to := h.malloc(size)
	if to == nil {
		return nil
	}
	n := min(old, size)
	copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(ptr), n))
	h.free(h.begin(ptr))
	return to
}
