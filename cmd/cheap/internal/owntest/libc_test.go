//go:build cgo && unix

package owntest

import (
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cmd/cheap/internal/cside"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

var sink []*thing

// TestDestructors has each kind of C function destroy resources that are forgotten,
// closed, or left to Destroy.
func TestDestructors(t *testing.T) {
	for _, c := range []struct {
		name string
		open func(l *cside.Ledger) *libc.Releaser
		own.Options
	}{
		{"alone", func(l *cside.Ledger) *libc.Releaser { return libc.Destructor(cside.DestroyEntry) }, own.Options{}},
		{"with a context", func(l *cside.Ledger) *libc.Releaser {
			return libc.DestructorWith(cside.DestroyEntryOf, l.Context())
		}, own.Options{}},
		{"with a context each", func(l *cside.Ledger) *libc.Releaser {
			return libc.ContextDestructor(cside.DestroyEntryOf)
		}, own.Options{Words: 2}},
	} {
		for _, quiet := range []bool{false, true} {
			name := c.name
			if quiet {
				name += ", without callbacks"
			}
			t.Run(name, func(t *testing.T) {
				const n = 3000
				l := cside.NewLedger(n, false)
				defer l.Close()
				o := c.Options
				o.Destructor, o.NoCallback, o.Batch = c.open(l), quiet, 100
				p := own.NewPool(o)
				for i := range n {
					o := new(thing)
					if err := p.OwnHandle(&o.Owner, uintptr(l.Create()), uintptr(l.Context()), 16); err != nil {
						t.Fatal(err)
					}
					switch {
					case i%3 == 0:
						o.Close()
					case i >= n-300:
						sink = append(sink, o)
					}
				}
				left := 0
				for _, o := range sink {
					if !o.Closed() {
						left++
					}
				}
				collectUntil(t, "what was forgotten is destroyed", func() bool { return l.Report().Live < uint64(left+100) })
				var e *own.DestroyError
				if err := p.Destroy(time.Second); !errors.As(err, &e) || e.NeverClosed < left {
					t.Errorf("Destroy: %v, want at least %d that were never closed", err, left)
				}
				if err := l.Report().Err(); err != nil {
					t.Error(err)
				}
				sink = nil
			})
		}
	}
}

// TestConstructorRunsOut makes more than C has room for.
func TestConstructorRunsOut(t *testing.T) {
	const room = 1000
	l := cside.NewLedger(room, true)
	defer l.Close()
	p := own.NewPool(own.Options{
		Destructor: libc.Destructor(cside.DestroyEntry), NoCallback: true,
		Construct: libc.Constructor(cside.ConstructEntry, l.Context()),
		Size:      32,
	})
	things := map[unsafe.Pointer]*thing{}
	for {
		o := new(thing)
		err := p.Make(&o.Owner)
		if errors.Is(err, libc.ErrConstruct) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		r := o.Resource()
		if things[r] != nil || !l.Use(r, 1) {
			t.Fatalf("%p was handed out twice, or is destroyed", r)
		}
		things[r] = o
		if len(things) > room {
			t.Fatalf("%d of %d resources were handed out", len(things), room)
		}
	}
	// Each P makes batches, so another P may have kept some.
	if st := p.Stats(); int64(len(things))+st.Made != room {
		t.Errorf("%d were handed out and %d are left, of %d", len(things), st.Made, room)
	}
	for _, o := range things {
		o.Close()
	}
	var again thing // the constructor is asked again
	if err := p.Make(&again.Owner); err != nil {
		t.Error(err)
	}
	again.Close()
	if err := p.Destroy(time.Second); err != nil {
		t.Error(err)
	}
	if err := l.Report().Err(); err != nil {
		t.Error(err)
	}
}

// TestWordsMustFit makes a pool with a C function that wants another number of
// words.
func TestWordsMustFit(t *testing.T) {
	defer func() {
		err, _ := recover().(error)
		var m *cheap.MisuseError
		if !errors.As(err, &m) {
			t.Errorf("NewPool panicked with %v", err)
		}
	}()
	own.NewPool(own.Options{Destructor: libc.Destructor(cside.DestroyEntry), Words: 2})
}
