//go:build cgo

package guide

// #include "library.h"
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap"
)

// A Counter is memory that C keeps until Close, and writes to between calls.
type Counter struct{ c *C.counter }

// NewCounter makes C count its events in a block of the heap.
func NewCounter(heap *cheap.Heap) (*Counter, error) {
	c := cheap.New[C.counter](heap)
	if c == nil {
		return nil, cheap.ErrNoMemory
	}
	C.count_into(c)
	return &Counter{c}, nil
}

// Read returns the counts. It calls no C.
func (c *Counter) Read() (events, bytes int64) {
	return int64(c.c.events), int64(c.c.bytes)
}

// Close makes C forget the block, and then frees it.
func (c *Counter) Close(heap *cheap.Heap) {
	C.count_into(nil)
	heap.Free(unsafe.Pointer(c.c))
}

// Event makes an event happen in the library.
func Event(bytes int) { C.event(C.size_t(bytes)) }
