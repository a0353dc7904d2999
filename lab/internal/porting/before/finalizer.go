//cheapvet:ignore perobject this is what a binding is ported from

package before

// #include "../library.h"
import "C"

import (
	"errors"
	"runtime"
	"unsafe"
)

// A Shape belongs to the library, and goes when it is closed or forgotten.
type Shape struct{ c *C.shape }

// NewShape makes one.
func NewShape(sides int) (*Shape, error) {
	c := C.shape_new(C.int(sides))
	if c == nil {
		return nil, errors.New("no memory for a shape")
	}
	s := &Shape{c}
	runtime.SetFinalizer(s, (*Shape).Close)
	return s, nil
}

// Close frees it. It must not be called by two goroutines at once, nor while
// another one is in Sides, nor in two copies.
func (s *Shape) Close() {
	runtime.SetFinalizer(s, nil)
	C.shape_free(unsafe.Pointer(s.c))
	s.c = nil
}

// Sides asks the library.
func (s *Shape) Sides() int {
	n := int(C.shape_sides(s.c))
	runtime.KeepAlive(s) // or the finalizer might run during the call
	return n
}

// ShapesAlive returns how many the library has made and not freed.
func ShapesAlive() int { return int(C.shapes_alive()) }
