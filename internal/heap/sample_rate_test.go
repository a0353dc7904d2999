package heap

import (
	"math"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// TestSampleRateChanges has goroutines that only take a block and free it, so that their
// caches never run out, while the rate changes. Each must notice.
func TestSampleRateChanges(t *testing.T) {
	testheap.WithRate(t, 0)
	h := NewHeap(t, Options{Name: testheap.UniqueName(t)})
	l := h.NewLocal()
	for range 1000 {
		h.Free(h.Malloc(64))
		l.Free(l.Malloc(64))
	}
	if h.sampled.Load() != nil {
		t.Fatal("something was sampled at rate 0")
	}
	for range 3 {
		sample.SetRate(1)
		before := testheap.SampledIn(h.Name(), "")
		for range 10 {
			h.Free(h.Malloc(64))
			l.Free(l.Malloc(64))
		}
		if got := testheap.SampledIn(h.Name(), ""); got.Allocs-before.Allocs != 20 {
			t.Errorf("at rate 1 %v of 20 blocks are sampled", got.Allocs-before.Allocs)
		}
		sample.SetRate(0)
		before = testheap.SampledIn(h.Name(), "")
		for range 10 {
			h.Free(h.Malloc(64))
			l.Free(l.Malloc(64))
		}
		if got := testheap.SampledIn(h.Name(), ""); got.Allocs != before.Allocs {
			t.Errorf("at rate 0 %v blocks are sampled", got.Allocs-before.Allocs)
		}
	}
	l.Destroy()
}

// TestSampleRateRaces changes the rate while goroutines allocate; at the end every cache must
// have the last one.
func TestSampleRateRaces(t *testing.T) {
	testheap.WithRate(t, 0)
	testheap.SetDecay(t, -1) // a cache that rests would be taken, with its counts
	h := NewHeap(t, Options{Name: testheap.UniqueName(t)})
	var loops sync.WaitGroup
	quit := make(chan struct{})
	for range 4 {
		loops.Go(func() {
			l := h.NewLocal()
			defer l.Destroy()
			for {
				select {
				case <-quit:
					before := l.k.class(sizeclass.Of(64)).takes
					for range 10 {
						l.Free(l.Malloc(64))
					}
					if n := l.k.class(sizeclass.Of(64)).takes - before; n != 0 {
						t.Errorf("%d of 10 blocks are not sampled", n)
					}
					return
				default:
					l.Free(l.Malloc(64))
					h.Free(h.Malloc(200))
				}
			}
		})
	}
	for i := range 500 {
		sample.SetRate(int64([]int{0, 64, 4096, 0, 1}[i%5]))
	}
	sample.SetRate(1)
	close(quit)
	loops.Wait()
}

// TestSampleGaps looks at how many blocks lie between two samples of a class: the gaps have
// the geometric distribution. A χ² test, which a right program fails once in 10⁵ runs.
func TestSampleGaps(t *testing.T) {
	const size, rate, samples = 96, 2000, 20000
	testheap.WithRate(t, rate)
	h := NewHeap(t, Options{Name: testheap.UniqueName(t)})
	p := 1 - math.Exp(-float64(size)/rate)
	const bins = 20
	var gaps [bins]float64
	gap, seen := 0, 0
	for seen < samples {
		b := h.Malloc(size)
		if span.Find(uintptr(b)).LoadTag()&span.KindSampled != 0 {
			q := 1 - math.Pow(1-p, float64(gap)) // quantile of the gap: uniform but for steps
			gaps[min(bins-1, int(q*bins))]++
			gap = 0
			seen++
		} else {
			gap++
		}
		h.Free(b)
	}
	// What the distribution gives each bin, exactly.
	var want [bins]float64
	for g := range 100_000 {
		q := 1 - math.Pow(1-p, float64(g))
		want[min(bins-1, int(q*bins))] += math.Pow(1-p, float64(g)) * p * samples
	}
	chi := 0.0
	used := 0
	for i := range bins {
		if want[i] < 5 {
			continue
		}
		used++
		chi += (gaps[i] - want[i]) * (gaps[i] - want[i]) / want[i]
	}
	// The 1 − 10⁻⁵ quantile of χ² with 19 degrees of freedom is 56.9.
	if used != bins || chi > 56.9 {
		t.Errorf("χ² is %.1f in %d bins: %v, want %v", chi, used, gaps, want)
	}
}

// TestSampleWeights allocates blocks of many sizes in all ways, and compares the estimate of
// their number and bytes with the truth, site by site. It does so in a process whose table of
// samples is empty: a large one makes one site of several sizes.
func TestSampleWeights(t *testing.T) {
	output, passed := testchild.Test(t, sampleWeights)
	if !passed {
		t.Error(output)
	}
}

func sampleWeights(t *testing.T) {
	const rate = 8 << 10
	testheap.WithRate(t, rate)
	h, l := NewHeapAndLocal(t, Options{Name: testheap.UniqueName(t)})
	for _, size := range []int{16, 64, 300, 1000, 5000, 20_000, 32 << 10, 50 << 10} {
		n := max(1000, 10_000_000/size)
		for i := range n {
			switch i % 4 {
			case 0:
				h.Free(h.Malloc(size))
			case 1:
				l.Free(l.Malloc(size))
			case 2:
				h.Free(h.Calloc(1, size))
			case 3:
				l.Free(h.Realloc(h.Malloc(1), size))
			}
		}
		got := 0.0
		usable := GoodSize(size)
		for _, s := range sample.Sites() {
			if s.Heap == h.Name() && int(s.Size) == usable {
				got += s.Allocs
			}
		}
		// The standard deviation of the sum of the weights.
		pr := 1 - math.Exp(-float64(usable)/rate)
		if sd := math.Sqrt(float64(n) * (1 - pr) / pr); math.Abs(got-float64(n)) > 5*sd+0.001*float64(n) {
			t.Errorf("%d blocks of %d bytes are estimated as %.0f; the standard deviation is %.0f", n, usable, got, sd)
		}
	}
}

// TestSampledDestroy destroys a heap that has sampled blocks.
func TestSampledDestroy(t *testing.T) {
	testheap.WithRate(t, 1)
	h, err := New(Options{})
	testcall.Must(t, err)
	live := sample.Live()
	for _, size := range []int{16, 1000, 40 << 10, span.OwnMapping} {
		h.Malloc(size)
	}
	if n := sample.Live() - live; n != 4 {
		t.Errorf("%d live samples, want 4", n)
	}
	if err := h.Destroy(); err == nil {
		t.Error("Destroy of a heap with sampled blocks returns nil")
	}
	testcall.Must(t, h.DestroyAll())
	if n := sample.Live() - live; n != 0 {
		t.Errorf("%d live samples after DestroyAll", n)
	}
}

// TestSamplesAtLimit has a heap whose limit leaves no room for a span of samples. Blocks are
// then not sampled, and nothing is refused that would not be refused without samples.
func TestSamplesAtLimit(t *testing.T) {
	testheap.WithRate(t, 1)
	h, err := New(Options{Limit: 80 << 10})
	testcall.Must(t, err)
	p := h.Malloc(100)
	q := h.Malloc(200)
	if p == nil {
		t.Error("the first block is refused")
	}
	if q != nil {
		t.Error("two classes fit into 80 KiB")
	}
	h.Free(p)
	if q = h.Malloc(200); q == nil {
		t.Error("a block is refused although the heap is empty")
	}
	h.Free(q)
	testcall.Want(t, h.Destroy())
}
