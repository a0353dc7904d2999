//go:build cgo && unix

package bench

import (
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/cmd/cheap/internal/cside"
)

// A population is many live objects of one kind, with a block of C each.
type population struct {
	*lifetime
	fill func(n int) (keep any, drop func()) // drop is what else it takes to destroy the blocks
}

// The objects of each kind are of one size, and lie in a slice of pointers.

func manualPopulation(testing.TB) *population {
	fill := func(n int) (any, func()) {
		objects := make([]*plain, n)
		for i := range objects {
			objects[i] = &plain{block: cside.CreateBlock()}
		}
		return objects, func() {
			for _, o := range objects {
				cside.Destroy(o.block)
			}
		}
	}
	return &population{&lifetime{}, fill}
}

func cleanupPopulation(testing.TB) *population {
	fill := func(n int) (any, func()) {
		objects := make([]*plain, n)
		for i := range objects {
			objects[i] = newWithCleanup()
		}
		return objects, func() {}
	}
	return &population{&lifetime{}, fill}
}

func ownerPopulation(tb testing.TB) *population {
	p := newPool(tb)
	fill := func(n int) (any, func()) {
		objects := make([]*owned, n)
		for i := range objects {
			objects[i] = newOwned(tb, p)
		}
		return objects, func() {}
	}
	return &population{&lifetime{}, fill}
}

// A burden is what live objects cost.
type burden struct {
	wall, cpu time.Duration // of one collection
	heap      float64       // bytes of the Go heap for each object, itself included
}

// A collection's time is the middle one of so many.
const collections = 7

// measure fills the Go heap with n objects, collects, and drops them.
func (p *population) measure(tb testing.TB, n int) burden {
	p.settle(tb)
	before := cside.Count()
	empty := heapBytes()
	objects, drop := p.fill(n)
	full := heapBytes()
	var walls, cpus []time.Duration
	for range collections {
		cpu, start := cside.CPUTime(), time.Now()
		runtime.GC()
		walls = append(walls, time.Since(start))
		cpus = append(cpus, cside.CPUTime()-cpu)
	}
	slices.Sort(walls)
	slices.Sort(cpus)
	if c := cside.Count(); c.Destroyed != before.Destroyed {
		tb.Errorf("%d blocks of live objects were destroyed", c.Destroyed-before.Destroyed)
	}
	runtime.KeepAlive(objects)
	drop()
	objects, drop = nil, nil
	p.settle(tb)
	p.check(tb, n, before, cside.Count())
	return burden{walls[collections/2], cpus[collections/2], float64(full-empty) / float64(n)}
}

// heapBytes returns the bytes of Go objects that a collection leaves, two of
// them so that what the first one caused is done.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// beyond returns the bytes of b for each object that are not the object's own,
// nor of the slice that keeps it.
func (b burden) beyond() float64 {
	return b.heap - float64(unsafe.Sizeof(plain{})+unsafe.Sizeof(uintptr(0)))
}

// BenchmarkOwnLive reports what 1,000,000 live owners cost each collection, as
// parts of what as many cleanups and as many plain objects cost, and how many
// bytes of the Go heap each takes beyond the object.
func BenchmarkOwnLive(b *testing.B) {
	const n, turns = 1_000_000, 5
	const bar, heapBar = 0.30, 20
	var wall, cpu, wallPlain, heap, heapCleanup []float64
	var ns [3][]float64
	for b.Loop() {
		all := []*population{ownerPopulation(b), cleanupPopulation(b), manualPopulation(b)}
		for turn := range turns {
			var took [3]burden
			for i := range all {
				i = (i + turn) % len(all)
				took[i] = all[i].measure(b, n)
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
	b.ReportMetric(median(wall), "x-addcleanup-wall")
	b.ReportMetric(median(cpu), "x-addcleanup-cpu")
	b.ReportMetric(bar, "bar")
	b.ReportMetric(median(wallPlain), "x-plain-wall")
	b.ReportMetric(median(heap), "heap-B/owner")
	b.ReportMetric(heapBar, "heap-bar")
	b.ReportMetric(median(heapCleanup), "heap-B/addcleanup")
	b.ReportMetric(median(ns[0])/1e6, "own-ms/gc")
	b.ReportMetric(median(ns[1])/1e6, "addcleanup-ms/gc")
	b.ReportMetric(median(ns[2])/1e6, "plain-ms/gc")
	b.ReportMetric(0, "ns/op")
}

func TestPopulations(t *testing.T) {
	for name, open := range map[string]func(testing.TB) *population{
		"own": ownerPopulation, "addcleanup": cleanupPopulation, "manual": manualPopulation,
	} {
		t.Run(name, func(t *testing.T) {
			if b := open(t).measure(t, 10_000); b.wall <= 0 {
				t.Errorf("a collection took %v", b.wall)
			}
		})
	}
}
