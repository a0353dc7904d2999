//go:build cgo && unix

package own_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

var sink []*thing

// TestDestructors has each kind of C function destroy resources that are forgotten,
// closed, or left to CloseWait.
func TestDestructors(t *testing.T) {
	for _, c := range []struct {
		name    string
		options func(l *cside.Ledger, o ...libc.Option) own.Options
	}{
		{"alone", func(_ *cside.Ledger, o ...libc.Option) own.Options {
			return own.Options{Release: libc.Destructor(cside.DestroyEntry, o...)}
		}},
		{"with a context", func(l *cside.Ledger, o ...libc.Option) own.Options {
			return own.Options{Release: libc.ContextDestructor(cside.DestroyEntryOf, o...), State: l.Context()}
		}},
	} {
		for _, quiet := range []bool{false, true} {
			name, options := c.name, []libc.Option{}
			if quiet {
				name, options = name+", without callbacks", append(options, libc.NoCallback)
			}
			t.Run(name, func(t *testing.T) {
				const n = 3000
				l := cside.NewLedger(n, false)
				defer l.Close()
				o := c.options(l, options...)
				o.Batch = 100
				p := own.NewPool(o)
				for i := range n {
					o := new(thing)
					testcall.Must(t, o.Own(p, l.Create(), 16))
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
				var e *own.CloseError
				if err := p.CloseWait(t.Context()); !errors.As(err, &e) || e.NeverClosed < int64(left) {
					t.Errorf("CloseWait: %v, want at least %d that were never closed", err, left)
				}
				testcall.Want(t, l.Report().Err())
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
		Release:   libc.Destructor(cside.DestroyEntry, libc.NoCallback),
		Construct: libc.Constructor(cside.ConstructEntry, l.Context()),
		Size:      32,
	})
	things := map[unsafe.Pointer]*thing{}
	for {
		o := new(thing)
		err := o.Make(p)
		if errors.Is(err, libc.ErrConstruct) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		r := o.Pointer()
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
	testcall.Want(t, again.Make(p))
	again.Close()
	testcall.Want(t, p.CloseWait(t.Context()))
	testcall.Want(t, l.Report().Err())
}
