//go:build cgo && geos

package geos

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

func makeLine(t testing.TB, n int) *Line {
	p, err := NewLine(n, func(i int) XY { return XY{float64(i) / 7, -float64(i)} })
	testcall.Must(t, err)
	t.Cleanup(p.Close)
	return p
}

func TestRead(t *testing.T) {
	const n = 1000
	p := makeLine(t, n)
	plain, list := make([]XY, n), make([]XY, n)
	testcall.Must(t, p.ReadPlain(plain))
	testcall.Must(t, p.ReadList(t.Context(), list))
	if !slices.Equal(plain, list) {
		t.Error("a list reads other coordinates")
	}
	if plain[n-1] != (XY{float64(n-1) / 7, -(n - 1)}) {
		t.Errorf("the last point is %v", plain[n-1])
	}
}

// BenchmarkRead reads 10,000 points in turns, and reports the median ratio.
func BenchmarkRead(b *testing.B) {
	const n, rounds = 10_000, 41
	p := makeLine(b, n)
	out := make([]XY, n)
	ctx := context.Background()
	var ratios []float64
	for b.Loop() {
		for range rounds {
			start := time.Now()
			testcall.Must(b, p.ReadPlain(out))
			middle := time.Now()
			testcall.Must(b, p.ReadList(ctx, out))
			ratios = append(ratios, float64(time.Since(middle))/float64(middle.Sub(start)))
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-cgo")
	b.ReportMetric(0, "ns/op")
}
