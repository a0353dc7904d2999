package porting

// #include "library.h"
import "C"

import (
	"errors"
	"unsafe"

	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// A Shape belongs to the library, and goes when it is closed or forgotten.
type Shape struct{ h own.Handle[*C.shape] }

var shapes = own.NewPool(own.Options{
	Name: "Shape",
	// The memory is malloc's. Where a program has package cmem, it is not counted twice.
	CHeap:   true,
	Release: libc.Destructor(unsafe.Pointer(C.shape_free)),
})

// NewShape makes one.
func NewShape(sides int) (*Shape, error) {
	p := C.shape_new(C.int(sides))
	if p == nil {
		return nil, errors.New("no memory for a shape")
	}
	s := new(Shape)
	if err := s.h.Own(shapes, p, C.sizeof_shape); err != nil {
		C.shape_free(unsafe.Pointer(p)) // it is still ours
		return nil, err
	}
	return s, nil
}

// Close frees the shape. It may be called again, and by any goroutine.
func (s *Shape) Close() error { return s.h.Close() }

// Sides asks the library. A Close during the call does not free the shape.
func (s *Shape) Sides() (n int) {
	s.h.Use(func(p *C.shape) { n = int(C.shape_sides(p)) })
	return n
}

// ShapesAlive returns how many the library has made and not freed.
func ShapesAlive() int { return int(C.shapes_alive()) }
