package own

import (
	"runtime"
	"slices"
	"testing"
	"unsafe"
)

func TestBadOptions(t *testing.T) {
	release := func([]uintptr) {}
	var nothing Owner
	w := newWorld(t, 1)
	q := w.pool(Options{})
	closed := w.own(t, q, 1)
	closed.Close()
	for _, row := range []struct {
		o    Options
		says string
	}{
		{Options{}, "Release or Destructor; set exactly one"},
		{Options{Release: release, Destructor: &destructor{}}, "Release or Destructor; set exactly one"},
		{Options{Release: release, Words: -1}, "words"},
		{Options{Release: release, Words: 3}, "words"},
		{Options{Release: release, Batch: -1}, "batch"},
		{Options{Release: release, Batch: mostBatch + 1}, "batch"},
		{Options{Release: release, Pinned: -1}, "Pinned"},
		{Options{Release: release, Size: -1}, "Size"},
		{Options{Release: release, Drain: true, MaxQueued: -1}, "MaxQueued"},
		{Options{Release: release, MaxQueued: 1}, "Drain"},
		{Options{Release: release, Workers: -1}, "Workers"},
		{Options{Release: release, Drain: true, Thread: true}, "exclude"},
		{Options{Release: release, Drain: true, Workers: 1}, "exclude"},
		{Options{Release: release, Thread: true, Workers: 1}, "exclude"},
		{Options{Release: release, NoCallback: true}, "Destructor"},
		{Options{Release: release, Handles: true}, "Construct"},
		{Options{Release: release, Parent: &nothing}, "Parent"},
		{Options{Release: release, Parent: &closed.Owner}, "Parent"},
	} {
		mustMisuse(t, "own.NewPool", func() { NewPool(row.o) }, row.says)
	}
	NewPool(Options{Release: release, Words: 2, Batch: mostBatch, Pinned: 1 << 30, Size: 1 << 30, Drain: true, MaxQueued: 1})
	mustDestroy(t, q)
}

// A destructor notes what it is given.
type destructor struct {
	resources  []uintptr
	words      int
	noCallback bool
}

func (d *destructor) ReleaseAll(resources []uintptr, words int, noCallback bool) {
	d.resources = append(d.resources, resources...)
	d.words, d.noCallback = words, noCallback
}

func TestDestructorGetsWordsAndPromise(t *testing.T) {
	for _, words := range []int{1, 2} {
		for _, noCallback := range []bool{false, true} {
			var d destructor
			p := NewPool(Options{Destructor: &d, Words: words, NoCallback: noCallback})
			var o Owner
			if err := p.OwnHandle(&o, 5, 6, 10); err != nil {
				t.Fatal(err)
			}
			o.Close()
			want := []uintptr{5, 6}[:words]
			if !slices.Equal(d.resources, want) || d.words != words || d.noCallback != noCallback {
				t.Errorf("words %d, noCallback %v: %+v", words, noCallback, d)
			}
			mustDestroy(t, p)
		}
	}
}

// TestDefaults looks at what a zero in Options means.
func TestDefaults(t *testing.T) {
	w := newWorld(t, 1000)
	p := w.pool(Options{})
	unknown := w.own(t, p, 0)
	mustStats(t, p, Stats{Live: 1, Bytes: 4 << 10})
	small, large := w.own(t, p, 64<<10-1), w.own(t, p, 64<<10)
	if small.ref.Token() == large.ref.Token() {
		t.Error("one of 64 KiB shares a batch")
	}
	unknown.Close()
	mustMisuse(t, "own.Owner.Use", func() { unknown.Use(func(unsafe.Pointer) {}) }, "closed")
	if err := destroyError(t, p, 0); err.Pool != "own.Owner" {
		t.Errorf("the pool's name is %q", err.Pool)
	}
	runtime.KeepAlive([]*thing{small, large})

	q := w.pool(Options{Size: 100})
	unknown = w.own(t, q, 0)
	mustStats(t, q, Stats{Live: 1, Bytes: 100})
	unknown.Close()
	mustDestroy(t, q)
}
