package blackbox

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// sources are what a watcher reads. One goroutine at a time uses them.
type sources interface {
	// charge returns what the container is charged, without what the kernel drops first, and may be
	// charged; 0 if there is no limit.
	charge(now time.Time) (used, limit int64)

	// record returns what is known at a time.
	record(now time.Time) *Record
}

// A watcher writes the records of a box. Box.mu protects it.
type watcher struct {
	schedule
	sources
	file    *file // nil without a file
	onNear  func(*Record)
	telling *atomic.Bool // the notice before is not over
	closed  bool
	err     error // of the last record
}

// look looks once, and does what is to be done.
func (w *watcher) look() {
	now := time.Now()
	used, limit := w.charge(now)
	record, notice := w.schedule.look(now, used, limit)
	if !record {
		return
	}
	if r := w.record(false); notice {
		w.notify(r)
	}
}

// record writes a record, and sets err; last says that it is the last one.
func (w *watcher) record(last bool) *Record {
	began := time.Now()
	r := w.sources.record(began)
	r.Time, r.Stopped = began, last
	if w.file != nil {
		w.err = w.file.write(r)
	}
	w.wrote(began, time.Since(began))
	return r
}

// notify tells of a record, without holding anybody up.
func (w *watcher) notify(r *Record) {
	if w.telling.Swap(true) {
		return
	}
	go func() {
		defer w.telling.Store(false)
		if w.onNear != nil {
			w.onNear(r)
			return
		}
		fmt.Fprintf(os.Stderr, "cheap: the limit of the container is near: %s\n", r.Line())
	}()
}
