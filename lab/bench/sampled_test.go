//go:build cgo

package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/guard"
	"github.com/cheapgo/cheap/internal/sample"
)

// guardRate is what the documentation of inspect.SetGuardRate proposes for production.
const guardRate = 10_000

// BenchmarkSampled reports what samples at the default rate cost: the time
// of each trace with them, divided by that without. The two take turns.
func BenchmarkSampled(b *testing.B) {
	compareTraces(b, "x-unsampled", func(on bool) {
		sample.SetRate(0)
		if on {
			sample.SetRate(sample.DefaultRate)
		}
	})
}

// BenchmarkGuarded is BenchmarkSampled for guard pages around one block in 10,000.
func BenchmarkGuarded(b *testing.B) {
	compareTraces(b, "x-unguarded", func(on bool) {
		guard.SetRate(0)
		if on {
			guard.SetRate(guardRate)
		}
	})
}

// compareTraces reports the time of each trace after set(true), divided by that after
// set(false).
func compareTraces(b *testing.B, unit string, set func(on bool)) {
	defer set(false)
	files, err := filepath.Glob(*traces)
	if err != nil || len(files) == 0 {
		b.Fatal("no traces match " + *traces)
	}
	for _, file := range files {
		for _, allocator := range []string{"heap", "local"} {
			name, _, _ := strings.Cut(filepath.Base(file), ".")
			b.Run(fmt.Sprintf("work=trace-%s/allocator=%s", name, allocator), func(b *testing.B) {
				session := newSession(b, file, allocator)
				at := func(on bool, turn int) float64 {
					set(on)
					took, err := session.Round(context.Background(), turn)
					if err != nil {
						b.Fatal(err)
					}
					return float64(took[0])
				}
				var ratios []float64
				for b.Loop() {
					at(false, 0)
					at(true, 0)
					for turn := range sessions * rounds {
						if turn%2 == 0 {
							off := at(false, turn)
							ratios = append(ratios, at(true, turn)/off)
						} else {
							on := at(true, turn)
							ratios = append(ratios, on/at(false, turn))
						}
					}
				}
				report(b, unit, median(ratios))
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
