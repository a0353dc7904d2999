//go:build linux && cgo && libjpeg

// Package raw has images in C memory, read and written by libjpeg-turbo, and
// does nothing else: it knows no owners. It counts on the side of C what is
// live.
//
// An image is a pointer that somebody frees once it is in nobody's use: Free, or
// the function that Destructor returns. It does not change, so several
// goroutines may use it, and any may free it.
package raw

/*
// C calls nothing of Go's, and keeps none of the arguments.
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

// Made is an image that somebody has to free.
type Made struct {
	Image unsafe.Pointer
	Size  int // bytes of C memory
}

// Read decodes a JPEG file. Damaged data are an error.
func Read(file string) (Made, error) {
	return result("read "+file, C.raw_read(cstring(file)))
}

// Scale returns a smaller image of the same shape.
func Scale(image unsafe.Pointer, width int) (Made, error) {
	return result("scale", C.raw_scale((*C.raw_image)(image), C.int(width)))
}

// Write encodes an image into a JPEG file, with a quality from 1 to 100.
func Write(image unsafe.Pointer, file string, quality int) error {
	_, err := result("write "+file, C.raw_write((*C.raw_image)(image), cstring(file), C.int(quality)))
	return err
}

// Bounds returns the width and the height of an image, in pixels.
func Bounds(image unsafe.Pointer) (width, height int) {
	m := (*C.raw_image)(image)
	return int(m.width), int(m.height)
}

// Pixels returns the bytes of an image, in place: red, green and blue, rows from
// the top. The caller keeps the image while it uses them.
func Pixels(image unsafe.Pointer) []byte {
	width, height := Bounds(image)
	// They lie behind the head of the image, as many as it says.
	return unsafe.Slice((*byte)(unsafe.Add(image, unsafe.Sizeof(C.raw_image{}))), width*height*3)
}

// Free frees an image.
func Free(image unsafe.Pointer) { C.raw_free(image) }

// Destructor returns the C function, void (*)(void *), that frees an image.
func Destructor() unsafe.Pointer { return C.raw_destructor() }

// Live returns how many images have been made and not been freed, and how many
// bytes they have.
func Live() (images int, bytes int64) { return int(C.raw_live()), int64(C.raw_bytes()) }

// result is what a call has made, or its error.
func result(what string, m C.raw_made) (Made, error) {
	if m.message[0] != 0 {
		return Made{}, errors.New(what + ": " + C.GoString(&m.message[0]))
	}
	return Made{unsafe.Pointer(m.image), int(m.size)}, nil
}

// cstring returns a copy of s that ends in a zero, in Go memory: C reads it
// during the call only, so it needs no C.CString and nothing to free it.
func cstring(s string) *C.char {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return (*C.char)(unsafe.Pointer(&b[0])) // bytes and chars are the same thing
}
