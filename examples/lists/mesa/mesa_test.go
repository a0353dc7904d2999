//go:build cgo && osmesa

package mesa

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"
)

const points = 5000 // of a frame: 10,004 calls

func newCanvas(t testing.TB) *Canvas {
	c, err := NewCanvas(320, 200)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestFrames draws frames both ways. The images are equal.
func TestFrames(t *testing.T) {
	c := newCanvas(t)
	var last []byte
	for frame := range 5 {
		if err := c.DrawPlain(frame, points); err != nil {
			t.Fatal(err)
		}
		plain := bytes.Clone(c.Pixels())
		if err := c.DrawPlain(frame+100, points); err != nil { // another image
			t.Fatal(err)
		}
		if bytes.Equal(c.Pixels(), plain) || bytes.Equal(last, plain) {
			t.Fatal("two frames are equal")
		}
		if err := c.DrawList(t.Context(), frame, points); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(c.Pixels(), plain) {
			t.Fatalf("frame %d differs", frame)
		}
		last = plain
	}
}

// BenchmarkFrame draws frames in turns, and reports the median ratio.
func BenchmarkFrame(b *testing.B) {
	c := newCanvas(b)
	ctx := context.Background()
	var ratios []float64
	for b.Loop() {
		for frame := range 51 {
			start := time.Now()
			if err := c.DrawPlain(frame, points); err != nil {
				b.Fatal(err)
			}
			middle := time.Now()
			if err := c.DrawList(ctx, frame, points); err != nil {
				b.Fatal(err)
			}
			ratios = append(ratios, float64(time.Since(middle))/float64(middle.Sub(start)))
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-cgo")
	b.ReportMetric(0, "ns/op")
}
