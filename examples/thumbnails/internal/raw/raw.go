//go:build linux && cgo && libjpeg

// Package raw has images in C memory, read and written by libjpeg-turbo. It has no
// owners. It counts live images, in C.
//
// An Image is in C memory. When it is no longer used, a binding frees it once, by Free
// or by the function that Destructor returns. An Image does not change, so several
// goroutines may use it, and any goroutine may free it.
package raw

/*
// These functions call no Go function, and keep none of their arguments.
#cgo noescape raw_read
#cgo nocallback raw_read
#cgo noescape raw_scale
#cgo nocallback raw_scale
#cgo noescape raw_write
#cgo nocallback raw_write
#cgo noescape raw_free
#cgo nocallback raw_free

#cgo CFLAGS: -O2
#cgo pkg-config: libjpeg
#include "raw.h"
*/
import "C"

import (
	"errors"
	"unsafe"
)

// Image is the type of C, with a name that other packages can use.
type Image = C.raw_image

// Made is a new image, which the caller must free.
type Made struct {
	Image *Image
	Size  int // bytes of C memory
}

// Read decodes a JPEG file. It returns an error if the data is damaged.
func Read(file string) (Made, error) {
	return result("read "+file, C.raw_read(cstring(file)))
}

// Scale returns a smaller image of the same shape.
func Scale(image *Image, width int) (Made, error) {
	return result("scale", C.raw_scale(image, C.int(width)))
}

// Write encodes an image to a JPEG file, with a quality from 1 to 100.
func Write(image *Image, file string, quality int) error {
	_, err := result("write "+file, C.raw_write(image, cstring(file), C.int(quality)))
	return err
}

// Bounds returns the width and the height of an image, in pixels.
func Bounds(image *Image) (width, height int) { return int(image.width), int(image.height) }

// Pixels returns the bytes of an image, in place: red, green and blue, rows from the
// top. The caller must keep the image alive while it uses them.
func Pixels(image *Image) []byte {
	width, height := Bounds(image)
	// The pixels follow the head of the image, which has their number.
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(image), unsafe.Sizeof(*image))), width*height*3)
}

// Free frees an image.
func Free(image *Image) { C.raw_free(unsafe.Pointer(image)) }

// Destructor returns the C function, void (*)(void *), that frees an image.
func Destructor() unsafe.Pointer { return C.raw_destructor() }

// Live returns the number of images that are made and not freed, and the sum of their
// bytes.
func Live() (images int, bytes int64) { return int(C.raw_live()), int64(C.raw_bytes()) }

// result returns the image of a call, or its error.
func result(what string, m C.raw_made) (Made, error) {
	if m.message[0] != 0 {
		return Made{}, errors.New(what + ": " + C.GoString(&m.message[0]))
	}
	return Made{m.image, int(m.size)}, nil
}

// cstring returns a copy of s that ends with a zero, in Go memory. C reads it during
// the call only, so there is no need for C.CString and a free.
func cstring(s string) *C.char {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return (*C.char)(unsafe.Pointer(&b[0])) // a byte is a char
}
