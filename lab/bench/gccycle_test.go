//go:build cgo && unix

package bench

import (
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/lab/internal/lifetime"
)

// A burden is the cost of live objects.
type burden struct {
	wall, cpu time.Duration // of one collection
	heap      float64       // bytes of the Go heap for each object, itself included
}

// The time of a collection is the median of so many.
const collections = 7

// measure has a population of n measured.
func measure(tb testing.TB, p *lifetime.Population, n int) burden {
	tb.Helper()
	b, err := p.Measure(n, collections)
	if err != nil {
		tb.Fatal(err)
	}
	slices.Sort(b.Walls)
	slices.Sort(b.CPUs)
	return burden{b.Walls[collections/2], b.CPUs[collections/2], float64(b.Heap) / float64(n)}
}

// populate makes a population, which ends with the test.
func populate(tb testing.TB, open func() *lifetime.Population) *lifetime.Population {
	p := open()
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

// beyond returns the bytes of b for each object, without those of the object and of
// the slice that keeps it.
func (b burden) beyond() float64 {
	return b.heap - float64(unsafe.Sizeof(lifetime.Plain{})+unsafe.Sizeof(uintptr(0)))
}

// BenchmarkOwnLive reports the cost of 1,000,000 live owners for each collection, as
// parts of the cost of as many cleanups and of as many plain objects, and how many
// bytes of the Go heap an owner takes beyond its object.
func BenchmarkOwnLive(b *testing.B) {
	const n, turns = 1_000_000, 5
	var wall, cpu, wallPlain, heap, heapCleanup []float64
	var ns [3][]float64
	for b.Loop() {
		var all []*lifetime.Population
		for _, open := range []func() *lifetime.Population{
			lifetime.OwnerPopulation, lifetime.CleanupPopulation, lifetime.PlainPopulation,
		} {
			all = append(all, populate(b, open))
		}
		for turn := range turns {
			var took [3]burden
			for i := range all {
				i = (i + turn) % len(all)
				took[i] = measure(b, all[i], n)
				ns[i] = append(ns[i], float64(took[i].wall.Nanoseconds()))
			}
			own, cleanup, plain := took[0], took[1], took[2]
			wall = append(wall, float64(own.wall)/float64(cleanup.wall))
			cpu = append(cpu, float64(own.cpu)/float64(cleanup.cpu))
			wallPlain = append(wallPlain, float64(own.wall)/float64(plain.wall))
			heap = append(heap, own.beyond())
			heapCleanup = append(heapCleanup, cleanup.beyond())
		}
	}
	report(b, "x-addcleanup-wall", median(wall))
	report(b, "x-addcleanup-cpu", median(cpu))
	b.ReportMetric(median(wallPlain), "x-plain-wall")
	report(b, "heap-B/owner", median(heap))
	b.ReportMetric(median(heapCleanup), "heap-B/addcleanup")
	b.ReportMetric(median(ns[0])/1e6, "own-ms/gc")
	b.ReportMetric(median(ns[1])/1e6, "addcleanup-ms/gc")
	b.ReportMetric(median(ns[2])/1e6, "plain-ms/gc")
	b.ReportMetric(0, "ns/op")
}

func TestPopulations(t *testing.T) {
	for name, open := range map[string]func() *lifetime.Population{
		"own": lifetime.OwnerPopulation, "addcleanup": lifetime.CleanupPopulation,
		"setfinalizer": lifetime.FinalizerPopulation, "manual": lifetime.PlainPopulation,
	} {
		t.Run(name, func(t *testing.T) {
			if b := measure(t, populate(t, open), 10_000); b.wall <= 0 {
				t.Errorf("a collection took %v", b.wall)
			}
		})
	}
}
