package own

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

// A readerContext is a context of a C library with a lock, a pool of its own, and
// a reader that it makes once and keeps.
type readerContext struct {
	mu     sync.Mutex
	pool   *Pool
	reader Owner
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
	own := func(p *Pool, o *Owner) {
		if err := p.Own(o, unsafe.Pointer(&resource), 100); err != nil {
			t.Error(err)
		}
	}
	defer func() { kept = nil }()
	restLittle(t)
	for _, row := range []struct {
		name string
		f    func()
		want []string // parts of the error; none if there is none
	}{
		{"nothing", func() {}, nil},
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
			if err := c.pool.OwnWith(&c.reader, nil, unsafe.Pointer(&resource), 100, c); err != nil {
				t.Error(err)
			}
		}, []string{"1 of cycle"}},
		{"the state of a resource refers to its pool", func() {
			c := new(readerContext)
			c.pool = NewPool(Options{Release: func(any, []uintptr) error { return nil }})
			if err := c.pool.OwnWith(&c.reader, nil, unsafe.Pointer(&resource), 100, c.pool); err != nil {
				t.Error(err)
			}
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
			p := NewPool(Options{Drain: true, Release: func(_ any, _ []uintptr) error { return nil }})
			own(p, new(Owner))
			t.Cleanup(func() { p.Drain(0) })
		}, nil},
		{"Make", func() {
			p := NewPool(Options{Release: func(_ any, _ []uintptr) error { return nil }, Construct: func(r []uintptr) (int, error) { return len(r), nil }})
			if err := p.Make(new(Owner)); err != nil {
				t.Error(err)
			}
		}, nil},
		{"children", func() {
			p := NewPool(Options{Release: func(_ any, _ []uintptr) error { return nil }})
			parent := new(Owner)
			own(p, parent)
			if err := p.OwnUnder(new(Owner), parent, unsafe.Pointer(&resource), 100); err != nil {
				t.Error(err)
			}
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
	var stop atomic.Bool
	var maker sync.WaitGroup
	err := CheckReleased(func() {
		c := new(readerContext)
		c.pool = NewPool(Options{Name: "cycle", Trace: true, Release: func(_ any, _ []uintptr) error { c.mu.TryLock(); return nil }})
		if err := c.pool.Own(&c.reader, unsafe.Pointer(&resource), 100); err != nil {
			t.Error(err)
		}
		maker.Go(func() {
			for !stop.Load() {
				var o Owner
				if err := c.pool.Own(&o, unsafe.Pointer(&resource), 100); err != nil {
					t.Error(err)
				}
				o.Close()
			}
		})
	})
	stop.Store(true)
	maker.Wait()
	if err == nil || !strings.Contains(err.Error(), "of cycle") {
		t.Errorf("%v, want an owner in the pool cycle", err)
	}
}
