//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"fmt"
	"testing"
	"time"

	"github.com/cheapgo/cheap/cmem/internal/cwork"
)

// BenchmarkMap compares a pair of mmap and munmap with the same calls of the system.
func BenchmarkMap(b *testing.B) {
	for _, n := range []int{4 << 10, 64 << 10, 1 << 20, 16 << 20} {
		for _, touched := range []bool{false, true} {
			b.Run(fmt.Sprintf("size=%dKiB/touched=%v", n>>10, touched), func(b *testing.B) {
				var took [2]time.Duration
				for i := 0; i < b.N; i++ {
					for k := range took {
						took[k] += cwork.MapPairs(100, n, k == 1, touched)
					}
				}
				b.ReportMetric(float64(took[0])/float64(took[1]), "ratio")
				b.ReportMetric(float64(took[1])/float64(100*b.N), "ns/system")
			})
		}
	}
}
