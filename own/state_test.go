package own

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
	"weak"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// release collects, and drains, until done reports true.
func release(t *testing.T, p *Pool, done func() bool) {
	t.Helper()
	wait(t, "all is released", func() bool {
		settle(t)
		if p.queue != nil { // a collection may queue more at any moment
			defer testwait.Loop(1, func() { drainPool(p, 0); runtime.Gosched() })()
		}
		flush(t)
		return done()
	})
}

// TestOwnWith ends resources with and without a state of their own in all ways, in pools of
// all kinds. The world complains if one is released with the state of another, with no state,
// or together with others, and if a state is kept.
func TestOwnWith(t *testing.T) {
	type scene struct {
		w      *world
		p      *Pool
		mine   []*thing // each has a state of its own
		others []*thing // of the same batches, without
	}
	all := func(s *scene, f func(m *thing)) {
		for i, m := range s.mine {
			f(m)
			f(s.others[i])
		}
	}
	ways := map[string]func(t *testing.T, s *scene){
		"close": func(_ *testing.T, s *scene) {
			all(s, func(m *thing) {
				stale := m.object
				m.Close()
				stale.Close()
				m.Close()
			})
		},
		"wait": func(t *testing.T, s *scene) {
			if s.p.queue != nil && !s.p.queue.Thread {
				all(s, func(m *thing) { m.Close() }) // nobody drains meanwhile
				return
			}
			all(s, func(m *thing) {
				if err := m.CloseWait(patient(t)); err != nil || m.cell.alive() {
					t.Errorf("CloseWait: %v, alive: %v", err, m.cell.alive())
				}
			})
		},
		"forget":      func(_ *testing.T, s *scene) { s.mine, s.others = nil, nil },
		"forget some": func(_ *testing.T, s *scene) { clear(s.mine[1:]); clear(s.others[1:]) },
		"destroy":     func(_ *testing.T, s *scene) { s.p.CloseWait(waiting(0)) },
		"disown": func(t *testing.T, s *scene) {
			all(s, func(m *thing) {
				if _, err := m.Disown(); err != nil {
					t.Error(err)
				}
				s.w.destroy(m.cell)
			})
		},
		"close in use": func(_ *testing.T, s *scene) {
			all(s, func(m *thing) { m.Use(func(unsafe.Pointer) { m.Close() }) })
		},
		"destroy in use": func(t *testing.T, s *scene) {
			last := s.mine[len(s.mine)-1]
			last.Use(func(unsafe.Pointer) {
				s.p.CloseWait(waiting(0))
				mustBeAlive(t, last.cell, "in use")
			})
		},
	}
	kinds := map[string]Options{
		"plain":    {},
		"alone":    {Batch: 1},
		"small":    {Batch: 3},
		"inline":   {Run: Inline()},
		"drain":    {Run: new(Queue).Run()},
		"thread":   {Run: Thread(0)},
		"workers":  {Run: Workers(2)},
		"unshared": {Unshared: true},
		"traced":   {Trace: true, OnCollect: func(Collected) {}},
	}
	for name, end := range ways {
		for kind, o := range kinds {
			for _, size := range []int{16, 1 << 20} {
				if o.Unshared && (name == "close in use" || name == "destroy in use") {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d", name, kind, size), func(t *testing.T) {
					const n = 10
					w := newWorld(t, 2*n)
					s := &scene{w: w, p: w.pool(o)}
					testcall.Aside(func() {
						for range n {
							s.mine = append(s.mine, w.ownWith(t, s.p, nil, size))
							s.others = append(s.others, w.own(t, s.p, size))
						}
						end(t, s)
					})
					release(t, s.p, func() bool {
						return w.alive() == 0 || name == "forget some" && w.alive() <= 2+2*31
					})
					w.mustDropStates(t) // while the batch of s.mine[0] is there
					runtime.KeepAlive(s)
					s.p.CloseWait(waiting(0))
					drainPool(s.p, 0)
					flush(t)
					if w.alive() != 0 {
						t.Errorf("%d are alive", w.alive())
					}
				})
			}
		}
	}
}

// TestOwnWithFamilies has states of their own in three generations, in each combination, and
// ends them from both ends.
func TestOwnWithFamilies(t *testing.T) {
	for _, o := range []Options{{}, {Batch: 1}, {Run: new(Queue).Run()}, {Run: Thread(0)}, {Run: Inline()}} {
		for mask := range 8 {
			if (o.Batch == 1 || o.Run.thread || o.Run.inline) && mask != 7 {
				continue
			}
			for name, end := range map[string]func(f []*thing, p *Pool){
				"oldest first":   func(f []*thing, _ *Pool) { f[0].Close(); f[1].Close(); f[2].Close() },
				"youngest first": func(f []*thing, _ *Pool) { f[2].Close(); f[1].Close(); f[0].Close() },
				"forget":         func(f []*thing, _ *Pool) { clear(f) },
				"forget the parents": func(f []*thing, _ *Pool) {
					f[0], f[1] = nil, nil
					runtime.GC()
					runtime.GC()
				},
				"destroy": func(_ []*thing, p *Pool) { p.CloseWait(waiting(0)) },
			} {
				t.Run(fmt.Sprintf("%s/%d/drain=%v/thread=%v/inline=%v/batch=%d", name, mask, o.Run.queue != nil, o.Run.thread, o.Run.inline, o.Batch), func(t *testing.T) {
					w := newWorld(t, 3)
					p, q := w.pool(o), w.pool(Options{})
					f := make([]*thing, 3)
					testcall.Aside(func() {
						for i, pool := range []*Pool{p, q, p} {
							switch {
							case mask>>i&1 != 0 && i == 0:
								f[i] = w.ownWith(t, pool, nil, 16)
							case mask>>i&1 != 0:
								f[i] = w.ownWith(t, pool, f[i-1], 16)
							case i == 0:
								f[i] = w.own(t, pool, 16)
							default:
								f[i] = w.ownUnder(t, pool, f[i-1], 16)
							}
						}
						end(f, p)
					})
					if name == "forget the parents" {
						cleanups(t)
						for i := range 2 {
							mustBeAlive(t, &w.cells[i], "before its child")
						}
						f[2].Close()
					}
					release(t, p, func() bool { return w.alive() == 0 })
					p.CloseWait(waiting(0))
					mustDestroy(t, q)
				})
			}
		}
	}
}

// TestOwnWithStateKept has the release function collect, and use the state in C only.
func TestOwnWithStateKept(t *testing.T) {
	type state struct{ _ [64]byte }
	var kept weak.Pointer[state]
	calls := 0
	p := NewPool(Options{Numbers: true, Release: func(any, []uintptr) error {
		runtime.GC()
		runtime.GC()
		if calls++; kept.Value() == nil {
			t.Error("the state is gone before the release function has returned")
		}
		return nil
	}})
	var n Number[int]
	testcall.Aside(func() {
		s := new(state)
		kept = weak.Make(s)
		testcall.Must(t, n.OwnWith(p, 1, With{Size: 16, State: s}))
	})
	n.Close()
	if calls != 1 {
		t.Errorf("%d calls of the release function", calls)
	}
	mustDestroy(t, p)
}

// TestOwnWithState says which state a resource gets that could have several.
func TestOwnWithState(t *testing.T) {
	var got []any
	o := Options{Numbers: true, State: "pool", Release: func(state any, _ []uintptr) error {
		got = append(got, state)
		return nil
	}}
	p := NewPool(o)
	var parent, child, plain Number[int]
	if err := errors.Join(
		parent.OwnWith(p, 1, With{Size: 16, State: "parent"}),
		parent.SetState("of its children"),
		child.OwnWith(p, 2, With{Size: 16, Parent: parent.Owner(), State: "child"}),
		plain.OwnWith(p, 3, With{Size: 16, Parent: parent.Owner()}),
	); err != nil {
		t.Fatal(err)
	}
	var none, noneUnder Number[int]
	testcall.Must(t, errors.Join(none.OwnWith(p, 4, With{Size: 16}), noneUnder.OwnWith(p, 5, With{Size: 16, Parent: parent.Owner()})))
	for _, n := range []*Number[int]{&none, &noneUnder, &parent, &child, &plain} {
		testcall.Want(t, n.Close())
	}
	if want := []any{"pool", "of its children", "child", "of its children", "parent"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
	if err := child.OwnWith(p, 2, With{Size: 16, Parent: parent.Owner(), State: "child"}); err != ErrClosed {
		t.Errorf("under a closed parent: %v", err)
	}
	mustDestroy(t, p)
	if err := new(Number[int]).OwnWith(p, 2, With{Size: 16, State: "late"}); err != ErrPoolClosed {
		t.Errorf("after CloseWait: %v", err)
	}
	mustMisuse(t, "own.Handle.OwnWith", func() { new(Number[int]).OwnWith(NewPool(Options{Release: o.Release}), 2, With{Size: 16, State: ""}) }, "Options.Numbers")
}

// TestOwnWithErrors has releases with a state of their own fail, panic and end their
// goroutine. Each is called once, and what waits behind it is released.
func TestOwnWithErrors(t *testing.T) {
	errRelease := errors.New("no")
	for _, row := range []struct {
		name    string
		o       Options
		release func() error
		told    int64 // calls of OnReleaseError
	}{
		{"error", Options{}, func() error { return errRelease }, 10},
		{"error, Drain", Options{Run: new(Queue).Run()}, func() error { return errRelease }, 10},
		{"error, Inline", Options{Run: Inline()}, func() error { return errRelease }, 10},
		{"Goexit", Options{}, func() error { runtime.Goexit(); return nil }, 0},
		{"Goexit, Thread", Options{Run: Thread(0)}, func() error { runtime.Goexit(); return nil }, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			var mu sync.Mutex
			calls := map[int]int{}
			var told, found, late atomic.Int64
			o := row.o
			o.Numbers = true
			o.OnReleaseError = func(e ReleaseError) {
				if e.Count != 1 || e.Err != errRelease {
					t.Error(e)
				}
				told.Add(1)
			}
			o.OnCollect = func(c Collected) {
				found.Add(int64(c.Count))
				mu.Lock()
				if int(found.Load()) > len(calls) {
					late.Add(1)
				}
				mu.Unlock()
				if c.Stack == "" {
					t.Error("no stack")
				}
			}
			o.Trace = true
			o.Release = func(state any, resources []uintptr) error {
				mu.Lock()
				for _, r := range resources {
					calls[int(r)]++
				}
				mu.Unlock()
				if state == nil || int(resources[0]) != *state.(*int) {
					t.Errorf("%v with %v", resources, state)
				}
				return row.release()
			}
			p := NewPool(o)
			testcall.Aside(func() {
				for i := range 10 {
					testcall.Want(t, new(Number[int]).OwnWith(p, i, With{Size: 16, State: &i}))
				}
			})
			release(t, p, func() bool { return found.Load() == 10 })
			flush(t)
			mu.Lock()
			defer mu.Unlock()
			for i := range 10 {
				if calls[i] != 1 {
					t.Errorf("%d was released %d times", i, calls[i])
				}
			}
			if told.Load() != row.told || p.Stats().Collected != 10 || late.Load() != 0 {
				t.Errorf("told of %d errors, want %d; %+v; OnCollect came %d times before the release", told.Load(), row.told, p.Stats(), late.Load())
			}
			mustDestroy(t, p)
		})
	}
	t.Run("panic", func(t *testing.T) {
		p := NewPool(Options{Numbers: true, Release: func(state any, _ []uintptr) error { panic(state) }})
		var first, second Number[int]
		state := &held{}
		gone := weak.Make(state)
		testcall.Must(t, errors.Join(first.OwnWith(p, 1, With{Size: 16, State: state}), second.OwnWith(p, 2, With{Size: 16, State: "second"})))
		if v := testcall.Catch(func() { first.Close() }); v != state {
			t.Errorf("panic value %v", v)
		}
		state = nil
		if v := testcall.Catch(func() { p.CloseWait(waiting(0)) }); v != "second" {
			t.Errorf("panic value of CloseWait: %v", v)
		}
		runtime.GC()
		if gone.Value() != nil {
			t.Error("the state is kept after a panic")
		}
		runtime.KeepAlive(&first)
		mustStats(t, p, Stats{})
	})
	t.Run("Close", func(t *testing.T) {
		p := NewPool(Options{Numbers: true, Release: func(any, []uintptr) error { return errRelease }})
		var n Number[int]
		testcall.Must(t, n.OwnWith(p, 1, With{Size: 16, State: "state"}))
		if err := n.Close(); err != errRelease {
			t.Errorf("Close: %v", err)
		}
		mustDestroy(t, p)
	})
}

// TestOwnWithDrain counts what Drain returns, and what Stats says.
func TestOwnWithDrain(t *testing.T) {
	w := newWorld(t, 20)
	p := w.pool(Options{Run: new(Queue).Run()})
	testcall.Aside(func() {
		for range 10 {
			w.ownWith(t, p, nil, 16)
			w.own(t, p, 16)
		}
	})
	wait(t, "all are queued", func() bool {
		settle(t)
		return p.Stats().Queued == 20
	})
	for want := int64(20); want > 0; want -= 4 {
		mustStats(t, p, Stats{Live: want, Bytes: 16 * want, Queued: want})
		if n := drainPool(p, 4); n != 4 {
			t.Errorf("Drain(4) of %d: %d", want, n)
		}
	}
	mustStats(t, p, Stats{})
	if n := p.Stats().Collected; n != 20 {
		t.Errorf("%d were collected", n)
	}
	mustDestroy(t, p)
}

// TestOwnWithWhileClosed makes owners while their pool, or that of their parent, is
// destroyed. What has an owner is released with its state, and nothing else is.
func TestOwnWithWhileClosed(t *testing.T) {
	for round := range times(3000) {
		w := newWorld(t, 100)
		p, q := w.pool(Options{}), w.pool(Options{Batch: 1 + round%3})
		parent := w.own(t, p, 16)
		var wg sync.WaitGroup
		for g := range 3 {
			wg.Go(func() {
				for i := range 20 {
					m := &thing{cell: w.create(16)}
					over := []Owner{{}, parent.Owner()}[(i+g)%2]
					if over != (Owner{}) {
						m.cell.parent = 0
					}
					if err := m.OwnWith(q, m.cell.pointer(), With{Size: 16, Parent: over, State: m.cell.hold()}); err != nil {
						m.cell.parent = -1
						w.destroy(m.cell)
					}
				}
			})
		}
		wg.Go(func() { []*Pool{p, q}[round%2].CloseWait(waiting(0)) })
		wg.Wait()
		p.CloseWait(patient(t))
		q.CloseWait(patient(t))
		if w.alive() != 0 {
			t.Fatalf("%d are alive", w.alive())
		}
	}
}

// TestOwnWithAllocates compares what an owner takes of the Go heap with what the
// documentation says.
func TestOwnWithAllocates(t *testing.T) {
	testenv.Skip(t, "asan", "a conversion to unsafe.Pointer makes its variable escape, and each Go object has a red zone")
	const n = 20_000
	p := NewPool(Options{Numbers: true, Size: 100, Release: released(func([]uintptr) {})})
	owners := make([]Number[int], n)
	state := any(new(held))
	_, bytes := mallocs(func() {
		for i := range owners {
			testcall.Must(t, owners[i].OwnWith(p, i, With{State: state}))
		}
	})
	t.Logf("%d bytes for each", bytes/n)
	if bytes/n > 200 {
		t.Errorf("%d bytes for each of %d owners", bytes/n, n)
	}
	if err := p.CloseWait(context.Background()); err == nil {
		t.Error("none was open")
	}
}
