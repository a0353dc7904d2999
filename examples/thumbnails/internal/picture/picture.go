// Package picture has the interface of the bindings. There is no Close: a binding
// frees pictures after they become unreachable.
package picture

// A Picture is an image in C memory. It does not change.
type Picture interface {
	// Scale returns a smaller picture of the same shape.
	Scale(width int) (Picture, error)

	// Write encodes the picture to a JPEG file.
	Write(file string) error

	// Use calls f with the size in pixels and the bytes, red, green and blue, rows
	// from the top. f must not keep the bytes.
	Use(f func(width, height int, pixels []byte))
}

// Open decodes a JPEG file.
type Open func(file string) (Picture, error)

// Quality is the JPEG quality of the files that Write makes.
const Quality = 85
