package after

// #include "../library.h"
import "C"

import (
	"errors"
	"unsafe"

	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// A Shape belongs to the library, and goes when it is closed or forgotten.
type Shape struct{ own.Owner }

var shapes = own.NewPool(own.Options{
	Name:    "Shape",
	Release: libc.Destructor(unsafe.Pointer(C.shape_free), libc.NoCallback), // shape_free does not call into Go
})

// NewShape makes one.
func NewShape(sides int) (*Shape, error) {
	p := unsafe.Pointer(C.shape_new(C.int(sides)))
	if p == nil {
		return nil, errors.New("no memory for a shape")
	}
	s := new(Shape)
	if err := shapes.Own(&s.Owner, p, C.sizeof_shape); err != nil {
		C.shape_free(p) // it is still ours
		return nil, err
	}
	return s, nil
}

// Sides asks the library. A Close during the call does not free the shape.
func (s *Shape) Sides() (n int) {
	s.Use(func(p unsafe.Pointer) { n = int(C.shape_sides((*C.shape)(p))) })
	return n
}

// ShapesAlive returns how many the library has made and not freed.
func ShapesAlive() int { return int(C.shapes_alive()) }
