//go:build linux && cgo && libjpeg

// Package owned has pictures whose memory is freed by package own. It passes their
// sizes to own, where package pace, if it is started, sees them.
package owned

import (
	"github.com/cheapgo/cheap/examples/thumbnails/internal/picture"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/raw"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// An Image is a picture that owns its memory. It has no Close, because a Picture has
// none.
type Image struct{ h own.Handle[*raw.Image] }

var images = own.NewPool(own.Options{
	Name:    "thumbnails.Image",
	CHeap:   true, // malloc's, which package cmem does not count twice then
	Release: libc.Destructor(raw.Destructor()),
})

// Open decodes a JPEG file.
func Open(file string) (picture.Picture, error) { return owned(raw.Read(file)) }

// Scale returns a smaller picture of the same shape.
func (m *Image) Scale(width int) (p picture.Picture, err error) {
	m.h.Use(func(image *raw.Image) { p, err = owned(raw.Scale(image, width)) })
	return p, err
}

// Write encodes the picture to a JPEG file.
func (m *Image) Write(file string) (err error) {
	m.h.Use(func(image *raw.Image) { err = raw.Write(image, file, picture.Quality) })
	return err
}

// Use calls f with the size and the bytes, which f must not keep.
func (m *Image) Use(f func(width, height int, pixels []byte)) {
	m.h.Use(func(image *raw.Image) {
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
	if err := m.h.Own(images, made.Image, made.Size); err != nil {
		raw.Free(made.Image)
		return nil, err
	}
	return m, nil
}
