package own

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// A readerContext is a context of a C library with a lock, a pool of its own, and
// a reader that it makes once and keeps.
type readerContext struct {
	mu     sync.Mutex
	pool   *Pool
	reader object
}

var kept any

// restLittle has CheckReleased go on when the cleanups of a collection have run.
func restLittle(t *testing.T) {
	old := rest
	rest = func(int) { mustRun(t) }
	t.Cleanup(func() { rest = old })
}

// TestCheckReleased has functions of the options that refer to an owner of their
// own pool, and others that do not.
func TestCheckReleased(t *testing.T) {
	var resource [1]byte
	own := func(p *Pool, o *object) {
		testcall.Want(t, o.Own(p, unsafe.Pointer(&resource), 100))
	}
	defer func() { kept = nil }()
	restLittle(t)
	for _, row := range []struct {
		name string
		f    func()
		want []string // parts of the error; none if there is none
	}{
		{"no pool", func() {}, []string{"has made no pool"}},
		{"a pool without owners", func() { NewPool(Options{Release: func(any, []uintptr) error { return nil }}) }, nil},
		{"Release refers to the context", func() {
			c := new(readerContext)
			c.pool = NewPool(Options{Name: "cycle", Release: func(_ any, _ []uintptr) error {
				c.mu.Lock()
				defer c.mu.Unlock()
				return nil
			}})
			own(c.pool, &c.reader)
		}, []string{"1 of cycle", "Options.Release"}},
		{"Release refers to a field of the context", func() {
			c := new(readerContext)
			mu := &c.mu
			c.pool = NewPool(Options{Name: "cycle", Release: func(_ any, _ []uintptr) error {
				mu.Lock()
				defer mu.Unlock()
				return nil
			}})
			own(c.pool, &c.reader)
		}, []string{"1 of cycle"}},
		{"Release refers to a lock of its own", func() {
			c, mu := new(readerContext), new(sync.Mutex)
			c.pool = NewPool(Options{Release: func(_ any, _ []uintptr) error {
				mu.Lock()
				defer mu.Unlock()
				return nil
			}})
			own(c.pool, &c.reader)
		}, nil},
		{"Release refers to the pool", func() {
			c := new(readerContext)
			var p *Pool
			p = NewPool(Options{Release: func(_ any, _ []uintptr) error { p.Stats(); return nil }})
			c.pool = p
			own(p, &c.reader)
		}, nil},
		{"the state of a resource refers to its owner", func() {
			c := new(readerContext)
			c.pool = NewPool(Options{Name: "cycle", Release: func(any, []uintptr) error { return nil }})
			testcall.Want(t, c.reader.OwnWith(c.pool, unsafe.Pointer(&resource), With{Size: 100, State: c}))
		}, []string{"1 of cycle"}},
		{"the state of a resource refers to its pool", func() {
			c := new(readerContext)
			c.pool = NewPool(Options{Release: func(any, []uintptr) error { return nil }})
			testcall.Want(t, c.reader.OwnWith(c.pool, unsafe.Pointer(&resource), With{Size: 100, State: c.pool}))
		}, nil},
		{"OnCollect refers to the context", func() {
			c := new(readerContext)
			c.pool = NewPool(Options{Name: "cycle", Trace: true, Release: func(_ any, _ []uintptr) error { return nil }, OnCollect: func(Collected) { c.mu.TryLock() }})
			own(c.pool, &c.reader)
		}, []string{"1 of cycle", "made by", "TestCheckReleased"}},
		{"closed", func() {
			c := new(readerContext)
			c.pool = NewPool(Options{Release: func(_ any, _ []uintptr) error { c.mu.TryLock(); return nil }})
			own(c.pool, &c.reader)
			c.reader.Close()
		}, nil},
		{"two pools", func() {
			// Each Release refers to an owner of the other pool.
			a, b := new(readerContext), new(readerContext)
			a.pool = NewPool(Options{Name: "a", Release: func(_ any, _ []uintptr) error { b.mu.TryLock(); return nil }})
			b.pool = NewPool(Options{Name: "b", Release: func(_ any, _ []uintptr) error { a.mu.TryLock(); return nil }})
			own(a.pool, &a.reader)
			own(b.pool, &b.reader)
		}, []string{"1 of a", "1 of b"}},
		{"kept", func() {
			c := new(readerContext)
			c.pool = NewPool(Options{Name: "kept", Release: func(_ any, _ []uintptr) error { return nil }})
			own(c.pool, &c.reader)
			kept = c
		}, []string{"1 of kept"}},
		{"Memory", func() {
			m := NewMemory(nil, MemoryOptions{})
			for range 10 {
				if _, err := m.NewBytes(100); err != nil {
					t.Error(err)
				}
			}
		}, nil},
		{"Drain", func() {
			p := NewPool(Options{Run: new(Queue).Run(), Release: func(_ any, _ []uintptr) error { return nil }})
			own(p, new(object))
			t.Cleanup(func() { drainPool(p, 0) })
		}, nil},
		{"Make", func() {
			p := NewPool(Options{Release: func(_ any, _ []uintptr) error { return nil }, Construct: func(r []uintptr) (int, error) { return len(r), nil }})
			testcall.Want(t, new(object).Make(p))
		}, nil},
		{"children", func() {
			p := NewPool(Options{Release: func(_ any, _ []uintptr) error { return nil }})
			parent := new(object)
			own(p, parent)
			testcall.Want(t, new(object).OwnWith(p, unsafe.Pointer(&resource), With{Size: 100, Parent: parent.Owner()}))
		}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := CheckReleased(row.f)
			switch {
			case row.want == nil && err != nil:
				t.Error(err)
			case row.want != nil && err == nil:
				t.Error("nothing is found")
			}
			for _, want := range row.want {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

// TestCheckReleasedWhileOwnersAreMade has a goroutine that goes on to make owners while
// CheckReleased looks at their batches.
func TestCheckReleasedWhileOwnersAreMade(t *testing.T) {
	restLittle(t)
	var resource [1]byte
	var stop func()
	err := CheckReleased(func() {
		c := new(readerContext)
		c.pool = NewPool(Options{Name: "cycle", Trace: true, Release: func(_ any, _ []uintptr) error { c.mu.TryLock(); return nil }})
		testcall.Want(t, c.reader.Own(c.pool, unsafe.Pointer(&resource), 100))
		stop = testwait.Loop(1, func() {
			var o object
			testcall.Want(t, o.Own(c.pool, unsafe.Pointer(&resource), 100))
			o.Close()
		})
	})
	stop()
	if err == nil || !strings.Contains(err.Error(), "of cycle") {
		t.Errorf("%v, want an owner in the pool cycle", err)
	}
}

// TestChecks runs programs with mistakes, as they are and with CHEAP_OWN=check.
func TestChecks(t *testing.T) {
	pool := func(name string, o Options) *Pool {
		o.Name, o.Release = name, func(any, []uintptr) error { return nil }
		return NewPool(o)
	}
	block := func() unsafe.Pointer { return cheap.Default().Malloc(16) }
	const ofGo = " is memory of Go: the owner does not keep it, and C cannot free it"
	for name, row := range map[string]struct {
		f              func()
		plain, checked string // what stderr says, or nothing
	}{
		"Go memory": {func() {
			p := pool("image", Options{})
			var o [3]object
			testcall.Must(t, o[0].Own(p, block(), 1))
			testcall.Must(t, o[1].Own(p, unsafe.Pointer(&global), 1))
			for range 2 {
				testcall.Must(t, o[2].Own(pool("image", Options{}), unsafe.Pointer(new([100]int)), 1))
				testcall.Must(t, o[2].Close())
			}
		}, ofGo, ofGo},
		"twice": {func() {
			p, q, b := pool("image", Options{}), pool("picture", Options{Batch: 1}), block()
			var o [2]object
			testcall.Must(t, o[0].Own(p, b, 1))
			testcall.Must(t, o[1].Own(q, b, 1))
		}, "", "has an owner already, in the pool image"},
		"Discard": {func() {
			p, b := pool("image", Options{}), block()
			testcall.Must(t, new(object).Own(p, b, 1))
			testcall.Must(t, p.Discard(b))
		}, "", "image.Discard: "},
		"another goroutine": {func() {
			p := pool("image", Options{Numbers: true})
			var n [2]Number[int]
			testcall.Must(t, n[0].Own(p, 1, 1))
			testcall.Must(t, n[1].Own(p, 1, 1))
			testcall.Aside(func() { n[0].Close(); n[1].Close() })
		}, "", "made on one goroutine, and one is released on another"},
		"no size": {func() {
			p := pool("image", Options{})
			var o [2]object
			testcall.Must(t, o[0].Own(p, block(), 0))
			testcall.Must(t, o[1].OwnWith(p, block(), With{State: 1}))
			testcall.Must(t, new(object).Own(pool("sized", Options{Size: 10}), block(), 0))
		}, "", "cheap: image: "},
		"none": {func() {
			p, q, b := pool("image", Options{}), pool("drained", Options{Run: new(Queue).Run()}), block()
			var o object
			for range 300 {
				testcall.Must(t, o.Own(p, b, 1))
				testcall.Must(t, o.Close())
				testcall.Must(t, o.Own(p, b, 1))
				_, err := o.Disown()
				testcall.Must(t, err)
				testcall.Must(t, p.Discard(b))
				var parent, late object
				testcall.Must(t, parent.Own(p, block(), 1))
				testcall.Must(t, o.OwnWith(p, b, With{Size: 1, Parent: parent.Owner()}))
				testcall.Must(t, o.Close())
				testcall.Must(t, parent.Close())
				if err := late.OwnWith(p, b, With{Size: 1, Parent: parent.Owner()}); err != ErrClosed {
					t.Error(err)
				}
				testcall.Must(t, late.Own(q, b, 1))
				testcall.Aside(func() { testcall.Must(t, late.Close()); drainPool(q, 0) })
			}
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for env, want := range map[string]string{"": row.plain, "check": row.checked} {
				out, status := testchild.Run(t, func() { warnedOfGo.Store(false); row.f() }, "CHEAP_OWN="+env)
				if want == ofGo && (osmem.GoBacked || strconv.IntSize == 32) {
					want = ""
				}
				if want == "" && out != "" || want != "" && strings.Count(out, want) != 1 {
					t.Errorf("CHEAP_OWN=%s: status %d, want %q in\n%s", env, status, want, out)
				}
			}
		})
	}
	t.Run("wrong value", func(t *testing.T) {
		out, _ := testchild.Run(t, func() {}, "CHEAP_OWN=Leak")
		if want := "cheap: CHEAP_OWN is \"Leak\"; it may be leak or check\n"; out != want {
			t.Errorf("%q, want %q", out, want)
		}
	})
}

var global [100]int
