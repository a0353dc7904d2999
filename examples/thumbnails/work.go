//go:build linux && cgo && libjpeg

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/examples/thumbnails/internal/picture"
)

// work is what there is to do: images of which to make thumbnails.
type work struct {
	dir     string // of the large ones
	images  int    // how many to make; each file is used as often as it takes
	width   int    // of the small ones
	workers int
}

// do makes thumbnails until all are made, somebody has set enough, or one could
// not be made. It returns how many were made. No reference to a picture is left
// when it returns.
func (w work) do(ctx context.Context, open picture.Open, enough *atomic.Bool) (int, error) {
	files, err := filepath.Glob(filepath.Join(w.dir, "*.jpg"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: no *.jpg", w.dir)
	}
	if err != nil {
		return 0, err
	}
	out := filepath.Join(w.dir, thumbnails)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var begun, made atomic.Int64
	var wg sync.WaitGroup
	for range w.workers {
		wg.Go(func() {
			for ctx.Err() == nil && !enough.Load() {
				n := int(begun.Add(1)) - 1
				if n >= w.images {
					return
				}
				file := files[n%len(files)]
				if err := thumbnail(open, file, filepath.Join(out, fmt.Sprintf("%d.jpg", n)), w.width); err != nil {
					fail(err)
					return
				}
				made.Add(1)
			}
		})
	}
	wg.Wait()
	return int(made.Load()), context.Cause(ctx)
}

// thumbnails is the directory of the small images, within that of the large
// ones.
const thumbnails = "thumbnails"

// thumbnail makes one. It closes nothing.
func thumbnail(open picture.Open, from, to string, width int) error {
	large, err := open(from)
	if err != nil {
		return err
	}
	small, err := large.Scale(width)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return small.Write(to)
}
