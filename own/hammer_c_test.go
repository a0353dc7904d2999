//go:build cgo && unix

package own_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// A thing owns a resource of C.
type thing struct {
	own.Handle[unsafe.Pointer]      //cheapvet:ignore embedowner the hammer calls all its methods
	child                      bool // depends on another thing, and is not disowned: C would have a wrong record of it
}

// poolKinds are pools that release in different ways. All resources come from
// one batch.
var poolKinds = []struct {
	name    string
	options func(l *cside.Ledger) own.Options
}{
	{"c", func(*cside.Ledger) own.Options {
		return own.Options{Release: libc.Destructor(cside.DestroyEntry)}
	}},
	{"small batches", func(*cside.Ledger) own.Options {
		return own.Options{Release: libc.Destructor(cside.DestroyEntry, libc.NoCallback), Batch: 3}
	}},
	{"exact", func(*cside.Ledger) own.Options {
		return own.Options{Release: libc.Destructor(cside.DestroyEntry), Pinned: 1}
	}},
	{"go", func(l *cside.Ledger) own.Options {
		return own.Options{Release: l.DestroyAll, OnCollect: func(own.Collected) {}}
	}},
	{"context", func(l *cside.Ledger) own.Options {
		return own.Options{Release: libc.ContextDestructor(cside.DestroyEntryOf), State: l.Context()}
	}},
	{"drain", func(*cside.Ledger) own.Options {
		return own.Options{Release: libc.Destructor(cside.DestroyEntry), Run: drained.Run()}
	}},
	{"make", func(l *cside.Ledger) own.Options {
		return own.Options{
			Release:   libc.Destructor(cside.DestroyEntry, libc.NoCallback),
			Construct: libc.Constructor(cside.ConstructEntry, l.Context()),
		}
	}},
}

// drained is the queue of all pools of the kind drain that there have been.
var drained own.Queue

// A hammer is what the goroutines of TestHammerExactlyOnce share.
type hammer struct {
	t      *testing.T
	ledger *cside.Ledger
	pools  []atomic.Pointer[own.Pool] // by kind
	things [256]atomic.Pointer[thing] // a goroutine that loads a thing leaves it here for others

}

// renew replaces the pool of a kind, and returns the old one.
func (h *hammer) renew(kind int) (old *own.Pool) {
	o := poolKinds[kind].options(h.ledger)
	o.Name = "owntest." + poolKinds[kind].name
	p := own.NewPool(o)
	return h.pools[kind].Swap(p)
}

// create returns a thing with a resource, under a parent if one is given. It returns
// nil if the pool or the parent was closed meanwhile.
func (h *hammer) create(kind int, parent *thing) *thing {
	p, o := h.pools[kind].Load(), &thing{child: parent != nil}
	if poolKinds[kind].name == "make" && parent == nil {
		if err := o.Make(p); err != nil {
			h.refused(err)
			return nil
		}
		return o
	}
	r := h.ledger.Create()
	var err error
	switch size := rand.IntN(300); {
	case parent != nil:
		err = o.OwnWith(p, r, own.With{Size: size, Parent: parent.Owner()})
	default:
		err = o.Own(p, r, size)
	}
	if err != nil {
		h.refused(err)
		h.ledger.Destroy(r) // the pool has not taken it
		return nil
	}
	if parent != nil {
		// In Use of both, so that both are alive.
		h.use(o, func(r unsafe.Pointer) {
			h.use(parent, func(above unsafe.Pointer) { h.ledger.Depend(r, above) })
		})
	}
	return o
}

// refused checks an error of Own: another goroutine has destroyed the pool or closed
// the parent before.
func (h *hammer) refused(err error) {
	if !errors.Is(err, own.ErrPoolClosed) && !errors.Is(err, own.ErrClosed) {
		h.t.Error(err)
	}
}

// use is o.Use(f), if o is not closed.
func (h *hammer) use(o *thing, f func(unsafe.Pointer)) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *cheap.MisuseError:
			if !o.Closed() {
				h.t.Error("of an open owner: ", v)
			}
		default:
			panic(v)
		}
	}()
	o.Use(f)
}

// step does something to a thing. Other goroutines may do the same at the same time.
func (h *hammer) step(o *thing) {
	switch rand.IntN(10) {
	case 0, 1:
		o.Close()
	case 2:
		other := *o
		other.Close()
	case 3, 4:
		h.use(o, func(r unsafe.Pointer) {
			if !h.ledger.Use(r, 4) {
				h.t.Error("destroyed while in use")
			}
		})
	case 5:
		h.use(o, func(r unsafe.Pointer) {
			o.Close()
			if !h.ledger.Use(r, 4) {
				h.t.Error("destroyed by a Close while in use")
			}
		})
	case 6:
		if o.child {
			return
		}
		if r, err := o.Disown(); err == nil {
			h.ledger.Destroy(r)
		} else if !errors.Is(err, own.ErrClosed) && !errors.Is(err, own.ErrInUse) && !errors.Is(err, own.ErrChildren) {
			h.t.Error(err)
		}
	case 7:
		o.Resize(rand.IntN(1000))
	case 8:
		if c := h.create(rand.IntN(len(poolKinds)), o); c != nil {
			h.things[rand.IntN(len(h.things))].Store(c)
		}
	case 9:
		// Left to the collector, unless another goroutine finds it.
	}
}

// TestHammerExactlyOnce lets all ways of release race for the resources of a C
// library, and checks the counts of C by address.
func TestHammerExactlyOnce(t *testing.T) {
	const goroutines = 16
	resources := times(2_500_000)
	// Addresses are reused immediately, as those of malloc: the second destruction
	// of one resource is a destruction of another one that is in use.
	h := &hammer{t: t, ledger: cside.NewLedger(resources*2, true), pools: make([]atomic.Pointer[own.Pool], len(poolKinds))}
	defer h.ledger.Close()
	for kind := range poolKinds {
		h.renew(kind)
	}
	var workers sync.WaitGroup
	for range goroutines {
		workers.Go(func() {
			for range resources / goroutines {
				if o := h.create(rand.IntN(len(poolKinds)), nil); o != nil {
					if rand.IntN(2) == 0 {
						h.step(o)
					}
					h.things[rand.IntN(len(h.things))].Store(o)
				}
				if o := h.things[rand.IntN(len(h.things))].Load(); o != nil {
					h.step(o)
				}
				switch rand.IntN(10_000) {
				case 0, 1, 2, 3:
					drained.Drain(rand.IntN(100))
				case 4:
					var e *own.CloseError
					if err := h.renew(rand.IntN(len(poolKinds))).CloseWait(within(time.Duration(rand.IntN(3)) * time.Millisecond)); err != nil && !errors.As(err, &e) {
						t.Error(err)
					}
				}
			}
		})
	}
	stop := testwait.Loop(1, runtime.GC)
	workers.Wait()
	stop()
	testcall.Want(t, h.ledger.Report().Mistakes())

	// The collector finds what was not closed, except what was made ahead.
	for i := range h.things {
		h.things[i].Store(nil)
	}
	ahead := func() (n uint64) {
		for i := range h.pools {
			n += uint64(h.pools[i].Load().Stats().Made)
		}
		return n
	}
	collectUntil(t, "all resources are destroyed but those made ahead", func() bool {
		drained.Drain(0)
		return h.ledger.Report().Live == ahead()
	})
	for i := range h.pools {
		p := h.pools[i].Load()
		testcall.Want(t, p.CloseWait(t.Context()))
		if st := p.Stats(); st.Live != 0 || st.Bytes != 0 || st.Made != 0 || st.Queued != 0 {
			t.Errorf("%s: %+v after the last release", poolKinds[i].name, st)
		}
	}
	if err := own.Flush(t.Context()); err != nil {
		t.Errorf("Flush with nothing queued: %v", err)
	}
	r := h.ledger.Report()
	testcall.Want(t, r.Err())
	if r.Created < uint64(resources) {
		t.Errorf("%d resources were created, want %d and more", r.Created, resources)
	}
}

// within returns a context that is done after d.
func within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	context.AfterFunc(ctx, cancel)
	return ctx
}
