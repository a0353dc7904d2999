//go:build cgo

package guide

// #include "library.h"
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap/own"
)

// A Line is a line of an image, which it keeps alive.
type Line struct {
	image  own.Handle[*C.image] // a copy of the image's
	pixels *C.uchar             // in C
}

// Line returns a line of the image, which must have it.
func (m *Image) Line(y int) (*Line, error) {
	l := &Line{image: m.h}
	err := m.h.TryUse(func(p *C.image) error {
		l.pixels = C.image_line(p, C.int(y))
		return nil
	})
	return l, err
}

// At returns a pixel, which the line must have.
func (l *Line) At(x int) (pixel byte, err error) {
	err = l.image.TryUse(func(*C.image) error {
		pixel = *(*byte)(unsafe.Add(unsafe.Pointer(l.pixels), x))
		return nil
	})
	return pixel, err
}
