//go:build cgo && unix

package tables

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/lab/internal/lifetime"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// Live is the table of what live owners cost a collection.
func Live() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "live",
			Title: "What live owners cost a collection",
			About: "One collection, from its start to the end of its sweep, with so many live objects of 16 bytes that have a block of C each: plain objects, and objects whose block a finalizer, a cleanup or an own.Pool releases. No source has figures.",
			Unit:  "collection", Chart: result.Sizes, Over: "live owners",
		},
		Rows:   liveRows(),
		Weight: 1.5, // a round has some collections of a large heap
	}
}

// populations lists the kinds of live objects.
var populations = []struct {
	name string
	open func() *lifetime.Population
}{
	{"plain", lifetime.PlainPopulation},
	{"finalizer", lifetime.FinalizerPopulation},
	{"addcleanup", lifetime.CleanupPopulation},
	{"own", lifetime.OwnerPopulation},
}

// living lists how many objects are live, and how many collections a round has.
var living = []struct{ objects, collections int }{
	{0, 20}, {10_000, 10}, {100_000, 3}, {1_000_000, 1},
}

// liveRows lists the rows. Each row has a separate process, because a collection
// marks all objects of a process.
func liveRows() []measure.Row {
	var rows []measure.Row
	for _, n := range living {
		for _, p := range populations {
			row := measure.Row{
				Name:  fmt.Sprintf("%s-%d", p.name, n.objects),
				Group: fmt.Sprint(n.objects), N: n.collections, Apart: true,
				Open: func(int) (measure.Work, error) { return openLive(p.open(), n.objects), nil },
			}
			if p.name != "plain" {
				row.Versus = fmt.Sprintf("plain-%d", n.objects)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// openLive makes the work of collecting with n live objects.
func openLive(p *lifetime.Population, n int) measure.Work {
	p.Begin()
	empty := lifetime.HeapBytes()
	objects, drop := p.Fill(n)
	lifetime.HeapBytes() // ends the collections that Fill has started
	beside := 0.0
	return measure.Work{
		Run: func(collections int) {
			for range collections {
				runtime.GC()
			}
		},
		Check: func(int) error {
			beside = 0
			if n > 0 {
				const own = float64(unsafe.Sizeof(lifetime.Plain{}) + unsafe.Sizeof(uintptr(0))) // in the slice that keeps it
				beside = float64(lifetime.HeapBytes()-empty)/float64(n) - own
			}
			runtime.KeepAlive(objects)
			return p.CheckLive(n)
		},
		Figures: func() measure.Figures { return measure.Figures{HeapBytes: beside} },
		Close: func() {
			drop()
			objects, drop = nil, nil
			for _, step := range []func() error{p.Settle, func() error { return p.Check(n) }, p.Close} {
				if err := step(); err != nil {
					panic(err) // in the row's own process, whose measuring is over
				}
			}
		},
	}
}
