package own

import (
	"runtime"
	"testing"
	"unsafe"
)

func TestBadOptions(t *testing.T) {
	release := func(_ any, _ []uintptr) error { return nil }
	var nothing object
	w := newWorld(t, 2)
	q := w.pool(Options{})
	closed := w.own(t, q, 1)
	closed.Close()
	open := w.own(t, q, 1)
	for _, row := range []struct {
		o    Options
		says string
	}{
		{Options{}, "Options.Release is nil"},
		{Options{Release: release, Batch: -1}, "batch"},
		{Options{Release: release, Batch: mostBatch + 1}, "batch"},
		{Options{Release: release, Pinned: -1}, "Pinned"},
		{Options{Release: release, Size: -1}, "Size"},
		{Options{Release: release, Parent: nothing.Owner()}, "Parent"},
		{Options{Release: release, Parent: closed.Owner()}, "Parent"},
		{Options{Release: release, Parent: open.Owner(), Construct: func([]uintptr) (int, error) { return 0, nil }}, "exclude"},
	} {
		mustMisuse(t, "own.NewPool", func() { NewPool(row.o) }, row.says)
	}
	mustMisuse(t, "own.Workers", func() { Workers(-1) }, "negative")
	mustMisuse(t, "own.Thread", func() { Thread(-1) }, "negative")
	mustMisuse(t, "own.NewQueue", func() { NewQueue(-1, nil) }, "negative")
	NewPool(Options{Release: release, Numbers: true, Batch: mostBatch, Pinned: 1 << 30, Size: 1 << 30, Run: NewQueue(1, nil).Run()})
	open.Close()
	mustDestroy(t, q)
}

// TestZeroPool uses a pool that NewPool has not made.
func TestZeroPool(t *testing.T) {
	var p Pool
	var o object
	r := newWorld(t, 1).create(1).pointer()
	mustMisuse(t, "own.Own", func() { o.Own(&p, r, 1) }, "NewPool")
	mustMisuse(t, "own.Own", func() { new(Number[int]).Own(&p, 1, 1) }, "NewPool")
	mustMisuse(t, "own.Make", func() { o.Make(&p) }, "NewPool")
	//cheapvet:ignore closeforgotten no room is reserved
	mustMisuse(t, "own.Reserve", func() { p.Reserve(t.Context(), 1) }, "NewPool")
	mustMisuse(t, "own.CloseWait", func() { p.CloseWait(t.Context()) }, "NewPool")
	mustMisuse(t, "own.Stats", func() { p.Stats() }, "NewPool")
}

// TestDefaults looks at what a zero in Options means.
func TestDefaults(t *testing.T) {
	w := newWorld(t, 1000)
	p := w.pool(Options{})
	unknown := w.own(t, p, 0)
	mustStats(t, p, Stats{Live: 1, Bytes: 4 << 10})
	small, large := w.own(t, p, 64<<10-1), w.own(t, p, 64<<10)
	if small.owner.ref.Sentinel().Batch == large.owner.ref.Sentinel().Batch {
		t.Error("one of 64 KiB shares a batch")
	}
	unknown.Close()
	mustMisuse(t, "own.Handle.Use", func() { unknown.Use(func(unsafe.Pointer) {}) }, "closed")
	if err := destroyError(t, p, waiting(0)); err.Pool != "own.Handle" {
		t.Errorf("the pool's name is %q", err.Pool)
	}
	runtime.KeepAlive([]*thing{small, large})

	q := w.pool(Options{Size: 100})
	unknown = w.own(t, q, 0)
	mustStats(t, q, Stats{Live: 1, Bytes: 100})
	unknown.Close()
	mustDestroy(t, q)
}
