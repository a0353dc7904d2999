package sample

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"
)

func TestDistance(t *testing.T) {
	if d := Distance(100, 0); d != Never {
		t.Errorf("at rate 0 the distance is %d", d)
	}
	if d := Distance(100, 1); d != 0 {
		t.Errorf("at rate 1 the distance is %d", d)
	}
	if d := Distance(1, math.MaxInt64); d < 0 || d > Never {
		t.Errorf("at the largest rate the distance is %d", d)
	}
	// The mean of the geometric distribution is (1 − p) / p.
	const n, size, rate = 200_000, 1000, 20_000
	sum := 0.0
	for range n {
		sum += float64(Distance(size, rate))
	}
	p := probability(size, rate)
	mean, sd := (1-p)/p, math.Sqrt(1-p)/p/math.Sqrt(n)
	if got := sum / n; math.Abs(got-mean) > 5*sd {
		t.Errorf("the mean distance is %.3f, want %.3f", got, mean)
	}
}

func TestChance(t *testing.T) {
	defer SetRate(SetRate(20_000))
	const n, size = 200_000, 1000
	hits := 0
	for range n {
		if Chance(size) {
			hits++
		}
	}
	p := probability(size, 20_000)
	if sd := math.Sqrt(n * p * (1 - p)); math.Abs(float64(hits)-n*p) > 5*sd {
		t.Errorf("%d of %d blocks are sampled, want about %.0f", hits, n, n*p)
	}
	SetRate(-5)
	if Rate() != 0 || Chance(1<<30) {
		t.Error("a negative rate samples")
	}
}

func TestAges(t *testing.T) {
	for _, row := range []struct {
		d    time.Duration
		want int
	}{{0, 0}, {9 * time.Microsecond, 0}, {10 * time.Microsecond, 1}, {time.Millisecond, 3}, {time.Hour, 9}, {1 << 62, 9}} {
		i := ageOf(row.d)
		if i != row.want {
			t.Errorf("%v is in range %d, want %d", row.d, i, row.want)
		}
		if to := AgeLimit(i); to != 0 && row.d >= to || i > 0 && row.d < AgeLimit(i-1) {
			t.Errorf("%v is outside of range %d", row.d, i)
		}
	}
}

var uniques int

// unique returns a name that no holder had, also if the test runs several times: sites stay.
func unique(name string) string {
	uniques++
	return fmt.Sprint(name, " ", uniques)
}

// TestTable adds, ends and moves samples, without a heap.
func TestTable(t *testing.T) {
	defer SetRate(SetRate(1))
	h := &Holder{Name: unique("table")}
	find := func(pool string) (sum Site) {
		for _, s := range Sites() {
			if s.Heap == h.Name && s.Pool == pool {
				sum.Allocs += s.Allocs
				sum.Frees += s.Frees
			}
		}
		return sum
	}
	before := Live()
	for p := uintptr(1000); p < 1010; p++ {
		Add(p, 64, h)
	}
	Add(1000, 64, h) // the block was freed unseen
	Remove(1001)
	Remove(1001)
	Remove(5)
	SetPool(1002, "pool")
	SetPool(1001, "pool")
	if s := find(""); s.Allocs != 10 || s.Frees != 2 {
		t.Errorf("without a pool %+v", s)
	}
	if s := find("pool"); s.Allocs != 1 || s.Frees != 0 {
		t.Errorf("of the pool %+v", s)
	}
	if n := Live() - before; n != 9 {
		t.Errorf("%d live samples", n)
	}
	live := 0.0
	for _, p := range Top(1000) {
		if f, _ := runtime.CallersFrames(p.PCs).Next(); f.Function == "github.com/cheapgo/cheap/internal/watch/sample.TestTable" {
			live += p.Live
		}
	}
	if live != 9*64 {
		t.Errorf("%v bytes are live, want %d", live, 9*64)
	}
	Drop(h)
	if n := Live() - before; n != 0 {
		t.Errorf("%d live samples after Drop", n)
	}
	SetRate(0)
	Add(2000, 64, h)
	if n := Live() - before; n != 0 {
		t.Error("a sample at rate 0")
	}
}

// TestManySites has one stack that allocates blocks of many sizes, from many heaps that have
// one name.
func TestManySites(t *testing.T) {
	defer SetRate(SetRate(1))
	const sizes, heaps = 100, 50
	p, name := uintptr(1<<20), unique("many")
	for range heaps {
		h := &Holder{Name: name}
		for size := range sizes {
			p += 16
			Add(p, uintptr(size+1), h)
		}
		Drop(h)
	}
	seen := map[uintptr]float64{}
	n := 0
	for _, s := range Sites() {
		if s.Heap == name {
			seen[s.Size] = s.Allocs
			n++
		}
	}
	if n != sizes || len(seen) != sizes {
		t.Errorf("%d sites of %d sizes, want %d", n, len(seen), sizes)
	}
	for size, allocs := range seen {
		if allocs != heaps {
			t.Errorf("size %d: %v blocks, want %d", size, allocs, heaps)
		}
	}
}
