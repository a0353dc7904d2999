//go:build linux && cgo && libjpeg

//cheapvet:ignore perobject this is what owners are compared with

// Package cleanup has pictures whose memory is freed by runtime.AddCleanup. Their
// sizes are not reported.
package cleanup

import (
	"runtime"

	"github.com/cheapgo/cheap/examples/thumbnails/internal/picture"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/raw"
)

// An Image is a picture. Each method keeps it alive while C works with it: after its
// last use in Go an object is unreachable, even while a call of its own method is in
// C.
type Image struct{ image *raw.Image }

// Open decodes a JPEG file.
func Open(file string) (picture.Picture, error) { return registered(raw.Read(file)) }

// Scale returns a smaller picture of the same shape.
func (m *Image) Scale(width int) (picture.Picture, error) {
	defer runtime.KeepAlive(m)
	return registered(raw.Scale(m.image, width))
}

// Write encodes the picture to a JPEG file.
func (m *Image) Write(file string) error {
	defer runtime.KeepAlive(m)
	return raw.Write(m.image, file, picture.Quality)
}

// Use calls f with the size and the bytes, which f must not keep.
func (m *Image) Use(f func(width, height int, pixels []byte)) {
	defer runtime.KeepAlive(m)
	width, height := raw.Bounds(m.image)
	f(width, height, raw.Pixels(m.image))
}

func registered(made raw.Made, err error) (picture.Picture, error) {
	if err != nil {
		return nil, err
	}
	m := &Image{made.Image}
	runtime.AddCleanup(m, raw.Free, made.Image)
	return m, nil
}
