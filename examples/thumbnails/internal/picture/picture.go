// Package picture says what a binding of images does. There is no Close: what
// is not reachable any more is freed, by whatever means the binding has.
package picture

// A Picture is an image in C memory. It does not change.
type Picture interface {
	// Scale returns a smaller picture of the same shape.
	Scale(width int) (Picture, error)

	// Write encodes the picture into a JPEG file.
	Write(file string) error

	// Use calls f with the size in pixels and the bytes, red, green and blue,
	// rows from the top, which are not to be kept beyond f.
	Use(f func(width, height int, pixels []byte))
}

// Open decodes a JPEG file.
type Open func(file string) (Picture, error)

// Quality is that of the files that are written.
const Quality = 85
