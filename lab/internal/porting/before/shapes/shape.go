//go:build cgo && cxx

package shapes

// #include "shape.h"
import "C"

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// A Shape shares an object of C++ until it is closed or forgotten.
type Shape struct {
	p       unsafe.Pointer
	closed  atomic.Bool
	cleanup runtime.Cleanup
}

// NewShape makes one.
func NewShape(sides int) (*Shape, error) {
	p := C.shape_new(C.int(sides))
	if p == nil {
		return nil, fmt.Errorf("no shape of %d sides", sides)
	}
	s := &Shape{p: p}
	s.cleanup = runtime.AddCleanup(s, func(p unsafe.Pointer) { C.shape_destroy(p) }, p)
	return s, nil
}

// Close drops the share. It must not be called while another goroutine is in Sides.
func (s *Shape) Close() {
	if s.closed.CompareAndSwap(false, true) {
		s.cleanup.Stop()
		C.shape_destroy(s.p)
		runtime.KeepAlive(s) // or the cleanup might run before Stop
	}
}

// Sides asks the library.
func (s *Shape) Sides() int {
	n := int(C.shape_sides(s.p))
	runtime.KeepAlive(s) // or the cleanup might run during the call
	return n
}

// ShapesAlive returns how many objects the library has.
func ShapesAlive() int { return int(C.shapes_alive()) }
