package heap

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/sample"
	"github.com/cheapgo/cheap/internal/shadow"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
	"github.com/cheapgo/cheap/internal/testchild"
	"github.com/cheapgo/cheap/internal/testheap"
)

// uniqueName returns a name for a heap whose samples are not to be counted with those of
// another, also where a test runs several times.
func uniqueName(t *testing.T) string { return fmt.Sprint(t.Name(), " ", heapIDs.Load()) }

// sampledIn adds up the sites of a heap whose stacks have a function with that name; all of
// them if it is "".
func sampledIn(h *Heap, function string) (sum sample.Site) {
	for _, s := range sample.Sites() {
		if s.Heap != h.Name() || function != "" && !strings.Contains(stackText(s.PCs), function) {
			continue
		}
		sum.Allocs += s.Allocs
		sum.Frees += s.Frees
		for i, n := range s.Lives {
			sum.Lives[i].Blocks += n.Blocks
		}
	}
	return sum
}

func stackText(pcs []uintptr) string {
	var b strings.Builder
	for frames := runtime.CallersFrames(pcs); ; {
		f, more := frames.Next()
		fmt.Fprintln(&b, f.Function)
		if !more {
			return b.String()
		}
	}
}

// TestEverySample samples every block, in each way to allocate one, of each size class and
// of large sizes. Every count must be exact, and so must those of the heap.
func TestEverySample(t *testing.T) {
	testheap.WithRate(t, 1)
	h := newHeap(t, Options{Name: uniqueName(t)})
	l := h.NewLocal()
	ways := []struct {
		name string
		take func(size int) unsafe.Pointer
		free func(unsafe.Pointer)
	}{
		{"Malloc", h.Malloc, h.Free},
		{"TryMalloc", func(size int) unsafe.Pointer { p, _ := h.TryMalloc(size); return p }, h.Free},
		{"Calloc", func(size int) unsafe.Pointer { return h.Calloc(1, size) }, h.Free},
		{"AlignedMalloc", func(size int) unsafe.Pointer { return h.AlignedMalloc(size, 64) }, h.Free},
		{"Realloc", func(size int) unsafe.Pointer { return h.Realloc(nil, size) }, l.Free},
		{"Local.Malloc", l.Malloc, l.Free},
		{"Local.TryMalloc", func(size int) unsafe.Pointer { p, _ := l.TryMalloc(size); return p }, h.Free},
		{"Local.Calloc", func(size int) unsafe.Pointer { return l.Calloc(1, size) }, l.Free},
		{"Local.AlignedMalloc", func(size int) unsafe.Pointer { return l.AlignedMalloc(size, 64) }, h.Free},
		{"Local.Realloc", func(size int) unsafe.Pointer { return l.Realloc(nil, size) }, l.Free},
	}
	var sizes []int
	for _, c := range sizeclass.Classes {
		sizes = append(sizes, int(c.Size))
	}
	sizes = append(sizes, 40<<10, 1<<20, span.OwnMapping)
	want := 0.0
	for _, w := range ways {
		for _, size := range sizes {
			for round := range 2 { // the second gets what the first has freed
				p := w.take(size)
				want++
				if strings.HasSuffix(w.name, "Calloc") {
					if err := shadow.Zero(p, size); err != nil {
						t.Fatalf("%s(%d): %v", w.name, size, err)
					}
				}
				clear(unsafe.Slice((*byte)(p), min(size, 1<<20)))
				*(*byte)(p) = 1
				if round == 0 { // there are samples of other tests to go through
					if got := sampledIn(h, ""); got.Allocs != want || got.Frees != want-1 {
						t.Fatalf("%s(%d): %v allocated and %v freed, want %v and %v", w.name, size, got.Allocs, got.Frees, want, want-1)
					}
				}
				if s := h.Stats(); s.Blocks != 1 || s.Bytes != int64(h.UsableSize(p)) || s.Mallocs != int64(want) {
					t.Fatalf("%s(%d): %+v", w.name, size, s)
				}
				w.free(p)
			}
		}
	}
	got := sampledIn(h, "TestEverySample")
	lives := 0.0
	for _, n := range got.Lives {
		lives += n.Blocks
	}
	if got.Allocs != want || got.Frees != want || lives != want {
		t.Errorf("%v allocated, %v freed, %v lives, want %v of each", got.Allocs, got.Frees, lives, want)
	}
	l.Destroy()
	if s := h.Stats(); s.Blocks != 0 || s.Cached != 0 {
		t.Errorf("at the end: %+v", s)
	}
}

// TestSampledRealloc resizes blocks that are sampled: small ones that move and that stay, and
// large ones that grow and shrink in place and by moving their pages.
func TestSampledRealloc(t *testing.T) {
	testheap.WithRate(t, 1)
	h := newHeap(t, Options{Name: uniqueName(t)})
	p := h.Malloc(100)
	for _, size := range []int{110, 60, 2000, 40 << 10, 90 << 10, 50 << 10, 1 << 20, span.OwnMapping, 2 * span.OwnMapping, span.OwnMapping + 5, 1 << 20, 10} {
		fillAll(p, min(size, h.UsableSize(p)))
		if p = h.Realloc(p, size); p == nil {
			t.Fatal("no memory")
		}
		mustBeFull(t, p, min(size, 10))
		live := 0.0
		for _, s := range sample.Sites() {
			if s.Heap == h.Name() && s.Allocs > s.Frees {
				live += s.Allocs - s.Frees
				if int(s.Size) != h.UsableSize(p) {
					t.Errorf("after Realloc to %d the sample has %d bytes, the block %d", size, s.Size, h.UsableSize(p))
				}
			}
		}
		if live != 1 {
			t.Errorf("after Realloc to %d there are %v live samples", size, live)
		}
	}
	h.Free(p)
	if got := sampledIn(h, ""); got.Allocs != got.Frees {
		t.Errorf("%v allocated, %v freed", got.Allocs, got.Frees)
	}
}

func fillAll(p unsafe.Pointer, n int) {
	for i := range unsafe.Slice((*byte)(p), n) {
		*(*byte)(unsafe.Add(p, i)) = 0xA5
	}
}

func mustBeFull(t *testing.T, p unsafe.Pointer, n int) {
	t.Helper()
	if i := slices.IndexFunc(unsafe.Slice((*byte)(p), n), func(b byte) bool { return b != 0xA5 }); i >= 0 {
		t.Fatalf("byte %d is lost", i)
	}
}

// TestReallocSamples moves blocks that were not sampled, when the next one is to be.
func TestReallocSamples(t *testing.T) {
	testheap.WithRate(t, 0)
	h := newHeap(t, Options{Name: uniqueName(t)})
	l := h.NewLocal()
	defer l.Destroy()
	for _, realloc := range []func(unsafe.Pointer, int) unsafe.Pointer{h.Realloc, l.Realloc} {
		sample.SetRate(0)
		h.Free(h.Malloc(500)) // the caches have blocks of both sizes
		l.Free(l.Malloc(500))
		p := l.Malloc(100)
		l.Free(l.Malloc(100))
		before := sampledIn(h, "").Allocs
		sample.SetRate(1)
		p = realloc(p, 500)
		if n := sampledIn(h, "").Allocs - before; n != 1 {
			t.Errorf("%v samples, want 1", n)
		}
		h.Free(p)
	}
}

// TestSampledMisuse frees sampled blocks wrongly.
func TestSampledMisuse(t *testing.T) {
	testheap.WithRate(t, 1)
	h := newHeap(t, Options{Name: uniqueName(t)})
	other := newHeap(t, Options{Name: uniqueName(t)})
	for _, size := range []int{16, 100, 5000, 40 << 10} {
		p := h.Malloc(size)
		next := h.Malloc(size)
		mustMisuse(t, func() { other.Free(p) })
		mustMisuse(t, func() { h.Free(unsafe.Add(p, 8)) })
		mustMisuse(t, func() { h.Free(unsafe.Add(p, 1)) })
		h.Free(p)
		mustMisuse(t, func() { h.Free(p) })
		h.Free(next)
		mustMisuse(t, func() { h.Free(next) })
	}
	if got := sampledIn(h, ""); got.Allocs != 8 || got.Frees != 8 {
		t.Errorf("%v allocated, %v freed, want 8", got.Allocs, got.Frees)
	}
}

func mustMisuse(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if _, ok := recover().(*MisuseError); !ok {
			t.Error("no MisuseError")
		}
	}()
	f()
}

// TestSampleRateChanges has goroutines that only take a block and free it, so that their
// caches never run out, while the rate changes. Each must notice.
func TestSampleRateChanges(t *testing.T) {
	testheap.WithRate(t, 0)
	h := newHeap(t, Options{Name: uniqueName(t)})
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
		before := sampledIn(h, "")
		for range 10 {
			h.Free(h.Malloc(64))
			l.Free(l.Malloc(64))
		}
		if got := sampledIn(h, ""); got.Allocs-before.Allocs != 20 {
			t.Errorf("at rate 1 %v of 20 blocks are sampled", got.Allocs-before.Allocs)
		}
		sample.SetRate(0)
		before = sampledIn(h, "")
		for range 10 {
			h.Free(h.Malloc(64))
			l.Free(l.Malloc(64))
		}
		if got := sampledIn(h, ""); got.Allocs != before.Allocs {
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
	h := newHeap(t, Options{Name: uniqueName(t)})
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
	h := newHeap(t, Options{Name: uniqueName(t)})
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
	h := newHeap(t, Options{Name: uniqueName(t)})
	l := h.NewLocal()
	defer l.Destroy()
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err := h.DestroyAll(); err != nil {
		t.Fatal(err)
	}
	if n := sample.Live() - live; n != 0 {
		t.Errorf("%d live samples after DestroyAll", n)
	}
}

// TestSamplesAtLimit has a heap whose limit leaves no room for a span of samples. Blocks are
// then not sampled, and nothing is refused that would not be refused without samples.
func TestSamplesAtLimit(t *testing.T) {
	testheap.WithRate(t, 1)
	h, err := New(Options{Limit: 80 << 10})
	if err != nil {
		t.Fatal(err)
	}
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
	if err := h.Destroy(); err != nil {
		t.Error(err)
	}
}
