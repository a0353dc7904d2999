package own

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
)

// TestPanicOnWorkerEndsTheProgram wants the pool's name in the panic.
func TestPanicOnWorkerEndsTheProgram(t *testing.T) {
	bad := released(func([]uintptr) { panic("the oven is hot") })
	good := released(func([]uintptr) {})
	failing := func(any, []uintptr) error { return errors.New("it is cold") }
	forget := func(p *Pool) { testcall.Aside(func() { p.own(&new(thing).owner, 1, 16) }) }
	for _, row := range []struct {
		name string
		f    func(t *testing.T)
	}{
		{"release", func(*testing.T) { forget(NewPool(Options{Name: "git.Commit", Release: bad})) }},
		{"exact", func(*testing.T) { forget(NewPool(Options{Name: "git.Commit", Release: bad, Batch: 1})) }},
		{"OnReleaseError", func(*testing.T) {
			forget(NewPool(Options{Name: "git.Commit", Release: failing, OnReleaseError: func(ReleaseError) { panic("the oven is hot") }}))
		}},
		{"OnReleaseError with a thread", func(*testing.T) {
			forget(NewPool(Options{Name: "git.Commit", Release: failing, Run: Thread(0), OnReleaseError: func(ReleaseError) { panic("the oven is hot") }}))
		}},
		{"own workers", func(*testing.T) { forget(NewPool(Options{Name: "git.Commit", Release: bad, Run: Workers(1)})) }},
		{"thread", func(*testing.T) { forget(NewPool(Options{Name: "git.Commit", Release: bad, Run: Thread(0)})) }},
		{"OnCollect with a thread", func(*testing.T) {
			forget(NewPool(Options{Name: "git.Commit", Release: good, Run: Thread(0), OnCollect: func(Collected) { panic("the oven is hot") }}))
		}},
		{"parent in another pool", func(t *testing.T) {
			p := NewPool(Options{Name: "git.Commit", Release: bad})
			q := NewPool(Options{Name: "git.Tree", Release: good})
			testcall.Aside(func() {
				var parent object
				p.own(&parent.owner, 1, 16)
				q.ownWith(&new(thing).owner, 1, With{Size: 16, Parent: parent.Owner()})
				parent.Close()
			})
		}},
		{"OnCollect after a panic that was caught", func(t *testing.T) {
			q := NewPool(Options{Name: "git.Tree", Release: bad})
			var o object
			q.own(&o.owner, 1, 16)
			testcall.Catch(func() { o.Close() })
			forget(NewPool(Options{Name: "git.Commit", Release: good, OnCollect: func(Collected) { panic("the oven is hot") }}))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			out, status := testchild.Run(t, func() {
				row.f(t)
				for range 100 {
					gc(t)
				}
			})
			what := "the release function panicked"
			if name, _, _ := strings.Cut(row.name, " "); name == "OnCollect" || name == "OnReleaseError" {
				what = "Options." + name + " panicked"
			}
			if !strings.Contains(out, what) {
				t.Errorf("the output does not say that %s", what)
			}
			if status != 2 || !strings.Contains(out, "panic: ") || !strings.Contains(out, "cheap: git.Commit: ") || !strings.Contains(out, "the oven is hot") {
				t.Errorf("status %d, output:\n%s", status, out)
			}
		})
	}
}

// TestPanicInClose reaches the caller, and the owner is closed.
func TestPanicInClose(t *testing.T) {
	oops := errors.New("oops")
	w := newWorld(t, 10)
	p := w.pool(Options{})
	m, mate := w.own(t, p, 10), w.own(t, p, 10)
	w.before = func(cells []*cell) {
		for _, c := range cells {
			w.destroy(c)
		}
		panic(oops)
	}
	if v := testcall.Catch(func() { m.Close() }); v != oops {
		t.Errorf("panic value %v", v)
	}
	if !m.Closed() {
		t.Error("the owner is open")
	}
	if v := testcall.Catch(func() { m.Close() }); v != nil {
		t.Errorf("a second Close panics with %v", v)
	}
	mustStats(t, p, Stats{Live: 1, Bytes: 10})
	if v := testcall.Catch(func() {
		mate.Use(func(unsafe.Pointer) {
			mate.Close()
			mustBeAlive(t, mate.cell, "in use")
		})
	}); v != oops {
		t.Errorf("panic value %v", v)
	}
	mustStats(t, p, Stats{})
	mustDestroy(t, p)
}

// TestPanicDoesNotStopTheParent has the release of a last child panic: the
// parent, which is closed, is released all the same.
func TestPanicDoesNotStopTheParent(t *testing.T) {
	w, bad := newWorld(t, 10), newWorld(t, 10)
	p, q := w.pool(Options{}), bad.pool(Options{})
	parent, child := w.own(t, p, 10), &thing{cell: bad.create(10)}
	testcall.Must(t, child.OwnWith(q, child.cell.pointer(), With{Size: 10, Parent: parent.Owner()}))
	parent.Close()
	bad.before = func(cells []*cell) { bad.destroy(cells[0]); panic("oops") }
	if v := testcall.Catch(func() { child.Close() }); v != "oops" {
		t.Errorf("panic value %v", v)
	}
	mustBeReleased(t, parent.cell, "after its last child")
	mustDestroy(t, p)
	mustDestroy(t, q)
}

// TestPanicInDrain has a panic reach the caller; untried releases stay queued.
func TestPanicInDrain(t *testing.T) {
	w := newWorld(t, 30)
	p := w.pool(Options{Run: new(Queue).Run()})
	held := w.ownSome(t, p, 10, 10)
	for _, m := range held {
		m.Close()
	}
	bad := held[4].cell
	w.before = func(cells []*cell) {
		if cells[0] == bad {
			w.destroy(bad)
			panic("oops")
		}
	}
	if v := testcall.Catch(func() { drainPool(p, 0) }); v != "oops" {
		t.Errorf("panic value %v", v)
	}
	if n := w.died.Load(); n != 5 {
		t.Errorf("%d are released", n)
	}
	mustStats(t, p, Stats{Live: 5, Bytes: 50, Queued: 5})
	if n := drainPool(p, 0); n != 5 || w.alive() != 0 {
		t.Errorf("Drain: %d, and %d alive", n, w.alive())
	}

	// What the collector found is one call for each Drain.
	w.forget(t, p, 10, 10)
	wait(t, "all are queued", func() bool {
		cleanups(t)
		return p.Stats().Queued == 10
	})
	w.before = func(cells []*cell) {
		for _, c := range cells {
			w.destroy(c)
		}
		panic("oops")
	}
	if v := testcall.Catch(func() { drainPool(p, 3) }); v != "oops" {
		t.Errorf("panic value %v", v)
	}
	mustStats(t, p, Stats{Live: 7, Bytes: 70, Queued: 7})
	w.before = nil
	if n := drainPool(p, 0); n != 7 {
		t.Errorf("Drain: %d", n)
	}
	mustStats(t, p, Stats{})
	mustDestroy(t, p)
}

// TestPanicInDestroy reaches the caller when everything has been tried.
func TestPanicInDestroy(t *testing.T) {
	w := newWorld(t, 100)
	p, q := w.pool(Options{Batch: 1}), w.pool(Options{})
	var held []*thing
	for range 10 {
		m := w.own(t, p, 10)
		held = append(held, m, w.ownUnder(t, q, m, 10))
	}
	var values []string
	w.before = func(cells []*cell) {
		if n := len(values); n < 3 {
			for _, c := range cells {
				w.destroy(c)
			}
			v := []string{"first", "second", "third"}[n]
			values = append(values, v)
			panic(v)
		}
	}
	if v := testcall.Catch(func() { p.CloseWait(patient(t)) }); v != "first" {
		t.Errorf("panic value %v", v)
	}
	if len(values) != 3 {
		t.Errorf("%d panics: %v", len(values), values)
	}
	for _, m := range held {
		mustBeReleased(t, m.cell, "by CloseWait")
		if !m.Closed() {
			t.Error("an owner is open")
		}
	}
	if err := p.CloseWait(waiting(0)); err != ErrPoolClosed {
		t.Errorf("a second Close: %v", err)
	}
	mustStats(t, p, Stats{})
	mustDestroy(t, q)
}

// TestPanicInDestroyOfStock has the release of a stock panic.
func TestPanicInDestroyOfStock(t *testing.T) {
	f := &factory{w: newWorld(t, 100)}
	p := f.pool(Options{})
	m := f.make(t, p)
	var sizes []int
	f.w.before = func(cells []*cell) {
		sizes = append(sizes, len(cells))
		if len(cells) > 1 {
			for _, c := range cells {
				f.w.destroy(c)
			}
			panic("oops")
		}
	}
	if v := testcall.Catch(func() { p.CloseWait(patient(t)) }); v != "oops" {
		t.Errorf("panic value %v", v)
	}
	mustBeReleased(t, m.cell, "by CloseWait")
	if f.w.alive() != 0 || !slices.Contains(sizes, 1) {
		t.Errorf("%d are alive; calls for %v", f.w.alive(), sizes)
	}
}
