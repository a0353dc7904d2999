//go:build cgo

package guide

// #include "library.h"
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap"
)

// A Counter is memory that C keeps, and writes to between calls. Close ends that.
type Counter struct{ c *C.counter }

// NewCounter has C count its events in a block of the heap.
func NewCounter(heap *cheap.Heap) (*Counter, error) {
	c := cheap.New[C.counter](heap)
	if c == nil {
		return nil, cheap.ErrNoMemory
	}
	C.count_into(c)
	return &Counter{c}, nil
}

// Read needs no call of C.
func (c *Counter) Read() (events, bytes int64) {
	return int64(c.c.events), int64(c.c.bytes)
}

// Close frees the block, which C must not know any more by then.
func (c *Counter) Close(heap *cheap.Heap) {
	C.count_into(nil)
	heap.Free(unsafe.Pointer(c.c))
}

// Event happens in the library.
func Event(bytes int) { C.event(C.size_t(bytes)) }
