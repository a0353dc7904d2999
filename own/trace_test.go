package own

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// Places that own, which a stack is to name.

//go:noinline
func bakery(t testing.TB, w *world, p *Pool) *thing { return w.own(t, p, 10) }

//go:noinline
func butchery(t testing.TB, w *world, p *Pool) *thing { return w.own(t, p, 10) }

// frames returns the functions of a stack.
func frames(stack string) (names []string) {
	for i, line := range strings.Split(strings.TrimSuffix(stack, "\n"), "\n") {
		if i%2 == 0 {
			names = append(names, line[strings.LastIndex(line, "/")+1:])
		}
	}
	return names
}

// TestTraceSaysWhoMadeWhatWasNeverClosed looks at the error of CloseWait.
func TestTraceSaysWhoMadeWhatWasNeverClosed(t *testing.T) {
	w := newWorld(t, 100)
	p := w.pool(Options{Name: "bread", Trace: true})
	var held []*thing
	for i := range 12 {
		held = append(held, bakery(t, w, p))
		if i%3 == 0 {
			held = append(held, butchery(t, w, p))
		}
		bakery(t, w, p).Close()
	}
	e := destroyError(t, p, waiting(0))
	if e.NeverClosed != 16 || len(e.Origins) != 2 || e.Origins[0].Count != 12 || e.Origins[1].Count != 4 {
		t.Fatalf("%+v", e)
	}
	for i, name := range []string{"own.bakery", "own.butchery"} {
		stack := e.Origins[i].Stack
		if f := frames(stack); len(f) < 3 || f[0] != "own.(*world).own" || f[1] != name || f[2] != "own.TestTraceSaysWhoMadeWhatWasNeverClosed" {
			t.Errorf("the stack is %q:\n%s", f, stack)
		}
		if !strings.Contains(stack, "trace_test.go:") || !strings.Contains(e.Error(), stack) {
			t.Errorf("the stack is\n%s\nand the error\n%s", stack, e)
		}
	}
	if !strings.Contains(e.Error(), "12 made by\n") || !strings.Contains(e.Error(), "\n4 made by\n") {
		t.Errorf("%v", e)
	}
	runtime.KeepAlive(held)
}

// TestTraceOfEveryWayToOwn begins with the caller of the package, and has one
// frame of it.
func TestTraceOfEveryWayToOwn(t *testing.T) {
	for name, own := range map[string]func(t *testing.T, w *world, p *Pool, parent *thing, o *object) error{
		"Own": func(_ *testing.T, w *world, p *Pool, _ *thing, o *object) error {
			return o.Own(p, w.create(10).pointer(), 10)
		},
		"exact": func(_ *testing.T, w *world, p *Pool, _ *thing, o *object) error {
			return o.Own(p, w.create(10).pointer(), 1<<20)
		},
		"own": func(_ *testing.T, w *world, p *Pool, _ *thing, o *object) error {
			return p.own(&o.owner, uintptr(w.create(10).pointer()), 10)
		},
		"OwnWith": func(_ *testing.T, w *world, p *Pool, parent *thing, o *object) error {
			return o.OwnWith(p, w.create(10).pointer(), With{Size: 10, Parent: parent.Owner()})
		},
		"ownWith": func(_ *testing.T, w *world, p *Pool, parent *thing, o *object) error {
			return p.ownWith(&o.owner, uintptr(w.create(10).pointer()), With{Size: 10, Parent: parent.Owner()})
		},
		"Make": func(_ *testing.T, _ *world, p *Pool, _ *thing, o *object) error {
			return o.Make(p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 100)
			parents := w.pool(Options{})
			parent := w.own(t, parents, 10)
			p := (&factory{w: w}).pool(Options{Trace: true})
			var owners [20]object
			for i := range owners {
				testcall.Must(t, own(t, w, p, parent, &owners[i]))
			}
			e := destroyError(t, p, waiting(0))
			runtime.KeepAlive(&owners)
			if len(e.Origins) != 1 || e.Origins[0].Count != int64(len(owners)) {
				t.Fatalf("%+v", e)
			}
			if f := frames(e.Origins[0].Stack); !strings.HasPrefix(f[0], "own.TestTraceOfEveryWayToOwn.func") {
				t.Errorf("the stack is %q", f)
			}
			parent.Close()
			mustDestroy(t, parents)
		})
	}
}

func TestWithoutTraceNoOrigins(t *testing.T) {
	w := newWorld(t, 1)
	p := w.pool(Options{})
	m := bakery(t, w, p)
	if e := destroyError(t, p, waiting(0)); e.Origins != nil || strings.Contains(e.Error(), "made by") || !m.Closed() {
		t.Errorf("%+v", e)
	}
}

// A listener notes what OnCollect is told.
type listener struct {
	mu   sync.Mutex
	told []Collected
	ids  []uintptr
}

func (l *listener) hear(c Collected) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, c)
	l.ids = append(l.ids, gcwatch.GoroutineID())
}

// sum returns how many were told of, and how many times with a stack.
func (l *listener) sum() (n, stacks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.told {
		n += int(c.Count)
		if c.Stack != "" {
			stacks++
		}
	}
	return n, stacks
}

// TestOnCollectIsToldOfForgottenCloses forgets some and closes the rest.
func TestOnCollectIsToldOfForgottenCloses(t *testing.T) {
	for _, o := range []Options{{}, {Trace: true}, {Batch: 1}, {Batch: 1, Trace: true}, {Run: new(Queue).Run()}} {
		t.Run(fmt.Sprintf("trace=%v/batch=%d/drain=%v", o.Trace, o.Batch, o.Run.queue != nil), func(t *testing.T) {
			w := newWorld(t, 10_000)
			var l listener
			o.Name, o.OnCollect = "bread", l.hear
			if o.Batch == 0 {
				o.Batch = 16 // one stack in each is sampled, if that one is forgotten
			}
			o.Release = w.release
			p := NewPool(o)
			testcall.Aside(func() {
				for i := range 3000 {
					if i%3 != 0 {
						bakery(t, w, p)
					} else if butchery(t, w, p).Close(); o.Run.queue != nil {
						drainPool(p, 0)
					}
				}
			})
			wait(t, "the forgotten are released", func() bool {
				cleanups(t)
				drainPool(p, 0)
				n, _ := l.sum()
				return w.alive() == 0 && n >= 2000
			})
			n, stacks := l.sum()
			if n != 2000 || p.Stats().Collected != 2000 {
				t.Errorf("told of %d, collected %d", n, p.Stats().Collected)
			}
			if o.Trace && stacks != len(l.told) {
				t.Errorf("%d of %d have a stack", stacks, len(l.told))
			} else if stacks == 0 {
				t.Error("no stack was sampled")
			}
			for i, c := range l.told {
				if c.Pool != "bread" || c.Count <= 0 {
					t.Errorf("%+v", c)
				}
				if c.Stack != "" && !strings.Contains(c.Stack, "own.bakery") {
					t.Errorf("the collector found what this made, which was closed:\n%s", c.Stack)
				}
				if l.ids[i] == gcwatch.GoroutineID() && o.Run.queue == nil {
					t.Error("told on a goroutine that is not own's")
				}
			}
			told := len(l.told)
			held := bakery(t, w, p)
			p.CloseWait(waiting(0))
			drainPool(p, 0)
			if !held.Closed() || len(l.told) != told {
				t.Error("told of what CloseWait released")
			}
		})
	}
}

// deepStack calls f through functions that the bits of n choose, so that each n
// has a stack of its own.
//
//go:noinline
func deepStack(n, bits int, f func()) {
	switch {
	case bits == 0:
		f()
	case n&1 == 0:
		deepStack(n>>1, bits-1, f)
	default:
		deepStack(n>>1, bits-1, f)
	}
}

// TestStacksAreNotKept makes owners by thousands of different stacks, and looks
// at the Go heap after they are gone.
func TestStacksAreNotKept(t *testing.T) {
	const bits = 13
	for _, o := range []Options{{Trace: true}, {OnCollect: func(Collected) {}, Batch: 1}} {
		w := newWorld(t, 1<<bits)
		p := w.pool(o)
		heap := func() uint64 {
			var m runtime.MemStats
			collectAtMost(t, few, "all owners", func() bool { return w.alive() == 0 })
			for range few {
				gc(t)
			}
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		stacks := map[[32]uintptr]bool{} // as an origin has them
		for n := range 1 << bits {
			deepStack(n, bits, func() {
				m := w.own(t, p, 16)
				if n%64 == 0 {
					var pcs [32]uintptr
					runtime.Callers(1, pcs[:])
					stacks[pcs] = true
				}
				m.Close()
			})
		}
		if len(stacks) != 1<<bits/64 {
			t.Errorf("%d stacks", len(stacks))
		}
		clear(stacks)
		if after := heap(); after > before+512<<10 {
			t.Errorf("%d KiB more after %d owners with a stack each", (after-before)>>10, 1<<bits)
		}
		mustDestroy(t, p)
	}
}
