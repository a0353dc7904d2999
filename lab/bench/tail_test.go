//go:build cgo && unix

//cheapvet:ignore perobject this is what owners are compared with

package bench

import (
	"math/bits"
	"runtime"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/cside"
	"github.com/cheapgo/cheap/lab/internal/lifetime"
)

// A histogram counts times by their length in ns, in 32 steps for each doubling.
type histogram struct {
	counts [64 * 32]int
	n      int
}

func (h *histogram) add(d time.Duration) {
	h.counts[step32(uint64(d))]++
	h.n++
}

// step32 returns the step that v is in. From 32 on a step is at most 1/32 wide.
func step32(v uint64) int {
	shift := max(bits.Len64(v)-6, 0)
	return shift*32 + int(v>>shift)
}

// floor32 returns the smallest value of a step.
func floor32(step int) uint64 {
	if step < 64 {
		return uint64(step)
	}
	shift := step/32 - 1
	return uint64(step-shift*32) << shift
}

// quantile returns the time in ns that a part q of all times does not exceed.
func (h *histogram) quantile(q float64) float64 {
	rest := int(q * float64(h.n))
	for i, c := range h.counts {
		if rest -= c; rest < 0 {
			return float64(floor32(i))
		}
	}
	return 0
}

// registeredSink makes objects escape.
var registeredSink any

// registered times the call that makes an object the owner of its block, each call by
// itself, for n objects that are forgotten.
func registered(tb testing.TB, l *lifetime.Lifetime, n int, register func() time.Duration) *histogram {
	settle(tb, l)
	runtime.GC()
	l.Begin()
	h := new(histogram)
	for range n {
		h.add(register())
	}
	registeredSink = nil
	settle(tb, l)
	if err := l.Check(n); err != nil {
		tb.Error(err)
	}
	return h
}

// registrations returns the two calls that are compared.
func registrations(tb testing.TB) (own, cleanup func() time.Duration) {
	p := newPool(tb)
	own = func() time.Duration {
		o, block := new(lifetime.Owned), cside.CreateBlock()
		start := time.Now()
		err := p.Own(&o.Owner, block, cside.BlockSize)
		d := time.Since(start)
		if err != nil {
			tb.Fatal(err)
		}
		registeredSink = o
		return d
	}
	cleanup = func() time.Duration {
		o := lifetime.NewPlain()
		start := time.Now()
		runtime.AddCleanup(o, cside.Destroy, o.Block)
		d := time.Since(start)
		registeredSink = o
		return d
	}
	return own, cleanup
}

// BenchmarkOwnTail reports how long the slowest calls of Own take, beside those of
// AddCleanup. Both times include that of reading the clock. The promise is about the last
// quantile.
func BenchmarkOwnTail(b *testing.B) {
	const n = 500_000
	quantiles := []struct {
		name string
		q    float64
	}{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}}
	ours, theirs := make([][]float64, len(quantiles)), make([][]float64, len(quantiles))
	var ratios []float64
	for b.Loop() {
		own, cleanup := registrations(b)
		l := open(b, lifetime.Manual) // counts the blocks of C
		for turn := range rounds {
			var x, y *histogram
			if turn%2 == 0 {
				x = registered(b, l, n, own)
				y = registered(b, l, n, cleanup)
			} else {
				y = registered(b, l, n, cleanup)
				x = registered(b, l, n, own)
			}
			for i, q := range quantiles {
				ours[i] = append(ours[i], x.quantile(q.q))
				theirs[i] = append(theirs[i], y.quantile(q.q))
			}
			last := quantiles[len(quantiles)-1].q
			ratios = append(ratios, x.quantile(last)/y.quantile(last))
		}
	}
	for i, q := range quantiles {
		b.ReportMetric(median(ours[i]), "own-ns-"+q.name)
		b.ReportMetric(median(theirs[i]), "addcleanup-ns-"+q.name)
	}
	report(b, "x-addcleanup-p99.9", median(ratios))
	b.ReportMetric(0, "ns/op")
}

func TestRegistrations(t *testing.T) {
	own, cleanup := registrations(t)
	for _, f := range []func() time.Duration{own, cleanup} {
		if h := registered(t, open(t, lifetime.Manual), 1000, f); h.n != 1000 || h.quantile(0.5) <= 0 {
			t.Errorf("%d times, half of them within %v ns", h.n, h.quantile(0.5))
		}
	}
}

func TestHistogram(t *testing.T) {
	last := -1
	for v := uint64(0); v < 1<<40; v += v/100 + 1 {
		step := step32(v)
		if step < last || step > last+1 || floor32(step) > v || v-floor32(step) > v/32 {
			t.Fatalf("%d is in step %d, which begins at %d; the one before is %d", v, step, floor32(step), last)
		}
		last = step
	}
	h := new(histogram)
	for i := range 1000 {
		h.add(time.Duration(i))
	}
	for q, want := range map[float64]float64{0: 0, 0.05: 50, 0.5: 500, 0.999: 999} {
		if got := h.quantile(q); got > want || got < want*31/32-1 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}
