//go:build linux && cgo && libjpeg

package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	_ "github.com/cheapgo/cheap/cmem" // all that the variant cmem needs besides package pace
	"github.com/cheapgo/cheap/examples/thumbnails/internal/chart"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/cleanup"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/owned"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/picture"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/raw"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/sampler"
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

// A variant is a binding, with package pace or without.
type variant struct {
	name  string
	title string // in the chart
	open  picture.Open
	pace  bool
	cmem  bool // package cmem tells package pace of the images
}

var variants = []variant{
	{name: "cleanup", title: "runtime.AddCleanup", open: cleanup.Open},
	{name: "own", title: "own", open: owned.Open},
	{name: "pace", title: "own and pace", open: owned.Open, pace: true},
	{name: "cmem", title: "AddCleanup, cmem and pace", open: cleanup.Open, pace: true, cmem: true},
}

// A measurement is the result of one process, for one variant.
type measurement struct {
	Points  []chart.Point
	Images  int           // thumbnails made
	Full    bool          // the process stopped because it had too much memory
	Took    time.Duration // to make them
	Cycles  uint32        // number of collections meanwhile
	Live    int64         // largest sample of the bytes of images in C
	Waiting int           // images live in C at the end, all of them forgotten
}

// peak returns the largest sample.
func (m measurement) peak() int64 {
	most := int64(0)
	for _, p := range m.Points {
		most = max(most, p.Bytes)
	}
	return most
}

// measure does the work in this process, and samples its resident memory. It ends
// early when that is more than most.
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
	var live int64 // used by the sampler while it runs
	s, err := sampler.Start(every, func(resident int64) {
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
	points, samplerErr := s.End()
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

// settle waits until all forgotten images are freed. A program needs that only to show
// that it does not leak.
func settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		runtime.GC()
		if err := own.Flush(ctx); err != nil {
			return err
		}
		// Cleanups run after the collection, without a way to wait for them.
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
