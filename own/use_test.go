package own

import (
	"errors"
	"io"
	"runtime"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// mustBeAlive fails if a resource has been released.
func mustBeAlive(t testing.TB, c *cell, when string) {
	t.Helper()
	if !c.alive() {
		t.Errorf("released %s", when)
	}
}

func mustBeReleased(t testing.TB, c *cell, when string) {
	t.Helper()
	if c.alive() {
		t.Errorf("not released %s", when)
	}
}

// TestCloseInUse closes an owner inside of Use, in several depths: the release
// waits for the outermost.
func TestCloseInUse(t *testing.T) {
	w := newWorld(t, 3)
	p := w.pool(Options{Name: "image"})
	for depth := 1; depth <= 3; depth++ {
		m := w.own(t, p, 10)
		var dive func(left int)
		dive = func(left int) {
			m.Use(func(unsafe.Pointer) {
				if left > 1 {
					dive(left - 1)
					mustBeAlive(t, m.cell, "inside of Use")
					return
				}
				for range 2 {
					testcall.Want(t, m.Close())
				}
				if !m.Closed() {
					t.Error("not closed")
				}
				mustMisuse(t, "image.Use", func() { m.Use(func(unsafe.Pointer) {}) }, "closed")
				mustBeAlive(t, m.cell, "inside of Use")
			})
		}
		dive(depth)
		mustBeReleased(t, m.cell, "after the last Use")
	}
	mustStats(t, p, Stats{})
	mustDestroy(t, p)
}

// TestUseEndsHoweverItEnds leaves Use by a panic and by the end of the goroutine.
func TestUseEndsHoweverItEnds(t *testing.T) {
	w := newWorld(t, 4)
	p := w.pool(Options{})
	for _, use := range []func(m *thing, f func()){
		func(m *thing, f func()) { m.Use(func(unsafe.Pointer) { f() }) },
		func(m *thing, f func()) { m.owner.useNumber(func(_ uintptr) { f() }) },
	} {
		m := w.own(t, p, 10)
		if v := testcall.Catch(func() { use(m, func() { m.Close(); panic("oops") }) }); v != "oops" {
			t.Errorf("panic value %v", v)
		}
		mustBeReleased(t, m.cell, "after a Use that panicked")
		m = w.own(t, p, 10)
		testcall.Aside(func() { use(m, func() { m.Close(); runtime.Goexit() }) })
		mustBeReleased(t, m.cell, "after a Use whose goroutine ended")
	}
	mustDestroy(t, p)
}

// TestUseKeepsTheOwnerAlive collects inside of Use, where the program has no
// reference to the owner.
func TestUseKeepsTheOwnerAlive(t *testing.T) {
	for _, o := range []Options{{}, {Unshared: true}, {Batch: 1}, {Batch: 1, Unshared: true}} {
		w := newWorld(t, 2)
		p := w.pool(o)
		for _, use := range []func(m *thing, f func()){
			func(m *thing, f func()) { m.Use(func(unsafe.Pointer) { f() }) },
			func(m *thing, f func()) { m.owner.useNumber(func(_ uintptr) { f() }) },
		} {
			var c *cell
			testcall.Aside(func() {
				m := w.own(t, p, 10)
				c = m.cell
				use(m, func() {
					for range 4 {
						gc(t)
					}
					mustBeAlive(t, c, "inside of Use")
				})
			})
			collectAtMost(t, few, "the owner, after Use", func() bool { return !c.alive() })
		}
		mustDestroy(t, p)
	}
}

// TestUnsharedDoesNotCount closes inside of Use, which without counting releases
// at once.
func TestUnsharedDoesNotCount(t *testing.T) {
	w := newWorld(t, 1)
	p := w.pool(Options{Unshared: true})
	m := w.own(t, p, 10)
	m.Use(func(unsafe.Pointer) {
		m.Close()
		mustBeReleased(t, m.cell, "by Close in Use")
	})
	mustDestroy(t, p)
}

// TestTooManyUses pretends that a million Uses are running.
func TestTooManyUses(t *testing.T) {
	w := newWorld(t, 1)
	p := w.pool(Options{Name: "image"})
	m := w.own(t, p, 10)
	e := m.owner.ref.Sentinel().At(m.owner.ref.Index)
	e.State += batch.OneUse * (batch.MostUses - 1)
	m.Use(func(unsafe.Pointer) {
		mustMisuse(t, "image.Use", func() { m.Use(func(unsafe.Pointer) { t.Error("called") }) }, "1048575")
	})
	e.State -= batch.OneUse * (batch.MostUses - 1)
	mustStats(t, p, Stats{Live: 1, Bytes: 10}) // the size is not touched
	m.Close()
	mustBeReleased(t, m.cell, "by Close")
	mustDestroy(t, p)
}

// TestClosePoolInUse destroys the pool inside of Use, which CloseWait does not wait
// for beyond its deadline, and from elsewhere.
func TestClosePoolInUse(t *testing.T) {
	w := newWorld(t, 10)
	p := w.pool(Options{Name: "image"})
	m, closed, other := w.own(t, p, 10), w.own(t, p, 10), w.own(t, p, 10)
	m.Use(func(unsafe.Pointer) {
		closed.Use(func(unsafe.Pointer) {
			closed.Close()
			e := destroyError(t, p, doneAfter(1))
			if e.Pool != "image" || e.NeverClosed != 2 || e.InUse != 2 || e.Waiting+e.Queued+e.Releasing != 0 {
				t.Errorf("%+v", e)
			}
			mustBeReleased(t, other.cell, "by CloseWait")
			mustBeAlive(t, m.cell, "inside of Use")
			mustBeAlive(t, closed.cell, "inside of Use")
			mustMisuse(t, "image.Use", func() { m.Use(func(unsafe.Pointer) {}) }, "closed")
			m.Close()
		})
		mustBeReleased(t, closed.cell, "after its Use")
		mustBeAlive(t, m.cell, "inside of Use")
	})
	mustBeReleased(t, m.cell, "after the last Use")
	mustStats(t, p, Stats{})
}

// TestClosePoolDoesNotWait closes a pool, and the pools of a Memory, inside of Use.
func TestClosePoolDoesNotWait(t *testing.T) {
	w := newWorld(t, 1)
	p := w.pool(Options{})
	m := w.own(t, p, 10)
	memory := NewMemory(newHeap(t), MemoryOptions{})
	g := newGroup(t, memory)
	m.Use(func(unsafe.Pointer) {
		g.Use(func() {
			for _, end := range []io.Closer{p, memory} {
				var e *CloseError
				if err := end.Close(); !errors.As(err, &e) || e.NeverClosed != 1 || e.InUse != 1 || e.Unwrap() != nil {
					t.Errorf("Close: %v", err)
				}
				if err := end.Close(); err != ErrPoolClosed {
					t.Errorf("a second Close: %v", err)
				}
			}
			mustBeAlive(t, m.cell, "inside of Use")
		})
	})
	mustBeReleased(t, m.cell, "after its Use")
	if !g.Closed() {
		t.Error("the group is open")
	}
}
