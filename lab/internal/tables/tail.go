//go:build cgo && unix

//cheapvet:ignore perobject this is what owners are compared with

package tables

import (
	"errors"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/lab/internal/lifetime"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// Tail is the table of how long the slowest calls take that make an object an owner.
func Tail() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "tail",
			Title: "The slowest calls that make an object an owner",
			About: "Objects with a block of C are made and forgotten, and each call of runtime.AddCleanup, or of Own, is timed by itself, with a reading of the clock. No source has figures.",
			Unit:  "call",
			Chart: result.Bars,
		},
		Rows:  tailRows(),
		Named: true,
	}
}

func tailRows() []measure.Row {
	const n = 500_000
	return []measure.Row{
		{Name: "addcleanup", Group: "tail", N: n, Open: func(int) (measure.Work, error) {
			return tailWork(lifetime.Manual, func() time.Duration {
				o := lifetime.NewPlain()
				start := time.Now()
				runtime.AddCleanup(o, cside.Destroy, o.Block)
				took := time.Since(start)
				registered = o
				return took
			})
		}},
		{Name: "own", Group: "tail", N: n, Versus: "addcleanup", Open: func(int) (measure.Work, error) {
			p := lifetime.NewPool()
			return tailWork(func() (*lifetime.Lifetime, error) {
				l, err := lifetime.Manual()
				l.Close = func() error { return lifetime.ClosePool(p) }
				return l, err
			}, func() time.Duration {
				o, block := new(lifetime.Owned), cside.CreateBlock()
				start := time.Now()
				err := o.Handle.Own(p, block, cside.BlockSize)
				took := time.Since(start)
				if err != nil {
					panic(err) // the pool is open, and has no limit
				}
				registered = o
				return took
			})
		}},
	}
}

// registered makes objects escape.
//
//lint:ignore U1000 it is only assigned to, so that what is assigned escapes
var registered any

// tailWork is the work of registering objects, each timed by itself. The way counts their blocks.
func tailWork(way lifetime.Way, register func() time.Duration) (measure.Work, error) {
	l, err := way()
	if err != nil {
		return measure.Work{}, err
	}
	var last measure.Figures
	return measure.Work{
		Time: func(n int) (wall, cpu float64, err error) {
			// The times are not in the Go heap, whose size decides when it is collected.
			memory := needed(cside.Malloc(n * int(unsafe.Sizeof(time.Duration(0)))))
			defer cside.Free(memory)
			took := unsafe.Slice((*time.Duration)(memory), n)
			if err := l.Settle(); err != nil {
				return 0, 0, err
			}
			l.Begin()
			for i := range took {
				took[i] = register()
				wall += float64(took[i])
			}
			registered = nil
			slices.Sort(took)
			last = measure.Figures{P99: float64(took[n*99/100]), P999: float64(took[n*999/1000])}
			return wall, 0, errors.Join(l.Settle(), l.Check(n))
		},
		Figures: func() measure.Figures { return last },
		Close:   func() { _ = l.Close() }, // Check has reported blocks that are left
	}, nil
}
