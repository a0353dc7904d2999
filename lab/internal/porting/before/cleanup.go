//cheapvet:ignore perobject this is what a binding is ported from

package before

// #include <stdlib.h>
// #include "../library.h"
import "C"

import (
	"errors"
	"runtime"
	"unsafe"
)

// A Histogram is a C struct in memory that is freed automatically.
type Histogram struct{ c *C.histogram }

// NewHistogram returns one that has counted nothing.
func NewHistogram() (*Histogram, error) {
	p := C.calloc(1, C.sizeof_histogram)
	if p == nil {
		return nil, errors.New("no memory for a histogram")
	}
	h := &Histogram{(*C.histogram)(p)}
	runtime.AddCleanup(h, func(p unsafe.Pointer) { C.free(p) }, p) // must not refer to h
	return h, nil
}

// Add has C count the bytes.
func (h *Histogram) Add(bytes []byte) {
	C.tally(h.c, (*C.uchar)(unsafe.SliceData(bytes)), C.size_t(len(bytes)))
	runtime.KeepAlive(h)
}

// Of returns how often b was counted.
func (h *Histogram) Of(b byte) int {
	n := int(h.c.of[b])
	runtime.KeepAlive(h)
	return n
}
