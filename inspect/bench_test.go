package inspect_test

import (
	"fmt"
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect"
)

// BenchmarkRate has a pair of Malloc and Free, with no samples and with those of the default
// rate. Beside it, what one sample costs: pairs with a rate of 1.
func BenchmarkRate(b *testing.B) {
	for _, size := range []int{16, 100, 1000, 10_000} {
		for _, rate := range []int{0, inspect.DefaultRate, 1} {
			b.Run(fmt.Sprintf("size=%d/rate=%d", size, rate), func(b *testing.B) {
				withRate(b, rate)
				h := newHeap(b, cheap.HeapOptions{})
				for b.Loop() {
					h.Free(h.Malloc(size))
				}
			})
		}
	}
}
