//go:build linux && cgo && libjpeg

package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/examples/thumbnails/internal/chart"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/cleanup"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/owned"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/picture"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/raw"
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

// A variant is a binding, and whether the collector is told of it.
type variant struct {
	name  string
	title string // in the chart
	open  picture.Open
	pace  bool
}

var variants = []variant{
	{"cleanup", "runtime.AddCleanup", cleanup.Open, false},
	{"own", "own", owned.Open, false},
	{"pace", "own and pace", owned.Open, true},
}

// A measurement is what one process has found out about one variant.
type measurement struct {
	Points  []chart.Point
	Images  int           // thumbnails made
	Full    bool          // it stopped because it had too much memory
	Took    time.Duration // to make them
	Cycles  uint32        // collections meanwhile
	Live    int64         // bytes of images in C, the most that was seen
	Waiting int           // images that were live in C at the end, forgotten all of them
}

// peak returns the most that was seen.
func (m measurement) peak() int64 {
	most := int64(0)
	for _, p := range m.Points {
		most = max(most, p.Bytes)
	}
	return most
}

// measure does the work in this process, and looks at its resident memory. It
// ends early when that is more than most.
func (v variant) measure(ctx context.Context, w work, every time.Duration, most int64) (measurement, error) {
	if v.pace {
		if err := pace.Start(pace.Options{}); err != nil {
			return measurement{}, err
		}
		defer pace.Stop()
	}
	var full atomic.Bool
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var live int64 // the sampler's while it runs
	s, err := startSampler(every, func(resident int64) {
		_, bytes := raw.Live()
		live = max(live, bytes)
		if resident > most {
			full.Store(true)
		}
	})
	if err != nil {
		return measurement{}, err
	}
	start := time.Now()
	images, err := w.do(ctx, v.open, &full)
	m := measurement{Images: images, Took: time.Since(start), Full: full.Load()}
	m.Waiting, _ = raw.Live()
	points, samplerErr := s.end()
	m.Points, m.Live = points, live
	runtime.ReadMemStats(&after)
	m.Cycles = after.NumGC - before.NumGC
	if err == nil {
		err = samplerErr
	}
	if err == nil {
		err = settle(ctx)
	}
	return m, err
}

// settle has everything freed that was forgotten. No program needs that: it is
// for those that want to know that nothing leaks.
func settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		runtime.GC()
		if err := own.Flush(ctx); err != nil {
			return err
		}
		// Cleanups run by themselves, behind the collection.
		for before := -1; ; time.Sleep(time.Millisecond) {
			images, _ := raw.Live()
			if images == 0 {
				return nil
			}
			if images == before {
				break
			}
			before = images
		}
		if err := ctx.Err(); err != nil {
			images, bytes := raw.Live()
			return fmt.Errorf("%d images of %d bytes are not freed: %w", images, bytes, err)
		}
	}
}
