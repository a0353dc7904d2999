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
type Image struct{ own.Owner }

var images = own.NewPool(own.Options{
	Name:    "Image",
	Release: libc.Destructor(unsafe.Pointer(C.image_free), libc.NoCallback), // image_free does not call into Go
})

// NewImage returns a black image.
func NewImage(width, height int) (*Image, error) {
	p := unsafe.Pointer(C.image_new(C.int(width), C.int(height)))
	if p == nil {
		return nil, fmt.Errorf("no memory for an image of %d by %d", width, height)
	}
	m := new(Image)
	if err := images.Own(&m.Owner, p, width*height); err != nil {
		C.image_free(p) // the pool does not own it
		return nil, err
	}
	return m, nil
}

// Bounds may be called while another goroutine closes a copy of the image.
func (m *Image) Bounds() (width, height int) {
	m.Use(func(p unsafe.Pointer) {
		width, height = int((*C.image)(p).width), int((*C.image)(p).height)
	})
	return width, height
}

// ImagesAlive returns the number of images that the library has made and not freed.
func ImagesAlive() int { return int(C.images_alive()) }
