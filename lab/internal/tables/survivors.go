//go:build cgo && unix

package tables

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/lab/internal/lifetime"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// The objects of the table survivors. One in stride survives.
const (
	survivorObjects = 50_000
	manySurvivors   = 300_000 // of the rows that -run survivors adds
)

var strides = []int{10, 100, 1000}

// survivorCollections is how many collections the others have to be released in. Batches
// that outlive collections are split.
const survivorCollections = 12

// Survivors is the table of what objects hold that outlive others.
func Survivors() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "survivors",
			Title: "What survivors hold",
			About: fmt.Sprintf("%d objects with a block of 100 bytes of C are made, and all but one in 10, 100 or 1,000 are forgotten. ", survivorObjects) +
				fmt.Sprintf("Held is how many blocks live for each live object, %d collections later: a cleanup releases each block by itself, and an own.Pool batches of them. ", survivorCollections) +
				"The time is that of making and of the collections. " +
				fmt.Sprintf("With -run survivors there are rows of %d objects as well, and of smaller batches. No source", manySurvivors) + " has figures.",
			Unit:  "object",
			Chart: result.Held,
		},
		Rows:   survivorRows(),
		Weight: 1.5, // a round has many collections
	}
}

func survivorRows() []measure.Row {
	var rows []measure.Row
	for _, many := range []bool{false, true} {
		n, infix := survivorObjects, ""
		if many {
			n, infix = manySurvivors, "-many"
		}
		for _, stride := range strides {
			row := func(way string, open func() (make1 func() any, end func() error)) measure.Row {
				return measure.Row{
					Name: fmt.Sprintf("%s%s-%d", way, infix, stride), Group: fmt.Sprint(infix, stride), N: n, Waits: true, Named: many,
					Open: func(int) (measure.Work, error) { return outlive(stride, open), nil },
				}
			}
			cleanup := row("addcleanup", func() (func() any, func() error) {
				return func() any { return lifetime.NewWithCleanup() }, func() error { return nil }
			})
			rows = append(rows, cleanup)
			batches := []int{0}
			if many {
				batches = []int{0, 4, 16, 64} // what a smaller batch would cost
			}
			for _, batch := range batches {
				ours := row("own", func() (func() any, func() error) {
					p := own.NewPool(own.Options{Batch: batch, Release: libc.Destructor(cside.DestroyBlock, libc.NoCallback)})
					return func() any { return lifetime.NewOwned(p) }, func() error { return lifetime.ClosePool(p) }
				})
				if batch > 0 {
					ours.Name = fmt.Sprintf("own-batch-%d-%d", batch, stride)
				}
				ours.Versus = cleanup.Name
				rows = append(rows, ours)
			}
		}
	}
	return rows
}

// outlive is the work of making objects; one in stride survives. Each round opens
// a way to make them, and ends it: a pool learns from what its owners did.
func outlive(stride int, open func() (make1 func() any, end func() error)) measure.Work {
	var end func() error
	var before cside.Counts
	var kept []any
	var held float64
	blocks := func() int { // of the round, that live
		now := cside.Count()
		return int(now.Created-before.Created) - int(now.Destroyed-before.Destroyed)
	}
	return measure.Work{
		Run: func(n int) {
			before = cside.Count()
			var make1 func() any
			make1, end = open()
			kept = make([]any, 0, n/stride+1)
			for i := range n {
				if o := make1(); i%stride == stride/2 {
					kept = append(kept, o)
				}
			}
			for range survivorCollections {
				runtime.GC()
				awaitReleases(blocks)
			}
			held = float64(blocks()) / float64(max(len(kept), 1))
			runtime.KeepAlive(kept)
		},
		Check: func(n int) error {
			survived := len(kept)
			kept = nil
			err := errors.Join(lifetime.Collect(blocks), end())
			if created := int(cside.Count().Created - before.Created); created != n || survived != (n+stride/2-1)/stride || survived > 0 && held < 1 {
				err = errors.Join(err, fmt.Errorf("made %d blocks for %d objects, of which %d survived and held %v each", created, n, survived, held))
			}
			return err
		},
		Figures: func() measure.Figures { return measure.Figures{Held: held} },
	}
}

// awaitReleases returns when the releases of a collection have come to rest.
func awaitReleases(left func() int) {
	// Cleanups run in goroutines of the runtime, which nothing waits for; those of
	// finalizers, which seal the batches of own, do as well.
	for last := -1; left() != last; {
		last = left()
		time.Sleep(300 * time.Microsecond)
		_ = own.Flush(context.Background()) // has no deadline to fail at
	}
}
