//go:build cgo && cxx

package shapes

// #include "shape.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

//go:generate go run github.com/cheapgo/cheap/libc/cxx

// A Shape shares an object of C++ until it is closed or forgotten.
type Shape struct{ h own.Handle[unsafe.Pointer] }

var shapes = own.NewPool(own.Options{
	Name: C.SHAPE_POOL,
	// The memory is malloc's. Where a program has package cmem, it is not counted twice.
	CHeap:   true,
	Release: libc.Destructor(unsafe.Pointer(C.shape_destroy)),
})

// NewShape makes one.
func NewShape(sides int) (*Shape, error) {
	p := C.shape_new(C.int(sides))
	if p == nil {
		return nil, fmt.Errorf("no shape of %d sides", sides)
	}
	s := new(Shape)
	if err := s.h.Own(shapes, p, 64); err != nil {
		C.shape_destroy(p) // it is still ours
		return nil, err
	}
	return s, nil
}

// Close drops the share. It may be called again, and by any goroutine.
func (s *Shape) Close() error { return s.h.Close() }

// Sides asks the library. A Close during the call does not drop the share.
func (s *Shape) Sides() (n int) {
	s.h.Use(func(p unsafe.Pointer) { n = int(C.shape_sides(p)) })
	return n
}

// ShapesAlive returns how many objects the library has.
func ShapesAlive() int { return int(C.shapes_alive()) }
