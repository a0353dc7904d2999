// Package testcard makes pictures, as JPEG files. It uses Go's own encoder, so that a
// test of libjpeg-turbo does not compare the library with itself.
package testcard

import (
	"bufio"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Bars are the colours of the upper half, from the left, each as wide as the
// others.
var Bars = []color.RGBA{
	{235, 235, 235, 255},
	{235, 235, 16, 255},
	{16, 235, 235, 255},
	{16, 235, 16, 255},
	{235, 16, 235, 255},
	{235, 16, 16, 255},
	{16, 16, 235, 255},
	{16, 16, 16, 255},
}

// New returns a card: bars above, and below a gradient with grain in it, as
// there is in photographs, which differs from one seed to the next.
func New(seed uint64, width, height int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	random := rand.New(rand.NewPCG(seed, 0))
	for y := range height {
		row := m.Pix[y*m.Stride:][:4*width]
		for x := range width {
			c := Bars[x*len(Bars)/width]
			if y >= height/2 {
				grain := random.Uint32()
				c.R = uint8(220*x/width) + uint8(grain&31)
				c.G = uint8(220*y/height) + uint8(grain>>5&31)
				c.B = uint8(220*(x+y)/(width+height)) + uint8(grain>>10&31)
			}
			copy(row[4*x:], []byte{c.R, c.G, c.B, c.A})
		}
	}
	return m
}

// Make writes n cards to a directory, and returns the names of the files.
func Make(dir string, n, width, height int) ([]string, error) {
	var files []string
	for i := range n {
		name := filepath.Join(dir, fmt.Sprintf("card %d.jpg", i))
		if err := Write(name, New(uint64(i), width, height)); err != nil {
			return nil, err
		}
		files = append(files, name)
	}
	return files, nil
}

// Write encodes an image to a file, with the quality of a camera.
func Write(name string, m image.Image) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err = jpeg.Encode(w, m, &jpeg.Options{Quality: 90}); err == nil {
		err = w.Flush()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
