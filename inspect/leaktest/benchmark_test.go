package leaktest

import (
	"testing"

	"github.com/cheapgo/cheap/internal/watch/census"
)

// An allocating is a C heap of which each operation takes three blocks, of 100 bytes in all.
type allocating struct {
	census.CHeap
	off        string
	operations int64
}

func (c *allocating) Off() string { return c.off }
func (c *allocating) Read() census.CCounts {
	return census.CCounts{Mallocs: 7 + 3*c.operations, Bytes: 1000 + 100*c.operations}
}

func TestBenchmark(t *testing.T) {
	for _, loop := range []bool{false, true} {
		c := &allocating{operations: 5}
		defer census.SetCHeap(census.SetCHeap(c))
		r := testing.Benchmark(func(b *testing.B) {
			c.operations += 1000 // before the call
			Benchmark(b)
			if loop {
				for b.Loop() {
					c.operations++
				}
				return
			}
			for range b.N {
				c.operations++
			}
		})
		if r.N == 0 || r.Extra["C-B/op"] != 100 || r.Extra["C-allocs/op"] != 3 {
			t.Errorf("%d operations, %v", r.N, r.Extra)
		}
		c.off = "it is off"
		if r := testing.Benchmark(func(b *testing.B) { Benchmark(b) }); r.N == 0 || len(r.Extra) != 0 {
			t.Errorf("off: %d operations, %v", r.N, r.Extra)
		}
	}
	defer census.SetCHeap(census.SetCHeap(nil))
	if r := testing.Benchmark(func(b *testing.B) { Benchmark(b) }); r.N != 0 {
		t.Errorf("without cmem %d operations are measured", r.N)
	}
}
