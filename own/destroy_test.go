package own

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestClosePoolReleasesWhatIsLeft has owners in batches of all kinds left.
func TestClosePoolReleasesWhatIsLeft(t *testing.T) {
	for _, o := range []Options{{}, {Batch: 1}, {Batch: 7}, {Unshared: true}, {Trace: true}} {
		o.Name = "image"
		w := newWorld(t, 1000)
		p := w.pool(o)
		var things []*thing
		for i := range 1000 {
			things = append(things, w.own(t, p, []int{16, 1000, 100_000}[i%3]))
		}
		for i, m := range things {
			if i%4 != 0 {
				m.Close()
			}
		}
		e := destroyError(t, p, waiting(0))
		if e.NeverClosed != 250 || e.InUse+e.Waiting+e.Releasing+e.Queued != 0 || e.Pool != "image" {
			t.Errorf("%+v", e)
		}
		if s := e.Error(); !strings.HasPrefix(s, "cheap: image: Pool.Close: 250 were never closed") {
			t.Errorf("%.100s", s)
		}
		if n := w.alive(); n != 0 {
			t.Errorf("%d are left", n)
		}
		for _, m := range things {
			if !m.Closed() {
				t.Error("an owner is open")
			}
			testcall.Want(t, m.Close())
			if _, err := m.Disown(); err != ErrClosed {
				t.Errorf("Disown: %v", err)
			}
		}
		mustStats(t, p, Stats{})
	}
}

// TestClosePoolReleasesInBatches looks at the calls of the release function.
func TestClosePoolReleasesInBatches(t *testing.T) {
	setProcs(t, 1)
	w := newWorld(t, 1000)
	p := w.pool(Options{})
	things := w.ownSome(t, p, 1000, 16)
	destroyError(t, p, waiting(0))
	runtime.KeepAlive(things)
	if n := w.calls.Load(); n > 20 {
		t.Errorf("%d calls of the release function for %d resources", n, len(things))
	}
}

func TestClosePoolOfNothingLeft(t *testing.T) {
	w := newWorld(t, 100)
	unused := w.pool(Options{})
	mustDestroy(t, unused)
	p := w.pool(Options{})
	for range 50 {
		w.own(t, p, 10).Close()
	}
	m := w.own(t, p, 10)
	if _, err := m.Disown(); err != nil {
		t.Error(err)
	}
	if err := p.CloseWait(waiting(0)); err != nil {
		t.Errorf("CloseWait: %v", err)
	}
	w.destroy(m.cell)
	for range 2 {
		if err := p.CloseWait(waiting(0)); err != ErrPoolClosed {
			t.Errorf("a second Close: %v", err)
		}
	}
	if err := p.Close(); err != ErrPoolClosed {
		t.Errorf("Close after it: %v", err)
	}
}

// TestOwnAfterDestroy leaves the resource with the caller.
func TestOwnAfterDestroy(t *testing.T) {
	w := newWorld(t, 100)
	parents := w.pool(Options{})
	parent := w.own(t, parents, 10)
	for _, o := range []Options{{}, {Batch: 1}, {Run: new(Queue).Run()}, {Parent: parent.Owner()}} {
		p := w.pool(o)
		mustDestroy(t, p)
		for _, size := range []int{0, 16, 1 << 20} {
			c := w.create(size)
			var m object
			if err := m.Own(p, c.pointer(), size); err != ErrPoolClosed || !m.Closed() {
				t.Errorf("Own: %v", err)
			}
			if err := p.own(&m.owner, uintptr(c.pointer()), size); err != ErrPoolClosed || !m.Closed() {
				t.Errorf("own: %v", err)
			}
			if o.Parent == (Owner{}) {
				if err := m.OwnWith(p, c.pointer(), With{Size: size, Parent: parent.Owner()}); err != ErrPoolClosed || !m.Closed() {
					t.Errorf("OwnWith: %v", err)
				}
			}
			mustBeAlive(t, c, "although not owned")
			w.destroy(c)
		}
		mustStats(t, p, Stats{})
	}
	parent.Close()
	mustBeReleased(t, parent.cell, "by Close")
	mustDestroy(t, parents)
}

// TestClosePoolWaitsForReleases has a release under way, in Close and with a
// worker, and destroys: within the time given CloseWait waits, beyond it says so.
func TestClosePoolWaitsForReleases(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, w *world, p *Pool){
		"Close": func(t *testing.T, w *world, p *Pool) {
			m := w.own(t, p, 10)
			go m.Close()
		},
		"worker": func(t *testing.T, w *world, p *Pool) {
			w.forget(t, p, 1, 1<<20)
			cleanups(t)
		},
	} {
		for _, late := range []bool{false, true} {
			w := newWorld(t, 1)
			p := w.pool(Options{})
			inside, leave := make(chan struct{}), make(chan struct{})
			w.before = func([]*cell) {
				close(inside)
				<-leave
			}
			end(t, w, p)
			<-inside
			if late {
				if e := destroyError(t, p, doneAfter(1)); e.Releasing != 1 || e.NeverClosed+e.InUse+e.Waiting+e.Queued != 0 {
					t.Errorf("%s: %+v", name, e)
				}
				close(leave)
			} else {
				if err := p.CloseWait(whenWaiting(func() { close(leave) })); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				mustBeReleased(t, &w.cells[0], "when CloseWait returned: "+name)
			}
			flush(t)
			wait(t, "it is counted as released", func() bool { return p.Stats().Live == 0 })
			mustStats(t, p, Stats{})
		}
	}
}

// TestClosePoolTakesAsLongAsItIsGiven has a Use that does not end. CloseWait returns when its
// context is done, and not before.
func TestClosePoolTakesAsLongAsItIsGiven(t *testing.T) {
	for _, give := range []int64{0, 1, 50} {
		w := newWorld(t, 1)
		p := w.pool(Options{})
		m := w.own(t, p, 10)
		m.owner.useNumber(func(_ uintptr) {
			ctx := doneAfter(give)
			if e := destroyError(t, p, ctx); e.InUse != 1 || !errors.Is(e, context.Canceled) {
				t.Errorf("%+v", e)
			}
			if n := ctx.asked.Load(); n != give {
				t.Errorf("CloseWait has waited %d times for its context, which is done after %d", n, give)
			}
		})
		mustBeReleased(t, m.cell, "after its Use")
	}
}

// TestClosePoolAfterDrop destroys a pool whose owners are unreachable, whether the
// collector has found them or not.
func TestClosePoolAfterDrop(t *testing.T) {
	for collections := range 4 {
		for _, drain := range []bool{false, true} {
			w := newWorld(t, 100)
			p := w.pool(Options{Run: queuedIf(drain)})
			testcall.Aside(func() {
				for range 50 {
					w.own(t, p, 16)
				}
				w.own(t, p, 1<<20)
			})
			for range collections {
				cleanups(t)
			}
			err := p.CloseWait(patient(t))
			var e *CloseError
			if err != nil && !errors.As(err, &e) {
				t.Fatal(err)
			}
			if drain {
				if e == nil || e.Queued != 51 {
					t.Errorf("after %d collections: %+v", collections, e)
				}
				if n := drainPool(p, 0); n != 51 {
					t.Errorf("Drain after %d collections: %d", collections, n)
				}
			}
			if n := w.alive(); n != 0 {
				t.Errorf("after %d collections %d are alive", collections, n)
			}
			flush(t)
			gc(t)
			mustStats(t, p, Stats{})
		}
	}
}

// TestClosePoolDuringOwn calls Own in some goroutines while the pool is destroyed.
// Resources that Own accepted are released; all others belong to the caller.
func TestClosePoolDuringOwn(t *testing.T) {
	for range times(200) {
		w := newWorld(t, 4*1000)
		p := w.pool(Options{Batch: 5})
		var wg sync.WaitGroup
		var owned atomic.Int64
		var held [4][]*thing
		for g := range 4 {
			wg.Go(func() {
				for {
					c := w.create(16)
					m := &thing{cell: c}
					switch err := m.Own(p, c.pointer(), 16); err {
					case nil:
						held[g] = append(held[g], m)
						owned.Add(1)
						if len(held[g]) == 900 {
							return
						}
					case ErrPoolClosed:
						if !m.Closed() {
							t.Error("an error, and an owner")
						}
						w.destroy(c)
						return
					default:
						t.Error(err)
						return
					}
				}
			})
		}
		for owned.Load() < 20 {
			runtime.Gosched()
		}
		e := destroyError(t, p, patient(t))
		if e.InUse+e.Waiting+e.Releasing+e.Queued != 0 {
			t.Errorf("%+v", e)
		}
		wg.Wait()
		runtime.KeepAlive(&held)
		if n := int64(e.NeverClosed); n != owned.Load() {
			t.Errorf("%d were owned, and %d never closed", owned.Load(), n)
		}
		if n := w.alive(); n != 0 {
			t.Errorf("%d are alive", n)
		}
		mustStats(t, p, Stats{})
	}
}

// TestClosePoolTwiceAtOnce lets one of several calls win.
func TestClosePoolTwiceAtOnce(t *testing.T) {
	w := newWorld(t, 1000)
	p := w.pool(Options{})
	for range 1000 {
		w.own(t, p, 16)
	}
	var wg sync.WaitGroup
	var won atomic.Int64
	for range 4 {
		wg.Go(func() {
			if err := p.CloseWait(patient(t)); err != ErrPoolClosed {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d calls destroyed the pool", won.Load())
	}
	collectAtMost(t, few, "what the collector had found before", func() bool { return w.alive() == 0 })
}

// TestClosePoolInRelease destroys a pool in its own release function.
func TestClosePoolInRelease(t *testing.T) {
	w := newWorld(t, 20)
	p := w.pool(Options{})
	m, other := w.own(t, p, 10), w.own(t, p, 10)
	once := false
	w.before = func([]*cell) {
		if once {
			return
		}
		once = true
		e := destroyError(t, p, doneAfter(1))
		if e.NeverClosed != 1 || e.Releasing != 1 {
			t.Errorf("%+v", e)
		}
	}
	m.Close()
	mustBeReleased(t, m.cell, "by Close")
	mustBeReleased(t, other.cell, "by CloseWait")
}

func TestCloseErrorSaysWhatIsLeft(t *testing.T) {
	e := &CloseError{Pool: "image", NeverClosed: 1, InUse: 2, Waiting: 3, Releasing: 4, Queued: 5, Origins: []Origin{{6, "main.main\n"}}}
	want := "cheap: image: Pool.Close: 1 were never closed, 2 are still in use, 3 wait for their children, 4 are being released, 5 are queued\n6 made by\nmain.main\n"
	if got := e.Error(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
