//go:build cgo

package draw

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestFrames draws frames both ways. The images, and the counts of the library, are equal.
func TestFrames(t *testing.T) {
	const shapes, frames = 1000, 5
	plain, list := NewCanvas(320, 200), NewCanvas(320, 200)
	defer plain.Free()
	defer list.Free()
	for frame := range frames {
		plain.DrawPlain(frame, shapes)
		testcall.Must(t, list.DrawList(t.Context(), frame, shapes))
		if !slices.Equal(plain.Pixels(), list.Pixels()) {
			t.Fatalf("frame %d differs", frame)
		}
	}
	for _, c := range []*Canvas{plain, list} {
		if calls, wrong := c.Counts(); calls != frames*CallsOfFrame(shapes) || wrong != 0 {
			t.Errorf("the library had %d calls, %d of them wrong", calls, wrong)
		}
	}
	if pixels := plain.Pixels(); !slices.ContainsFunc(pixels, func(p uint32) bool { return p != 0 }) {
		t.Error("the image is empty")
	}
}

// BenchmarkFrame draws frames of 10,000 calls in turns, and reports the median ratio.
func BenchmarkFrame(b *testing.B) {
	const shapes, rounds = 1000, 101
	c := NewCanvas(320, 200)
	defer c.Free()
	ctx := context.Background()
	var ratios []float64
	for b.Loop() {
		for frame := range rounds {
			start := time.Now()
			c.DrawPlain(frame, shapes)
			middle := time.Now()
			testcall.Must(b, c.DrawList(ctx, frame, shapes))
			ratios = append(ratios, float64(time.Since(middle))/float64(middle.Sub(start)))
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-cgo")
	b.ReportMetric(0, "ns/op")
}
