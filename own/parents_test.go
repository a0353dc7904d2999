package own

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"
	"weak"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// TestChildrenBeforeParents ends a family of three generations in all ways, with
// pools of all kinds. The world complains if one is released before a child.
func TestChildrenBeforeParents(t *testing.T) {
	type family struct{ parent, child, grandchild *thing }
	ends := map[string]func(t *testing.T, f *family, pools [3]*Pool){
		"close, oldest first": func(_ *testing.T, f *family, _ [3]*Pool) {
			f.parent.Close()
			f.child.Close()
			f.grandchild.Close()
		},
		"close, youngest first": func(_ *testing.T, f *family, _ [3]*Pool) {
			f.grandchild.Close()
			f.child.Close()
			f.parent.Close()
		},
		"close, middle first": func(_ *testing.T, f *family, _ [3]*Pool) {
			f.child.Close()
			f.grandchild.Close()
			f.parent.Close()
		},
		"forget": func(*testing.T, *family, [3]*Pool) {},
		"forget the parent": func(t *testing.T, f *family, _ [3]*Pool) {
			f.parent = nil
			cleanups(t)
			cleanups(t)
			f.child.Close()
			f.grandchild.Close()
		},
		"forget the child": func(t *testing.T, f *family, _ [3]*Pool) {
			f.child = nil
			cleanups(t)
			cleanups(t)
			f.parent.Close()
			f.grandchild.Close()
		},
		"forget all but the parent": func(t *testing.T, f *family, _ [3]*Pool) {
			f.child, f.grandchild = nil, nil
			cleanups(t)
			cleanups(t)
			f.parent.Close()
		},
		"destroy, oldest first": func(_ *testing.T, _ *family, pools [3]*Pool) {
			for _, p := range pools {
				p.CloseWait(waiting(0))
			}
		},
		"destroy, youngest first": func(_ *testing.T, _ *family, pools [3]*Pool) {
			for i := range pools {
				pools[2-i].CloseWait(waiting(0))
			}
		},
		"close and destroy": func(_ *testing.T, f *family, pools [3]*Pool) {
			f.child.Close()
			pools[0].CloseWait(waiting(0))
		},
		"use": func(_ *testing.T, f *family, pools [3]*Pool) {
			f.parent.Use(func(unsafe.Pointer) {
				f.child.Use(func(unsafe.Pointer) {
					f.grandchild.Use(func(unsafe.Pointer) {
						f.parent.Close()
						f.child.Close()
						f.grandchild.Close()
						pools[0].CloseWait(waiting(0))
						for _, m := range []*thing{f.parent, f.child, f.grandchild} {
							if !m.cell.alive() {
								t.Error("released in use")
							}
						}
					})
				})
			})
		},
	}
	for name, end := range ends {
		for kind := range 16 {
			drains := [3]bool{kind&1 != 0, kind&2 != 0, kind&4 != 0}
			one := kind >= 8 // pool
			if one && kind%8 != 0 && kind%8 != 7 {
				continue
			}
			for _, size := range []int{16, 1 << 20} {
				t.Run(fmt.Sprintf("%s/drain=%v/one=%v/size=%d", name, drains, one, size), func(t *testing.T) {
					w := newWorld(t, 3)
					var pools [3]*Pool
					for i := range pools {
						if pools[i] = pools[0]; i == 0 || !one {
							pools[i] = w.pool(Options{Run: queuedIf(drains[i])})
						}
					}
					var f family
					testcall.Aside(func() {
						f.parent = w.own(t, pools[0], size)
						f.child = w.ownUnder(t, pools[1], f.parent, 16)
						f.grandchild = w.ownUnder(t, pools[2], f.child, 16)
					})
					end(t, &f, pools)
					if name != "close and destroy" {
						f = family{}
					}
					for range 2 * few {
						for _, p := range pools {
							drainPool(p, 0)
						}
						if w.alive() == 0 {
							break
						}
						settle(t)
					}
					if n := w.alive(); n != 0 {
						t.Errorf("%d are not released", n)
					}
					flush(t)
					for i, p := range pools {
						if s := p.Stats(); s.Live != 0 || s.Bytes != 0 || s.Queued != 0 {
							t.Errorf("pool %d: %+v", i, s)
						}
						p.CloseWait(waiting(0))
					}
					runtime.KeepAlive(f)
				})
			}
		}
	}
}

// TestClosedParentWaits closes a parent before its children.
func TestClosedParentWaits(t *testing.T) {
	w := newWorld(t, 10)
	p := w.pool(Options{Name: "repository"})
	parent := w.own(t, p, 10)
	mate := w.own(t, p, 10)
	a, b := w.ownUnder(t, p, parent, 10), w.ownUnder(t, p, parent, 10)
	parent.Close()
	if !parent.Closed() || parent.Pointer() != nil {
		t.Error("the parent is not closed")
	}
	mustMisuse(t, "repository.Use", func() { parent.Use(func(unsafe.Pointer) {}) }, "closed")
	c := w.create(10)
	var late object
	if err := late.OwnWith(p, c.pointer(), With{Size: 10, Parent: parent.Owner()}); err != ErrClosed || !late.Closed() {
		t.Errorf("OwnWith of a closed parent: %v", err)
	}
	w.destroy(c)
	a.Close()
	mustBeAlive(t, parent.cell, "before its last child")
	mustStats(t, p, Stats{Live: 3, Bytes: 30})
	b.Close()
	mustBeReleased(t, parent.cell, "after its last child")
	mustBeAlive(t, mate.cell, "with a batch-mate")
	w.ownUnder(t, p, mate, 10).Close()
	mustBeAlive(t, mate.cell, "with a child that is released")
	mate.Close()
	mustBeReleased(t, mate.cell, "by Close, when it has no child any more")
	mustDestroy(t, p)
}

// TestDisownOfParent is an error while there are children, and ends the family
// when there are none.
func TestDisownOfParent(t *testing.T) {
	w := newWorld(t, 10)
	p, q := w.pool(Options{}), w.pool(Options{})
	parent := w.own(t, p, 10)
	child := w.ownUnder(t, q, parent, 10)
	if _, err := parent.Disown(); err != ErrChildren || parent.Closed() {
		t.Errorf("Disown of a parent: %v", err)
	}
	child.Use(func(unsafe.Pointer) {
		child.Close()
		if _, err := parent.Disown(); err != ErrChildren {
			t.Errorf("Disown of a parent whose child is closed and in use: %v", err)
		}
	})
	child = w.ownUnder(t, q, parent, 10)
	if resource, err := child.Disown(); err != nil || resource != child.cell.pointer() {
		t.Errorf("Disown of a child: %v", err)
	}
	w.destroy(child.cell)
	if resource, err := parent.Disown(); err != nil || resource != parent.cell.pointer() {
		t.Errorf("Disown: %v", err)
	}
	c := w.create(10)
	if err := new(object).OwnWith(q, c.pointer(), With{Size: 10, Parent: parent.Owner()}); err != ErrClosed {
		t.Errorf("OwnWith after Disown: %v", err)
	}
	w.destroy(c)
	mustBeAlive(t, parent.cell, "although disowned")
	mustDestroy(t, p)
	mustDestroy(t, q)
	w.destroy(parent.cell)

	// A child that is disowned is the last that a closed parent waits for.
	p, q = w.pool(Options{}), w.pool(Options{})
	parent = w.own(t, p, 10)
	child = w.ownUnder(t, q, parent, 10)
	parent.Close()
	w.before = func(cells []*cell) { w.destroy(child.cell) }
	if _, err := child.Disown(); err != nil {
		t.Error(err)
	}
	mustBeReleased(t, parent.cell, "after its last child was disowned")
	mustDestroy(t, p)
	mustDestroy(t, q)
}

// TestFailedOwnWithLeavesTheParent has OwnWith fail in all ways: the parent
// does not wait for a child that never came.
func TestFailedOwnWithLeavesTheParent(t *testing.T) {
	w := newWorld(t, 100)
	for name, fail := range map[string]func(parent *thing, resource unsafe.Pointer){
		"destroyed": func(parent *thing, resource unsafe.Pointer) {
			p := w.pool(Options{})
			mustDestroy(t, p)
			if err := new(object).OwnWith(p, resource, With{Size: 1, Parent: parent.Owner()}); err != ErrPoolClosed {
				t.Errorf("OwnWith: %v", err)
			}
		},
		"full": func(parent *thing, resource unsafe.Pointer) {
			p := w.pool(Options{Run: NewQueue(1, nil).Run()})
			w.own(t, p, 1).Close()
			if err := new(object).OwnWith(p, resource, With{Size: 1, Parent: parent.Owner()}); err != ErrQueueFull {
				t.Errorf("OwnWith: %v", err)
			}
			drainPool(p, 0)
		},
		"negative": func(parent *thing, resource unsafe.Pointer) {
			p := w.pool(Options{})
			testcall.Catch(func() { new(object).OwnWith(p, resource, With{Size: -1, Parent: parent.Owner()}) })
		},
		"not vacant": func(parent *thing, resource unsafe.Pointer) {
			p := w.pool(Options{})
			m := w.own(t, p, 1)
			testcall.Catch(func() { m.OwnWith(p, resource, With{Size: 1, Parent: parent.Owner()}) })
			m.Close()
		},
		"closed meanwhile": func(parent *thing, resource unsafe.Pointer) {
			p := w.pool(Options{})
			mustDestroy(t, p)
			parent.Use(func(unsafe.Pointer) {
				parent.Close()
				if err := new(object).OwnWith(p, resource, With{Size: 1, Parent: parent.Owner()}); err != ErrClosed {
					t.Errorf("OwnWith: %v", err)
				}
			})
		},
	} {
		p := w.pool(Options{})
		parent := w.own(t, p, 1)
		c := w.create(1)
		fail(parent, c.pointer())
		parent.Close()
		if parent.cell.alive() {
			t.Errorf("%s: the parent is not released", name)
		}
		mustBeAlive(t, c, "although not owned: "+name)
		w.destroy(c)
		mustDestroy(t, p)
	}
}

// TestParentOption has a parent for all of a pool.
func TestParentOption(t *testing.T) {
	w := newWorld(t, 100)
	p := w.pool(Options{})
	parent := w.own(t, p, 1<<20)
	q := w.pool(Options{Name: "commit", Parent: parent.Owner()})
	own := func(o *object) error {
		c := w.createUnder(parent.cell, 10)
		err := o.Own(q, c.pointer(), 10)
		if err != nil {
			w.destroy(c)
		}
		return err
	}
	var kept object
	testcall.Must(t, own(&kept))
	gc(t) // seals its batch
	testcall.Aside(func() {
		for range 50 {
			testcall.Must(t, own(&new(thing).object))
		}
	})
	other := w.own(t, p, 10)
	mustMisuse(t, "commit.OwnWith", func() { new(object).OwnWith(q, w.cells[0].pointer(), With{Size: 1, Parent: other.Owner()}) }, "Options.Parent")
	other.Close()
	collectAtMost(t, few, "the children", func() bool { return parent.cell.children.Load() == 1 })
	parent.Close()
	mustBeAlive(t, parent.cell, "before its child")
	if err := own(new(object)); err != ErrClosed {
		t.Errorf("Own under a closed parent: %v", err)
	}
	kept.Close()
	mustBeReleased(t, parent.cell, "after its last child")
	mustDestroy(t, p)
	mustDestroy(t, q)
}

// TestPoolDoesNotKeepItsParent drops the parent of all of a pool that stays. The pool
// keeps what the functions of its options refer to, and not the options.
func TestPoolDoesNotKeepItsParent(t *testing.T) {
	w := newWorld(t, 1)
	p := w.pool(Options{})
	o := Options{OnCollect: func(Collected) {}, OnReleaseError: func(ReleaseError) {}}
	var q *Pool
	testcall.Aside(func() {
		o := o
		o.Parent = w.own(t, p, 16).Owner()
		q = w.pool(o)
	})
	collectAtMost(t, few, "the parent", func() bool { return w.alive() == 0 })
	mustDestroy(t, q)
	mustDestroy(t, p)
}

// TestParentOptionAfterDisown disowns the parent of all of a pool.
func TestParentOptionAfterDisown(t *testing.T) {
	w := newWorld(t, 3)
	p := w.pool(Options{})
	parent := w.own(t, p, 16)
	q := w.pool(Options{Parent: parent.Owner()})
	child := w.own(t, q, 16)
	if _, err := parent.Disown(); err != ErrChildren {
		t.Errorf("Disown of a parent: %v", err)
	}
	child.Close()
	if _, err := parent.Disown(); err != nil {
		t.Errorf("Disown: %v", err)
	}
	c := w.create(16)
	if err := new(object).Own(q, c.pointer(), 16); err != ErrClosed {
		t.Errorf("Own under a parent that is disowned: %v", err)
	}
	w.destroy(c)
	w.destroy(parent.cell)
	mustDestroy(t, q)
	mustDestroy(t, p)
}

// TestBatchesAreOfOneParent checks that only children of one parent share a batch.
func TestBatchesAreOfOneParent(t *testing.T) {
	w := newWorld(t, 1000)
	p, q := w.pool(Options{}), w.pool(Options{})
	small, other, exact := w.own(t, p, 16), w.own(t, p, 16), w.own(t, p, 1<<20)
	type place struct {
		parent *cell
		pool   *Pool
	}
	places := map[*batch.Batch]place{}
	siblings := 0
	for range 50 {
		for _, parent := range []*thing{nil, small, other, exact} {
			for _, pool := range []*Pool{p, q} {
				var m *thing
				here := place{pool: pool}
				if parent == nil {
					m = w.own(t, pool, 16)
				} else {
					m = w.ownUnder(t, pool, parent, 16)
					here.parent = parent.cell
				}
				if there, ok := places[m.owner.ref.Sentinel().Batch]; !ok {
					places[m.owner.ref.Sentinel().Batch] = here
				} else if there != here {
					t.Fatalf("a batch has owners of %+v and %+v", there, here)
				} else if parent == exact {
					siblings++
				}
			}
		}
	}
	if siblings == 0 {
		t.Error("the children of an exact parent share no batch")
	}
	p.CloseWait(waiting(0))
	q.CloseWait(waiting(0))
	runtime.KeepAlive([]*thing{small, other, exact})
}

// TestChildDoesNotKeepItsParentsOwner collects the parent's Go value while the
// child lives. The parent's resource stays, until the child is closed.
func TestChildDoesNotKeepItsParentsOwner(t *testing.T) {
	w := newWorld(t, 2)
	var collected Collected
	p := w.pool(Options{OnCollect: func(c Collected) { collected = c }})
	q := w.pool(Options{})
	var gone weak.Pointer[thing]
	var child *thing
	testcall.Aside(func() {
		parent := w.own(t, p, 16)
		child = w.ownUnder(t, q, parent, 16)
		gone = weak.Make(parent)
	})
	collectAtMost(t, few, "the parent's Go value", func() bool { return gone.Value() == nil })
	for range few {
		gc(t)
	}
	mustBeAlive(t, &w.cells[0], "before its child")
	child.Close()
	mustBeReleased(t, &w.cells[0], "after its last child")
	if n := p.Stats().Collected; n != 1 || collected.Count != 1 {
		t.Errorf("the collector had %d released, and told of %d; the parent was never closed", n, collected.Count)
	}
	mustDestroy(t, p)
	mustDestroy(t, q)
}

// TestForgottenFamilyIsTold counts what the collector found together.
func TestForgottenFamilyIsTold(t *testing.T) {
	w := newWorld(t, 20)
	found := make(chan Collected, 20)
	p := w.pool(Options{OnCollect: func(c Collected) { found <- c }})
	testcall.Aside(func() {
		for range 10 {
			w.ownUnder(t, p, w.own(t, p, 16), 16)
		}
	})
	collectAtMost(t, few, "the family", func() bool { return w.alive() == 0 })
	if n := p.Stats().Collected; n != 20 {
		t.Errorf("the collector had %d of 20 released", n)
	}
	n := 0
	for len(found) > 0 {
		n += int((<-found).Count)
	}
	if n != 20 {
		t.Errorf("OnCollect was told of %d of 20", n)
	}
	mustDestroy(t, p)
}

// TestLargeParentsWithSmallChildren makes a thousand parents of 1 MiB with a
// child of 16 bytes each, and keeps one child.
func TestLargeParentsWithSmallChildren(t *testing.T) {
	const size = 1 << 20
	w := newWorld(t, 2000)
	p, q := w.pool(Options{}), w.pool(Options{})
	var kept *thing
	testcall.Aside(func() {
		for i := range 1000 {
			if m := w.ownUnder(t, q, w.own(t, p, size), 16); i == 500 {
				kept = m
			}
		}
	})
	collectAtMost(t, few, "all parents but two", func() bool { return w.bytes.Load() <= 2*size+1000*16 })
	collectAtMost(t, few, "their children", func() bool { return w.alive() <= 4 })
	mustBeAlive(t, kept.cell, "although it is held")
	mustBeAlive(t, &w.cells[kept.cell.parent], "before its child")
	kept.Close()
	collectAtMost(t, few, "the rest", func() bool { return w.alive() == 0 })
	mustDestroy(t, p)
	mustDestroy(t, q)
}

// TestClosePoolReleasesChildrenElsewhere destroys the pool of a parent whose
// children, and theirs, are in other pools, which go on.
func TestClosePoolReleasesChildrenElsewhere(t *testing.T) {
	w := newWorld(t, 1000)
	p := w.pool(Options{Name: "repository"})
	pools := []*Pool{p, w.pool(Options{}), w.pool(Options{Batch: 1}), w.pool(Options{Batch: 3})}
	other := w.own(t, pools[1], 16)
	var family []*thing
	for range 5 {
		parent := w.own(t, p, 16)
		family = append(family, parent)
		for i := range 20 {
			child := w.ownUnder(t, pools[i%len(pools)], parent, 16)
			grandchild := w.ownUnder(t, pools[i/len(pools)%len(pools)], child, 16)
			family = append(family, child, grandchild)
			switch {
			case i%7 == 0:
				child.Close() // waits for the grandchild
			case i%5 == 0:
				grandchild.Close()
			}
		}
	}
	family[0].Close()
	never := 0
	for _, m := range family {
		if !m.Closed() && m.owner.ref.Sentinel().Batch.Spec == &p.spec {
			never++
		}
	}
	e := destroyError(t, p, patient(t))
	if e.NeverClosed != int64(never) || e.InUse+e.Waiting+e.Releasing+e.Queued != 0 {
		t.Errorf("%+v, want %d", e, never)
	}
	for _, m := range family {
		mustBeReleased(t, m.cell, "by CloseWait")
		if !m.Closed() {
			t.Error("not closed by CloseWait")
		}
	}
	mustBeAlive(t, other.cell, "although it has no parent")
	w.own(t, pools[1], 16).Close()
	other.Close()
	for _, q := range pools[1:] {
		mustDestroy(t, q)
	}
}

// TestClosePoolWithChildInUse has the parent wait for a Use of its child.
func TestClosePoolWithChildInUse(t *testing.T) {
	w := newWorld(t, 2)
	p, q := w.pool(Options{}), w.pool(Options{})
	parent := w.own(t, p, 16)
	child := w.ownUnder(t, q, parent, 16)
	child.Use(func(unsafe.Pointer) {
		if e := destroyError(t, p, doneAfter(1)); e.NeverClosed != 1 || e.Waiting != 1 || e.InUse+e.Queued+e.Releasing != 0 {
			t.Errorf("%+v", e)
		}
		if !child.Closed() {
			t.Error("the child is open")
		}
		mustBeAlive(t, parent.cell, "before its child")
		mustBeAlive(t, child.cell, "in use")
	})
	mustBeReleased(t, child.cell, "after its Use")
	mustBeReleased(t, parent.cell, "after its last child")
	mustDestroy(t, q)
}

// TestDeepFamilies nests parents 10,000 deep, or 100,000 with -own.long, where a recursion
// would need more stack than there is.
func TestDeepFamilies(t *testing.T) {
	depth := 10_000
	switch {
	case *long:
		depth = 100_000
	case race.Build:
		depth = 5000
	}
	chain := func(t testing.TB, w *world, p *Pool) []*thing {
		list := make([]*thing, depth)
		list[0] = w.own(t, p, 16)
		for i := 1; i < depth; i++ {
			list[i] = w.ownUnder(t, p, list[i-1], 16)
		}
		return list
	}
	for name, end := range map[string]func(t testing.TB, w *world){
		"close": func(t testing.TB, w *world) {
			p := w.pool(Options{})
			list := chain(t, w, p)
			for _, m := range list {
				m.Close()
			}
			mustDestroy(t, p)
		},
		"use": func(t testing.TB, w *world) {
			p := w.pool(Options{})
			list := chain(t, w, p)
			list[depth-1].Use(func(unsafe.Pointer) {
				for _, m := range list {
					m.Close()
				}
			})
			mustDestroy(t, p)
		},
		"disown": func(t testing.TB, w *world) {
			p := w.pool(Options{})
			list := chain(t, w, p)
			for _, m := range list[:depth-1] {
				m.Close()
			}
			w.before = func([]*cell) { w.before = nil; w.destroy(list[depth-1].cell) }
			if _, err := list[depth-1].Disown(); err != nil {
				t.Error(err)
			}
			mustDestroy(t, p)
		},
		"forget": func(t testing.TB, w *world) {
			p := w.pool(Options{})
			testcall.Aside(func() { chain(t, w, p) })
			collect(t, "the family", func() bool { return w.alive() == 0 })
			mustDestroy(t, p)
		},
		"destroy": func(t testing.TB, w *world) {
			p := w.pool(Options{})
			list := chain(t, w, p)
			if e := destroyError(t, p, patient(t)); e.NeverClosed != int64(depth) || e.Waiting != 0 {
				t.Errorf("%v", e)
			}
			runtime.KeepAlive(list)
		},
		"drain": func(t testing.TB, w *world) {
			p := w.pool(Options{Run: new(Queue).Run()})
			list := chain(t, w, p)
			for _, m := range list {
				m.Close()
			}
			drainPool(p, 0)
			mustDestroy(t, p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, status := testchild.Run(t, func() {
				debug.SetMaxStack(256 << 10)
				w := newWorld(t, depth)
				end(t, w)
				if t.Failed() || w.alive() != 0 || len(w.wrong) != 0 {
					fmt.Println(w.alive(), "alive;", w.wrong)
					panic("failed")
				}
			})
			if status != 0 {
				t.Errorf("status %d\n%.3000s", status, out)
			}
		})
	}
}

// TestParentAllocates bounds what a parent with one child takes of the Go heap, each in a batch
// of its own. In a process of its own no release allocates meanwhile.
func TestParentAllocates(t *testing.T) {
	testenv.Skip(t, "asan", "a conversion to unsafe.Pointer makes its variable escape, and each Go object has a red zone")
	if race.Build || osmem.GoBacked {
		return
	}
	output, _ := testchild.Run(t, func() {
		o := Options{Numbers: true, Batch: 1, Release: released(func([]uintptr) {})}
		parents, children := NewPool(o), NewPool(o)
		const n = 10_000
		f := func() {
			for range n {
				o := new([2]object)
				if err := cmp.Or(parents.own(&o[0].owner, 1, 0), children.ownWith(&o[1].owner, 1, With{Parent: o[0].Owner()})); err != nil {
					panic(err)
				}
			}
		}
		f() // what is made once
		if _, bytes := mallocs(f); bytes/n > 1100 {
			fmt.Printf("%d bytes, want 1100 at most\n", bytes/n)
		}
	}, "GOGC=off")
	if output != "" {
		t.Error(output)
	}
}
