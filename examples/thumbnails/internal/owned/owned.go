//go:build linux && cgo && libjpeg

// Package owned has pictures whose memory is freed by package own. It passes their
// sizes to own, where package pace, if it is started, sees them.
package owned

import (
	"unsafe"

	"github.com/cheapgo/cheap/examples/thumbnails/internal/picture"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/raw"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// An Image is a picture that owns its memory.
type Image struct{ own.Owner }

var images = own.NewPool(own.Options{
	Name:    "thumbnails.Image",
	Release: libc.Destructor(raw.Destructor(), libc.NoCallback),
})

// Open decodes a JPEG file.
func Open(file string) (picture.Picture, error) { return owned(raw.Read(file)) }

// Scale returns a smaller picture of the same shape.
func (m *Image) Scale(width int) (p picture.Picture, err error) {
	m.Owner.Use(func(image unsafe.Pointer) { p, err = owned(raw.Scale(image, width)) })
	return p, err
}

// Write encodes the picture to a JPEG file.
func (m *Image) Write(file string) (err error) {
	m.Owner.Use(func(image unsafe.Pointer) { err = raw.Write(image, file, picture.Quality) })
	return err
}

// Use calls f with the size and the bytes, which f must not keep.
func (m *Image) Use(f func(width, height int, pixels []byte)) {
	m.Owner.Use(func(image unsafe.Pointer) {
		width, height := raw.Bounds(image)
		f(width, height, raw.Pixels(image))
	})
}

// owned makes a picture of the results of a C call. If it returns an error, that of
// the call or its own, the image is freed already.
func owned(made raw.Made, err error) (picture.Picture, error) {
	if err != nil {
		return nil, err
	}
	m := new(Image)
	if err := images.Own(&m.Owner, made.Image, made.Size); err != nil {
		raw.Free(made.Image)
		return nil, err
	}
	return m, nil
}
