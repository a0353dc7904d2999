package own

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

var _ io.Closer = (*object)(nil)

func TestOwnerIsTwoWords(t *testing.T) {
	if n := unsafe.Sizeof(object{}); n != 2*unsafe.Sizeof(uintptr(0)) {
		t.Errorf("a Handle has %d bytes", n)
	}
}

func TestZeroOwnerOwnsNothing(t *testing.T) {
	var o object
	if err := o.Close(); err != nil || !o.Closed() {
		t.Errorf("Close: %v, Closed: %v", err, o.Closed())
	}
	if p, err := o.Disown(); p != nil || err != ErrClosed {
		t.Errorf("Disown: %v, %v", p, err)
	}
	if p := o.Pointer(); p != nil {
		t.Errorf("Resource: %v", p)
	}
	if err := o.TryUse(func(unsafe.Pointer) error { t.Error("called"); return nil }); err != ErrClosed {
		t.Errorf("TryUse: %v", err)
	}
	if err := o.CloseWait(context.Background()); err != nil {
		t.Errorf("CloseWait: %v", err)
	}
	if err := o.SetState(1); err != ErrClosed {
		t.Errorf("SetState: %v", err)
	}
	o.KeepAlive()
	o.Resize(5)
	mustMisuse(t, "own.Use", func() { o.Use(func(unsafe.Pointer) {}) }, "owns nothing")

	w := newWorld(t, 1)
	p := w.pool(Options{})
	var child object
	if err := child.OwnWith(p, w.create(1).pointer(), With{Size: 1, Parent: o.Owner()}); err != ErrClosed || !child.Closed() {
		t.Errorf("OwnWith: %v", err)
	}
	w.destroy(&w.cells[0])
	mustDestroy(t, p)
}

// TestCloseReleasesAtOnce closes some of a batch: each is released before Close
// returns, on the goroutine that calls it, and nothing else is.
func TestCloseReleasesAtOnce(t *testing.T) {
	w := newWorld(t, 10)
	p := w.pool(Options{})
	var here uintptr
	w.before = func([]*cell) { here = gcwatch.GoroutineID() }
	things := w.ownSome(t, p, 10, 10)
	for i, m := range things {
		if i%2 == 0 {
			continue
		}
		testcall.Want(t, m.Close())
		if m.cell.alive() || !m.Closed() || here != gcwatch.GoroutineID() {
			t.Fatalf("after Close: alive %v, closed %v", m.cell.alive(), m.Closed())
		}
		if n := w.died.Load(); n != int64(i/2+1) {
			t.Fatalf("%d are released after %d calls of Close", n, i/2+1)
		}
		testcall.Want(t, m.Close())
	}
	for i, m := range things {
		if m.Closed() != (i%2 == 1) {
			t.Errorf("%d: closed %v", i, m.Closed())
		}
	}
	mustStats(t, p, Stats{Live: 5, Bytes: 50})
	for _, m := range things {
		m.Close()
	}
	mustStats(t, p, Stats{})
	mustDestroy(t, p)
	if n := w.calls.Load(); n != 10 {
		t.Errorf("%d calls of the release function", n)
	}
}

// TestStaleOwnerDoesNoHarm closes an owner, owns something else, and closes the
// stale owner again, a million times.
func TestStaleOwnerDoesNoHarm(t *testing.T) {
	for _, o := range []Options{{}, {Batch: 1}, {Trace: true}} {
		var world [64]byte
		var got uintptr // what was released last
		n := 0
		o.Release = func(_ any, r []uintptr) error { got, n = r[0], n+len(r); return nil }
		p := NewPool(o)
		rounds := times(1_000_000)
		if o.Batch == 1 || o.Trace {
			rounds /= 20
		}
		var old [50]object // stale, of many batches
		for i := range rounds {
			resource := unsafe.Pointer(&world[i%len(world)])
			m := &thing{}
			testcall.Must(t, m.Own(p, resource, 16))
			old[i%len(old)].Close()
			old[(i+1)%len(old)].Close()
			if m.Closed() || n != i {
				t.Fatalf("round %d: %d are released, and the new owner's closed: %v", i, n, m.Closed())
			}
			old[i%len(old)] = m.object
			m.Close()
			if n != i+1 || got != uintptr(resource) {
				t.Fatalf("round %d: %d are released, %#x last, and that was %p", i, n, got, resource)
			}
		}
		mustStats(t, p, Stats{})
		mustDestroy(t, p)
		if n != rounds {
			t.Errorf("%d released of %d", n, rounds)
		}
	}
}

// TestOwnIntoUsedOwner owns with a Handle that was closed, which is fine, and
// with one that is not.
func TestOwnIntoUsedOwner(t *testing.T) {
	w := newWorld(t, 101)
	p := w.pool(Options{Name: "image"})
	m := w.own(t, p, 10)
	stale := m.object
	mustMisuse(t, "image.Own", func() { m.Own(p, w.cells[100].pointer(), 10) }, "owns something already")
	if m.Closed() || !m.cell.alive() {
		t.Error("the failed Own did something")
	}
	for range 98 {
		m.Close()
		if m.cell.alive() {
			t.Fatal("not released")
		}
		m.cell = w.create(10)
		testcall.Must(t, m.Own(p, m.cell.pointer(), 10))
		stale.Close()
		if m.Closed() {
			t.Fatal("a stale copy closed what the Handle owns now")
		}
	}
	if _, err := m.Disown(); err != nil {
		t.Fatal(err)
	}
	w.destroy(m.cell)
	m.cell = w.create(10)
	testcall.Must(t, m.Own(p, m.cell.pointer(), 10))
	m.Close()
	mustDestroy(t, p)
	if n := w.died.Load(); n != 100 {
		t.Errorf("%d released", n)
	}
}

// TestDisown takes resources back: nothing releases them any more.
func TestDisown(t *testing.T) {
	w := newWorld(t, 100)
	p := w.pool(Options{})
	var taken []*cell
	testcall.Aside(func() {
		var forgotten []*thing
		for i := range 50 {
			m := w.own(t, p, 10)
			c := m.object // a copy
			resource, err := m.Disown()
			if err != nil || resource != m.cell.pointer() {
				t.Fatalf("Disown: %p, %v, and the resource is %p", resource, err, m.cell)
			}
			if !m.Closed() || !c.Closed() || m.Pointer() != nil {
				t.Error("not closed by Disown")
			}
			if _, err := m.Disown(); err != ErrClosed {
				t.Errorf("a second Disown: %v", err)
			}
			if _, err := c.Disown(); err != ErrClosed {
				t.Errorf("Disown of a copy: %v", err)
			}
			m.Close()
			taken = append(taken, m.cell)
			if i%5 == 0 {
				forgotten = append(forgotten, w.own(t, p, 10))
			}
		}
		mustStats(t, p, Stats{Live: 10, Bytes: 100})
		runtime.KeepAlive(forgotten)
	})
	collect(t, "the forgotten", func() bool { return w.died.Load() == 10 })
	mustStats(t, p, Stats{})
	mustDestroy(t, p)
	for _, c := range taken {
		if !c.alive() {
			t.Fatal("released although disowned")
		}
		w.destroy(c)
	}
	var m thing
	w2 := newWorld(t, 1)
	q := w2.pool(Options{})
	testcall.Must(t, m.Own(q, w2.create(1).pointer(), 1))
	m.Close()
	if _, err := m.Disown(); !errors.Is(err, ErrClosed) {
		t.Errorf("Disown after Close: %v", err)
	}
}

// TestResize follows the pool's bytes.
func TestResize(t *testing.T) {
	w := newWorld(t, 10)
	p := w.pool(Options{Name: "image", Pinned: 1000, Batch: 4})
	exact, first := w.own(t, p, 2000), w.own(t, p, 100)
	mustStats(t, p, Stats{Live: 2, Bytes: 2100})
	exact.Resize(5000)
	first.Resize(200)
	mustStats(t, p, Stats{Live: 2, Bytes: 5200})
	second := w.own(t, p, 100)
	if second.owner.ref.Sentinel().Batch != first.owner.ref.Sentinel().Batch {
		t.Error("two small ones do not share a batch")
	}
	first.Resize(990) // together they are beyond Pinned now
	third := w.own(t, p, 100)
	if third.owner.ref.Sentinel().Batch == first.owner.ref.Sentinel().Batch {
		t.Error("a batch that outgrew Pinned got one more")
	}
	mustStats(t, p, Stats{Live: 4, Bytes: 6190})
	first.Resize(10) // sealed by now
	exact.Resize(0)
	mustStats(t, p, Stats{Live: 4, Bytes: 210})
	mustMisuse(t, "image.Resize", func() { first.Resize(-1) }, "negative")
	third.Resize(300)
	for _, m := range []*thing{exact, second, third} {
		m.Close()
		m.Resize(1 << 20)
	}
	mustStats(t, p, Stats{Live: 1, Bytes: 10})
	first.Close()
	mustStats(t, p, Stats{})
	mustDestroy(t, p)
}

// TestOwnOfNothing owns nil, and a resource of a negative size.
func TestOwnOfNothing(t *testing.T) {
	w := newWorld(t, 1)
	p := w.pool(Options{Name: "image"})
	parent := w.own(t, p, 10)
	var o object
	mustMisuse(t, "image.Own", func() { o.Own(p, nil, 10) }, "nil")
	mustMisuse(t, "image.Own", func() { o.Own(p, parent.cell.pointer(), -1) }, "negative")
	mustMisuse(t, "image.Own", func() { o.OwnWith(p, nil, With{Size: 10, Parent: parent.Owner()}) }, "nil")
	if !o.Closed() {
		t.Error("it owns something")
	}
	parent.Close()
	mustBeReleased(t, parent.cell, "by Close")
	mustDestroy(t, p)
}
