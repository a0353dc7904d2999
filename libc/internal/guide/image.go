//go:build cgo

package guide

// #include "library.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// An Image belongs to the library. It is freed when it is closed or becomes unreachable.
type Image struct{ h own.Handle[*C.image] }

var images = own.NewPool(own.Options{
	Name: "Image",
	// The memory is malloc's. Where a program has package cmem, it is not counted twice.
	CHeap:   true,
	Release: libc.Destructor(unsafe.Pointer(C.image_free)),
})

// NewImage returns a black image.
func NewImage(width, height int) (*Image, error) {
	p := C.image_new(C.int(width), C.int(height))
	if p == nil {
		return nil, fmt.Errorf("no memory for an image of %d by %d", width, height)
	}
	m := new(Image)
	if err := m.h.Own(images, p, width*height); err != nil {
		C.image_free(unsafe.Pointer(p)) // the pool does not own it
		return nil, err
	}
	return m, nil
}

// Close frees the image. It may be called again, and by any goroutine.
func (m *Image) Close() error { return m.h.Close() }

// Bounds may be called while another goroutine closes the image. It returns an error if
// the image is closed.
func (m *Image) Bounds() (width, height int, err error) {
	err = m.h.TryUse(func(p *C.image) error {
		width, height = int(p.width), int(p.height)
		return nil
	})
	return width, height, err
}

// ImagesAlive returns the number of images that the library has made and not freed.
func ImagesAlive() int { return int(C.images_alive()) }
