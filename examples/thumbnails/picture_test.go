//go:build linux && cgo && libjpeg

package main

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/examples/thumbnails/internal/picture"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/raw"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/testcard"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// pixels are an image in Go memory, in the layout of a picture.
type pixels struct {
	width, height int
	bytes         []byte
}

func (p pixels) at(x, y int) [3]int {
	b := p.bytes[(y*p.width+x)*3:]
	return [3]int{int(b[0]), int(b[1]), int(b[2])}
}

// copied returns a copy of the pixels of a picture.
func copied(p picture.Picture) (c pixels) {
	p.Use(func(width, height int, b []byte) { c = pixels{width, height, slices.Clone(b)} })
	return c
}

// fromGo returns the pixels of a Go image.
func fromGo(m image.Image) pixels {
	b := m.Bounds()
	p := pixels{width: b.Dx(), height: b.Dy()}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := color.RGBAModel.Convert(m.At(x, y)).(color.RGBA)
			p.bytes = append(p.bytes, c.R, c.G, c.B)
		}
	}
	return p
}

// goDecodes returns the pixels of a file, decoded by Go.
func goDecodes(t *testing.T, file string) pixels {
	t.Helper()
	b, err := os.ReadFile(file)
	testcall.Must(t, err)
	m, err := jpeg.Decode(bytes.NewReader(b))
	testcall.Must(t, err)
	return fromGo(m)
}

// differ returns the largest and the mean difference between the bytes of two images
// of one size.
func differ(t *testing.T, a, b pixels) (most int, mean float64) {
	t.Helper()
	if a.width != b.width || a.height != b.height || len(a.bytes) != len(b.bytes) {
		t.Fatalf("%d x %d pixels in %d bytes, want %d x %d in %d", a.width, a.height, len(a.bytes), b.width, b.height, len(b.bytes))
	}
	sum := 0
	for i := range a.bytes {
		d := int(a.bytes[i]) - int(b.bytes[i])
		d = max(d, -d)
		sum, most = sum+d, max(most, d)
	}
	return most, float64(sum) / float64(len(a.bytes))
}

// opened decodes a file.
func opened(t *testing.T, v variant, file string) picture.Picture {
	t.Helper()
	p, err := v.open(file)
	testcall.Must(t, err)
	return p
}

// card writes a test card to a file and returns its name.
func card(t *testing.T, width, height int) string {
	t.Helper()
	files, err := testcard.Make(t.TempDir(), 1, width, height)
	testcall.Must(t, err)
	return files[0]
}

// bindings are the variants without pace.
func bindings(t *testing.T, f func(*testing.T, variant)) {
	for _, v := range variants {
		if v.pace {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			f(t, v)
			settled(t)
		})
	}
}

// settled waits until all images are freed.
func settled(t *testing.T) {
	t.Helper()
	testcall.Want(t, settle(t.Context()))
	if images, bytes := raw.Live(); images != 0 || bytes != 0 {
		t.Errorf("%d images of %d bytes are live, want none", images, bytes)
	}
}

// TestGrayIsAsGoDecodesIt: without colour two decoders differ only in rounding.
func TestGrayIsAsGoDecodesIt(t *testing.T) {
	from := testcard.New(7, 333, 217)
	gray := image.NewGray(from.Bounds())
	for i := range gray.Pix {
		gray.Pix[i] = from.Pix[4*i]
	}
	file := filepath.Join(t.TempDir(), "gray.jpg")
	testcall.Must(t, testcard.Write(file, gray))
	want := goDecodes(t, file)
	bindings(t, func(t *testing.T, v variant) {
		if most, mean := differ(t, copied(opened(t, v, file)), want); most > 2 || mean > 0.2 {
			t.Errorf("the pixels differ by up to %d, %.3f in the mean", most, mean)
		}
	})
}

// TestColoursAreThoseOfTheCard: a file has colours for a quarter of the pixels, and
// decoders differ in how they compute the others.
func TestColoursAreThoseOfTheCard(t *testing.T) {
	const width, height = 640, 320
	file := card(t, width, height)
	want := goDecodes(t, file)
	bindings(t, func(t *testing.T, v variant) {
		got := copied(opened(t, v, file))
		if _, mean := differ(t, got, want); mean > 2 {
			t.Errorf("the bytes differ by %.3f in the mean from what Go decodes", mean)
		}
		for i, c := range testcard.Bars {
			at := got.at((2*i+1)*width/len(testcard.Bars)/2, height/4)
			for k, want := range []uint8{c.R, c.G, c.B} {
				if d := at[k] - int(want); d < -3 || d > 3 {
					t.Errorf("bar %d is %v, want %v", i, at, c)
				}
			}
		}
	})
}

func TestScaleTakesMeans(t *testing.T) {
	file := card(t, 201, 77)
	bindings(t, func(t *testing.T, v variant) {
		large := opened(t, v, file)
		from := copied(large)
		for _, width := range []int{1, 2, 3, 50, 67, 100, 200, 201} {
			small, err := large.Scale(width)
			testcall.Must(t, err)
			want := pixels{width: width, height: max(77*width/201, 1)}
			for y := range want.height {
				for x := range width {
					var sum [3]int
					n := 0
					for fy := y * 77 / want.height; fy < (y+1)*77/want.height; fy++ {
						for fx := x * 201 / width; fx < (x+1)*201/width; fx++ {
							for k, c := range from.at(fx, fy) {
								sum[k] += c
							}
							n++
						}
					}
					for k := range 3 {
						want.bytes = append(want.bytes, byte((sum[k]+n/2)/n))
					}
				}
			}
			if most, _ := differ(t, copied(small), want); most != 0 {
				t.Errorf("scaled to a width of %d, bytes differ by up to %d", width, most)
			}
		}
		if most, _ := differ(t, copied(large), from); most != 0 {
			t.Error("scaling has changed the picture")
		}
	})
}

func TestWhatIsWrittenGoDecodes(t *testing.T) {
	file := card(t, 320, 240)
	bindings(t, func(t *testing.T, v variant) {
		large := opened(t, v, file)
		small, err := large.Scale(80)
		testcall.Must(t, err)
		out := filepath.Join(t.TempDir(), "small.jpg")
		testcall.Must(t, small.Write(out))
		if _, mean := differ(t, goDecodes(t, out), copied(small)); mean > 5 {
			t.Errorf("the bytes differ by %.3f in the mean", mean)
		}
	})
}

func TestErrorsSayWhatIsWrongAndLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	file := card(t, 320, 240)
	good, err := os.ReadFile(file)
	testcall.Must(t, err)
	write := func(name string, b []byte) string {
		name = filepath.Join(dir, name)
		testcall.Must(t, os.WriteFile(name, b, 0o666))
		return name
	}
	bindings(t, func(t *testing.T, v variant) {
		for _, c := range []struct{ file, want string }{
			{filepath.Join(dir, "none.jpg"), "No such file"},
			{write("empty.jpg", nil), "Empty input file"},
			{write("text.jpg", []byte("no image")), "Not a JPEG file"},
			{write("half.jpg", good[:len(good)/2]), "Premature end of JPEG file"},
			{write("header.jpg", good[:100]), "Premature end of JPEG file"},
		} {
			if _, err := v.open(c.file); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.file) {
				t.Errorf("%s: error %v, want %q", filepath.Base(c.file), err, c.want)
			}
		}
		if images, _ := raw.Live(); images != 0 {
			t.Errorf("%d images are live after errors", images)
		}
		p := opened(t, v, file)
		for _, width := range []int{0, -1, 321} {
			if _, err := p.Scale(width); err == nil {
				t.Errorf("a picture of 320 pixels was scaled to %d", width)
			}
		}
		if err := p.Write(filepath.Join(dir, "no", "such", "directory.jpg")); err == nil || !strings.Contains(err.Error(), "No such file") {
			t.Errorf("written into no directory: error %v", err)
		}
		// A device that is always full, whose error comes when the file is closed.
		if err := p.Write("/dev/full"); err == nil {
			t.Error("written to a full device without an error")
		}
	})
}

// TestHammerPictures has pictures for each goroutine, and one that they share.
func TestHammerPictures(t *testing.T) {
	file := card(t, 320, 240)
	bindings(t, func(t *testing.T, v variant) {
		shared := opened(t, v, file)
		want := copied(shared)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					own, err := v.open(file)
					if err != nil {
						t.Error(err)
						return
					}
					small, err := shared.Scale(160)
					if err != nil {
						t.Error(err)
						return
					}
					same, err := own.Scale(160)
					if err != nil {
						t.Error(err)
						return
					}
					if !bytes.Equal(copied(small).bytes, copied(same).bytes) || !bytes.Equal(copied(own).bytes, want.bytes) {
						t.Error("pictures of one file differ")
						return
					}
				}
			})
		}
		wg.Wait()
	})
}
