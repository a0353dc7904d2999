//go:build cgo && unix

package bench

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/cside"
	"github.com/cheapgo/cheap/lab/internal/lifetime"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// survive makes n objects with a block each, forgets all but one in one, at random, and
// collects until no more blocks are destroyed. It returns the processor time, and how
// many blocks are live for each that an object owns.
func survive(tb testing.TB, make func() any, n, one int) (cpu time.Duration, held float64) {
	before, begin := cside.Count(), cside.CPUTime()
	kept := []any{}
	for range n {
		if o := make(); rand.IntN(one) == 0 {
			kept = append(kept, o)
		}
	}
	const collections = 12 // what is left is looked at after two, and again after four more
	for range collections {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	cpu = cside.CPUTime() - begin
	c := cside.Count()
	live := c.Created - before.Created - (c.Destroyed - before.Destroyed)
	held = float64(live) / float64(len(kept))
	runtime.KeepAlive(kept)
	return cpu, held
}

// survivorRates are of how many objects one is kept.
var survivorRates = []int{10, 100, 1000}

// BenchmarkSurvivors reports what objects hold that outlive others: as a multiple of what
// they own, and the processor time of the round as a part of that with AddCleanup.
func BenchmarkSurvivors(b *testing.B) {
	cleanup := func() any { return lifetime.NewWithCleanup() }
	for _, one := range survivorRates {
		for _, batch := range []int{0, 4, 16, 64} {
			name := fmt.Sprintf("one=%d", one)
			if batch > 0 {
				name += fmt.Sprintf("/batch=%d", batch)
			}
			b.Run(name, func(b *testing.B) {
				const n = 300_000
				var share, held []float64
				for b.Loop() {
					for range rounds {
						p := own.NewPool(own.Options{Batch: batch, Release: libc.Destructor(cside.DestroyBlock, libc.NoCallback)})
						ours, times := survive(b, func() any {
							o := new(lifetime.Owned)
							if err := p.Own(&o.Owner, cside.CreateBlock(), cside.BlockSize); err != nil {
								b.Fatal(err)
							}
							return o
						}, n, one)
						theirs, _ := survive(b, cleanup, n, one)
						share = append(share, float64(ours)/float64(theirs))
						held = append(held, times)
						lifetime.ClosePool(p) // with the survivors of AddCleanup
						runtime.GC()
					}
				}
				if batch == 0 {
					report(b, "x-addcleanup-cpu", median(share))
				} else {
					b.ReportMetric(median(share), "x-addcleanup-cpu") // what a smaller batch would cost
				}
				b.ReportMetric(median(held), "held")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
