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

// work describes the thumbnails to make.
type work struct {
	dir     string // of the large ones
	images  int    // number of thumbnails; each file is used as often as needed
	width   int    // of the small ones
	workers int
}

// do makes thumbnails until all are made, enough is set, or one fails. It returns the
// number made. When it returns, the program has no reference to a picture.
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

// thumbnails is the directory of the thumbnails, within that of the large images.
const thumbnails = "thumbnails"

// thumbnail makes one thumbnail. It closes no image.
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
