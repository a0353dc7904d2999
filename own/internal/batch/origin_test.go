package batch

import (
	"math"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/watch/leaks"
)

// TestGap compares the gaps between samples with the geometric distribution, by the χ² test:
// of 40 classes of equal probability, and of the lowest bits.
func TestGap(t *testing.T) {
	const n, classes = 300_000, 40
	q := 1 - 1./leaks.Rate
	// The bounds of the classes are whole numbers, so the probabilities differ a bit.
	var bounds [classes - 1]uint32
	for i := range bounds {
		bounds[i] = uint32(math.Log1p(-float64(i+1)/classes) / math.Log(q))
	}
	class := func(gap uint32) int {
		for i, b := range bounds {
			if gap < b {
				return i
			}
		}
		return classes - 1
	}
	var counts [classes]float64
	var low [8]float64
	sum := 0.
	for range n {
		g := gap()
		counts[class(g)]++
		low[g%8]++
		sum += float64(g)
	}
	below := func(k uint32) float64 { return 1 - math.Pow(q, float64(k)) } // P(gap < k)
	chi := 0.
	for i, c := range counts {
		p := 1.
		if i < classes-1 {
			p = below(bounds[i])
		}
		if i > 0 {
			p -= below(bounds[i-1])
		}
		chi += (c - p*n) * (c - p*n) / (p * n)
	}
	if chi > 90 { // 39 degrees of freedom: by chance once in 200,000
		t.Errorf("χ² of the gaps is %.0f", chi)
	}
	chi = 0
	for i, c := range low {
		p := math.Pow(q, float64(i)) * (1 - q) / (1 - math.Pow(q, 8))
		chi += (c - p*n) * (c - p*n) / (p * n)
	}
	if chi > 40 { // 7 degrees of freedom: by chance once in 800,000
		t.Errorf("χ² of the lowest bits of the gaps is %.0f", chi)
	}
	if mean := sum / n; math.Abs(mean-(leaks.Rate-1)) > 1.2 {
		t.Errorf("the mean gap is %.1f", mean)
	}
}

// TestShares adds up to the whole, whatever the parts are.
func TestShares(t *testing.T) {
	for _, all := range []int64{0, 1, 7, 1 << 40, math.MaxInt64} {
		parts := []int64{3, 0, 1, 1 << 30, 5, 1}
		of, got := int64(0), int64(0)
		for _, p := range parts {
			of += p
		}
		share := shares(all, of)
		for _, p := range parts {
			s := share(p)
			if want := float64(all) / float64(of) * float64(p); math.Abs(float64(s)-want) > 1+want*1e-9 {
				t.Errorf("the share of %d in %d is %d, want %.0f", p, all, s, want)
			}
			got += s
		}
		if got != all {
			t.Errorf("shares of %d are %d in all", all, got)
		}
	}
	if s := shares(100, 0)(0); s != 0 {
		t.Errorf("a share of nothing is %d", s)
	}
}

// A Batch has a size class of Go's heap to itself, and each batch has one.
const _ = uint(208 - unsafe.Sizeof(Batch{}))
