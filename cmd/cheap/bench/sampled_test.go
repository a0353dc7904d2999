//go:build cgo

package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/sample"
)

// sampledRate is inspect.DefaultRate.
const sampledRate = 512 << 10

// BenchmarkSampled reports what samples at the default rate of package inspect cost: the time
// of each trace with them, divided by that without. The two take turns.
func BenchmarkSampled(b *testing.B) {
	files, err := filepath.Glob(*traces)
	if err != nil || len(files) == 0 {
		b.Fatal("no traces match " + *traces)
	}
	for _, file := range files {
		for _, allocator := range []string{"heap", "local"} {
			name, _, _ := strings.Cut(filepath.Base(file), ".")
			b.Run(fmt.Sprintf("work=trace-%s/allocator=%s", name, allocator), func(b *testing.B) {
				session := newSession(b, file, allocator)
				defer sample.SetRate(0)
				at := func(rate int64, turn int) float64 {
					sample.SetRate(rate)
					took, err := session.Round(context.Background(), turn)
					if err != nil {
						b.Fatal(err)
					}
					return float64(took[0])
				}
				var ratios []float64
				for b.Loop() {
					at(0, 0)
					at(sampledRate, 0)
					for turn := range sessions * rounds {
						if turn%2 == 0 {
							off := at(0, turn)
							ratios = append(ratios, at(sampledRate, turn)/off)
						} else {
							on := at(sampledRate, turn)
							ratios = append(ratios, on/at(0, turn))
						}
					}
				}
				b.ReportMetric(median(ratios), "x-unsampled")
				b.ReportMetric(1.03, "bar")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
