package own

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// told keeps what OnReleaseError is told.
type told struct {
	mu   sync.Mutex
	errs []ReleaseError
}

func (l *told) hear(e ReleaseError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, e)
}

// take returns what was told since the last take: the number of resources of each
// error.
func (l *told) take() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]int{}
	for _, e := range l.errs {
		all[fmt.Sprint(e.Pool, ": ", e.Err)] += int(e.Count)
	}
	l.errs = nil
	return all
}

// TestReleaseErrors has a release function fail, wherever it runs. Close returns the
// error if it calls the function, and OnReleaseError is told of all others. A resource
// whose release has failed counts as released.
func TestReleaseErrors(t *testing.T) {
	cold := errors.New("cold")
	for _, row := range []struct {
		name   string
		o      Options
		end    func(t *testing.T, w *world, p *Pool, m *thing)
		closed error
		told   int
	}{
		{"Close", Options{}, nil, cold, 0},
		{"Close, a batch each", Options{Batch: 1}, nil, cold, 0},
		{"last Use", Options{}, func(t *testing.T, _ *world, _ *Pool, m *thing) {
			m.Use(func(unsafe.Pointer) {
				if err := m.Close(); err != nil {
					t.Errorf("Close in Use: %v", err)
				}
			})
		}, nil, 1},
		{"collector", Options{}, func(t *testing.T, w *world, p *Pool, _ *thing) {
			w.forget(t, p, 10, 10)
			collect(t, "the forgotten", func() bool { return w.alive() == 1 })
		}, cold, 10},
		{"last child", Options{}, func(t *testing.T, w *world, p *Pool, m *thing) {
			child := new(object)
			testcall.Must(t, child.OwnWith(p, w.create(10).pointer(), With{Size: 10, Parent: m.Owner()}))
			testcall.Must(t, m.Close())
			if err := child.Close(); err != cold {
				t.Errorf("Close of the child: %v", err)
			}
		}, nil, 1},
		{"CloseWait", Options{}, func(t *testing.T, _ *world, p *Pool, m *thing) {
			if e := destroyError(t, p, patient(t)); e.NeverClosed != 1 {
				t.Error(e)
			}
		}, nil, 1},
		{"Drain", Options{Run: new(Queue).Run()}, func(t *testing.T, _ *world, p *Pool, m *thing) {
			testcall.Must(t, m.Close())
			drainPool(p, 0)
		}, nil, 1},
		{"Drain of a batch", Options{Run: new(Queue).Run()}, func(t *testing.T, w *world, p *Pool, m *thing) {
			w.forget(t, p, 10, 10)
			wait(t, "the forgotten are released", func() bool { settle(t); return p.Stats().Queued == 10 })
			drainPool(p, 0)
			testcall.Must(t, m.Close())
			drainPool(p, 0)
		}, nil, 11},
		{"Thread", Options{Run: Thread(0)}, func(t *testing.T, _ *world, _ *Pool, m *thing) {
			testcall.Must(t, m.Close())
			flush(t)
		}, nil, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			w, l := newWorld(t, 12), told{}
			row.o.Name, row.o.OnReleaseError = "kettle", l.hear
			row.o.Release = func(state any, r []uintptr) error {
				w.release(state, r)
				return cold
			}
			p := NewPool(row.o)
			m := w.own(t, p, 1<<20) // a batch of its own
			if row.end != nil {
				row.end(t, w, p, m)
			}
			if err := m.Close(); err != row.closed {
				t.Errorf("Close: %v, want %v", err, row.closed)
			}
			flush(t)
			mustStats(t, p, Stats{Errors: int64(len(l.errs))})
			all := l.take()
			if n := all["kettle: cold"]; n != row.told || len(all) > 1 {
				t.Errorf("told %v, want %d", all, row.told)
			}
			if w.alive() != 0 {
				t.Errorf("%d are not released", w.alive())
			}
			p.CloseWait(patient(t))
		})
	}
}

// TestErrorsOfParents fails for a child, its parent and the parent's parent, of which
// Close of the child returns its own error.
func TestErrorsOfParents(t *testing.T) {
	for name, end := range map[string]func(o *object){
		"Close":     func(o *object) { o.Close() },
		"collector": nil,
	} {
		w, l := newWorld(t, 3), told{}
		failing := func(name string) *Pool {
			return NewPool(Options{Name: name, OnReleaseError: l.hear, Release: func(state any, r []uintptr) error {
				w.release(state, r)
				return errors.New(name + " is broken")
			}})
		}
		a, b, c := failing("a"), failing("b"), failing("c")
		testcall.Aside(func() {
			top, middle := w.own(t, a, 10), new(object)
			testcall.Must(t, middle.OwnWith(b, w.create(10).pointer(), With{Size: 10, Parent: top.Owner()}))
			low := new(object)
			testcall.Must(t, low.OwnWith(c, w.create(10).pointer(), With{Size: 10, Parent: middle.Owner()}))
			if end == nil {
				return
			}
			testcall.Must(t, top.Close())
			testcall.Must(t, middle.Close())
			if err := low.Close(); err == nil || err.Error() != "c is broken" {
				t.Errorf("Close: %v", err)
			}
		})
		want := map[string]int{"a: a is broken": 1, "b: b is broken": 1, "c: c is broken": 1}
		if end != nil {
			delete(want, "c: c is broken")
		}
		collect(t, "all", func() bool { return w.alive() == 0 })
		flush(t)
		if all := l.take(); fmt.Sprint(all) != fmt.Sprint(want) {
			t.Errorf("%s: told %v, want %v", name, all, want)
		}
	}
}

// TestErrorsAreCounted has nobody who is told of an error.
func TestErrorsAreCounted(t *testing.T) {
	p := NewPool(Options{Numbers: true, Release: func(any, []uintptr) error { return errors.ErrUnsupported }})
	for range 3 {
		var n Number[int]
		testcall.Must(t, n.Own(p, 1, 10))
		n.Use(func(int) { n.Close() })
	}
	mustStats(t, p, Stats{Errors: 3})
}

// TestFlushInOnReleaseError must not wait for itself.
func TestFlushInOnReleaseError(t *testing.T) {
	var err error
	p := NewPool(Options{Run: new(Queue).Run(), Numbers: true, Release: func(any, []uintptr) error { return errors.ErrUnsupported },
		OnReleaseError: func(ReleaseError) { err = Flush(patient(t)) }})
	var n Number[int]
	testcall.Must(t, n.Own(p, 1, 10))
	n.Close()
	drainPool(p, 0)
	if err != ErrInRelease {
		t.Errorf("Flush: %v", err)
	}
}

// TestGoexitInOnReleaseError ends a worker's goroutine. What the worker had to do is
// done, and it serves others.
func TestGoexitInOnReleaseError(t *testing.T) {
	for _, o := range []Options{{}, {Run: Workers(1)}, {Run: Thread(0)}, {Run: Inline()}} {
		w := newWorld(t, 500)
		var l listener
		o.Name, o.Batch, o.OnCollect = "bread", 5, l.hear
		o.OnReleaseError = func(ReleaseError) { runtime.Goexit() }
		o.Release = func(state any, r []uintptr) error { w.release(state, r); return errors.ErrUnsupported }
		p := NewPool(o)
		w.forget(t, p, 500, 10)
		wait(t, "the forgotten are released", func() bool {
			gc(t)
			n, _ := l.sum()
			return w.alive() == 0 && n == 500
		})
		mustStats(t, p, Stats{Errors: p.Stats().Errors})
		mustDestroy(t, p)
	}
}

// TestState gives each parent a state, and counts in it what is released. A call of the
// release function has the resources of one parent, and its state.
func TestState(t *testing.T) {
	type library struct {
		mu       sync.Mutex
		children map[uintptr]bool // that are alive
		gone     bool
	}
	const parents, children = 20, 30
	var mu sync.Mutex
	byNumber := map[uintptr]*library{}
	contexts := NewPool(Options{Name: "context", Numbers: true, State: "the pool's", Release: func(state any, r []uintptr) error {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range r {
			lib := byNumber[r]
			lib.mu.Lock()
			if lib.gone || len(lib.children) > 0 || state != "the pool's" {
				t.Errorf("context %d is released with %d children, state %v", r, len(lib.children), state)
			}
			lib.gone = true
			lib.mu.Unlock()
		}
		return nil
	}})
	for name, o := range map[string]Options{"Own": {}, "a batch each": {Batch: 1}, "Drain": {Run: new(Queue).Run()}, "Thread": {Run: Thread(0)}} {
		o.Name, o.Numbers, o.State = "shape", true, "another"
		o.Release = func(state any, r []uintptr) error {
			lib, ok := state.(*library)
			if !ok {
				t.Errorf("%s: state %v", name, state)
				return nil
			}
			lib.mu.Lock() // as the program does while it calls Own
			defer lib.mu.Unlock()
			for _, r := range r {
				if !lib.children[r] {
					t.Errorf("%s: %d is released with the state of another parent, or twice", name, r)
				}
				delete(lib.children, r)
			}
			return nil
		}
		shapes := NewPool(o)
		next := uintptr(0)
		libraries := make([]*library, parents)
		testcall.Aside(func() {
			all := make([]Number[uintptr], parents)
			for i := range all {
				lib := &library{children: map[uintptr]bool{}}
				libraries[i] = lib
				mu.Lock()
				number := uintptr(len(byNumber) + 1)
				byNumber[number] = lib
				mu.Unlock()
				testcall.Must(t, all[i].Own(contexts, number, 100))
				testcall.Must(t, all[i].SetState(lib))
			}
			for j := range children {
				for i := range all {
					var n Number[uintptr]
					next++
					libraries[i].mu.Lock()
					libraries[i].children[next] = true
					testcall.Must(t, n.OwnWith(shapes, next, With{Size: 50, Parent: all[i].Owner()}))
					libraries[i].mu.Unlock()
					if j%3 == 0 {
						n.Close()
					}
				}
			}
			if err := all[0].SetState(1); err != ErrChildren {
				t.Errorf("SetState after a child: %v", err)
			}
			all[1].Close()
			if err := all[1].SetState(1); err != ErrClosed {
				t.Errorf("SetState of a closed one: %v", err)
			}
		})
		gone := func() bool {
			drainPool(shapes, 0)
			for _, lib := range libraries {
				lib.mu.Lock()
				left := !lib.gone || len(lib.children) > 0
				lib.mu.Unlock()
				if left {
					return false
				}
			}
			return true
		}
		wait(t, "all contexts and shapes are released", func() bool { settle(t); return gone() })
		drainPool(shapes, 0)
		mustDestroy(t, shapes)
	}
	mustDestroy(t, contexts)
}

// TestStateOfParentOption uses Options.Parent, whose state cannot change any more.
func TestStateOfParentOption(t *testing.T) {
	var states []any
	contexts := NewPool(Options{Numbers: true, Release: released(func([]uintptr) {})})
	var context Number[int]
	testcall.Must(t, context.Own(contexts, 1, 10))
	testcall.Must(t, context.SetState("the parent's"))
	p := NewPool(Options{Numbers: true, State: "the pool's", Parent: context.Owner(), Release: func(state any, r []uintptr) error {
		states = append(states, state)
		return nil
	}})
	if err := context.SetState("another"); err != ErrChildren {
		t.Errorf("SetState after NewPool: %v", err)
	}
	var n Number[int]
	testcall.Must(t, n.Own(p, 5, 10))
	mustMisuse(t, "own.Handle.Discard", func() { Discard(p, 7) }, "Options.Parent")
	n.Close()
	mustDestroy(t, p)
	if fmt.Sprint(states) != "[the parent's]" {
		t.Errorf("states %v", states)
	}
	context.Close()
	mustDestroy(t, contexts)
}

// TestStateIsDropped looks whether the collector finds the state when the parent and
// its children are released, although owners of the batch live.
func TestStateIsDropped(t *testing.T) {
	contexts := NewPool(Options{Numbers: true, Release: released(func([]uintptr) {})})
	children := NewPool(Options{Numbers: true, Release: released(func([]uintptr) {})})
	var mate, context, child Number[int]
	testcall.Must(t, mate.Own(contexts, 1, 10))
	testcall.Must(t, context.Own(contexts, 2, 10))
	gone := make(chan bool, 1)
	testcall.Aside(func() {
		state := new([64]byte)
		runtime.SetFinalizer(state, func(*[64]byte) { gone <- true })
		testcall.Must(t, context.SetState(state))
	})
	testcall.Must(t, child.OwnWith(children, 3, With{Size: 10, Parent: context.Owner()}))
	context.Close()
	child.Close()
	child = Number[int]{} // its batch has the state, too
	wait(t, "the state is collected", func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	})
	runtime.KeepAlive(&mate)
	mate.Close()
}

// TestClosePoolWaitsForThreadsOfChildren destroys a pool whose resources have children
// that are released on a thread.
func TestClosePoolWaitsForThreadsOfChildren(t *testing.T) {
	var order []uintptr
	parents := NewPool(Options{Numbers: true, Release: released(func(r []uintptr) { order = append(order, r...) })})
	leave := make(chan struct{})
	children := NewPool(Options{Numbers: true, Run: Thread(0), Release: released(func(r []uintptr) {
		<-leave
		order = append(order, r...)
	})})
	var parent, child Number[int]
	testcall.Must(t, parent.Own(parents, 1, 10))
	testcall.Must(t, child.OwnWith(children, 2, With{Size: 10, Parent: parent.Owner()}))
	if e := destroyError(t, parents, whenWaiting(func() { close(leave) })); e.NeverClosed != 1 || e.Waiting+e.Releasing+e.Queued != 0 {
		t.Errorf("%+v", e)
	}
	if fmt.Sprint(order) != "[2 1]" {
		t.Errorf("released %d", order)
	}
	mustDestroy(t, children)
}

// TestNumberOfTooFewBits makes a number that its type cannot have.
func TestNumberOfTooFewBits(t *testing.T) {
	var got []uintptr
	p := NewPool(Options{Name: "texture", Numbers: true, Construct: func(r []uintptr) (int, error) {
		r[0] = 300
		return 1, nil
	}, Release: released(func(r []uintptr) { got = append(got, r...) })})
	var n Number[uint8]
	mustMisuse(t, "texture.Make", func() { n.Make(p) }, "0x12c")
	if !n.Closed() || fmt.Sprint(got) != "[300]" {
		t.Errorf("released %d", got)
	}
	mustDestroy(t, p)
}
