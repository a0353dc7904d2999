//go:build cgo && unix

package tables

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/cheapgo/cheap/cmd/cheap/internal/cside"
	"github.com/cheapgo/cheap/cmd/cheap/internal/lifetime"
	"github.com/cheapgo/cheap/cmd/cheap/internal/measure"
)

func survivorRows() []measure.Row {
	var rows []measure.Row
	for _, stride := range strides {
		cleanup := measure.Row{
			Name: fmt.Sprintf("addcleanup-%d", stride), Group: fmt.Sprint(stride), N: survivorObjects, Waits: true,
			Open: func(int) (measure.Work, error) {
				return outlive(func() any { return lifetime.NewWithCleanup() }, stride, func() error { return nil }), nil
			},
		}
		ours := measure.Row{
			Name: fmt.Sprintf("own-%d", stride), Group: fmt.Sprint(stride), N: survivorObjects, Waits: true, Versus: cleanup.Name,
			Open: func(int) (measure.Work, error) {
				p := lifetime.NewPool()
				return outlive(func() any { return lifetime.NewOwned(p) }, stride, func() error { return lifetime.ClosePool(p) }), nil
			},
		}
		rows = append(rows, cleanup, ours)
	}
	return rows
}

// outlive is the work of making objects of which one in stride survives.
func outlive(make1 func() any, stride int, end func() error) measure.Work {
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
			err := lifetime.Collect(blocks)
			if created := int(cside.Count().Created - before.Created); created != n || survived != (n+stride/2-1)/stride || survived > 0 && held < 1 {
				err = errors.Join(err, fmt.Errorf("made %d blocks for %d objects, of which %d survived and held %v each", created, n, survived, held))
			}
			return err
		},
		Held:  func() float64 { return held },
		Close: func() { _ = end() }, // Check has found that no block lives
	}
}

// awaitReleases returns when the releases of a collection have come to rest.
func awaitReleases(left func() int) {
	for last := -1; left() != last; {
		last = left()
		time.Sleep(200 * time.Microsecond)
	}
}
