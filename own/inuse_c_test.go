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

// look reads a resource some times during Use, and lets other goroutines run in
// between.
func look(t *testing.T, l *cside.Ledger, r unsafe.Pointer) {
	for range 1 + rand.IntN(3) {
		if !l.Use(r, 20) {
			t.Error("the resource was destroyed while in use")
			return
		}
		runtime.Gosched()
	}
}

// TestHammerInUse uses resources that are marked when they are destroyed, while other
// goroutines close their owners, the pool is destroyed and the collector runs all
// the time. Addresses are not reused.
func TestHammerInUse(t *testing.T) {
	const objects, users = 400, 6
	for range times(100) {
		l := cside.NewLedger(objects, false)
		p := own.NewPool(own.Options{Name: "own_test.entry", Release: libc.Destructor(cside.DestroyEntry), Batch: 1 + rand.IntN(20)})
		var all [objects]*thing
		for i := range all {
			all[i] = new(thing)
			testcall.Must(t, all[i].Own(p, l.Create(), 16))
		}
		var running sync.WaitGroup
		var done, destroyed atomic.Bool
		var used, refused atomic.Int64
		for range users {
			running.Go(func() {
				for !done.Load() {
					o, over := all[rand.IntN(objects)], destroyed.Load()
					func() {
						defer func() {
							if v := recover(); v != nil {
								var m *cheap.MisuseError
								if err, _ := v.(error); !errors.As(err, &m) || !o.Closed() {
									t.Errorf("Use of an open owner panicked: %v", v)
								}
								refused.Add(1)
							}
						}()
						o.Use(func(r unsafe.Pointer) { look(t, l, r) })
						used.Add(1)
						if over {
							t.Error("Use works after CloseWait")
						}
					}()
				}
			})
		}
		for range 2 {
			running.Go(func() {
				for range objects / 8 {
					all[rand.IntN(objects)].Close()
					runtime.Gosched()
				}
			})
		}
		running.Go(func() {
			for !done.Load() {
				runtime.GC()
			}
		})
		testwait.Until(t, "some are used", func() bool { return used.Load() > objects/4 })
		var e *own.CloseError
		if err := p.CloseWait(within(time.Duration(rand.IntN(2)) * time.Second)); err != nil && !errors.As(err, &e) {
			t.Error(err)
		}
		// A Use that began before CloseWait closed its owner may end after it.
		testwait.Until(t, "the last Use has returned", func() bool { return l.Report().Live == 0 })
		destroyed.Store(true)
		before := refused.Load()
		testwait.Until(t, "some are refused", func() bool { return refused.Load() >= before+2*users })
		done.Store(true)
		running.Wait()
		if r := l.Report(); r.Err() != nil || r.Created != objects {
			t.Error(r.Created, r.Err())
		}
		l.Close()
	}
}

// TestUseKeepsAlive uses resources of unreachable owners, in batches of their own,
// while the collector runs and the workers release.
func TestUseKeepsAlive(t *testing.T) {
	const goroutines = 8
	each := times(150)
	l := cside.NewLedger(each*goroutines*2, false)
	defer l.Close()
	p := own.NewPool(own.Options{Name: "own_test.entry", Release: libc.Destructor(cside.DestroyEntry), Batch: 1})
	unshared := own.NewPool(own.Options{Name: "own_test.unshared", Release: libc.Destructor(cside.DestroyEntry), Batch: 1, Unshared: true})
	var running sync.WaitGroup
	for range goroutines {
		running.Go(func() {
			for i := range each * 2 {
				o, from := new(thing), p
				if i%2 == 1 {
					from = unshared
				}
				if err := o.Own(from, l.Create(), 16); err != nil {
					t.Error(err)
					return
				}
				// The last use of o.
				o.Use(func(r unsafe.Pointer) {
					runtime.GC()
					runtime.Gosched() // to a worker
					runtime.GC()
					look(t, l, r)
				})
			}
		})
	}
	running.Wait()
	collectUntil(t, "all are destroyed", func() bool { return l.Report().Live == 0 })
	testcall.Want(t, l.Report().Err())
}

// TestClosePoolCountsUses destroys a pool while one Use runs, within it and beside
// it.
func TestClosePoolCountsUses(t *testing.T) {
	l := cside.NewLedger(2, false)
	defer l.Close()
	p := own.NewPool(own.Options{Name: "own_test.entry", Release: libc.Destructor(cside.DestroyEntry)})
	var o, closed thing
	for _, o := range []*thing{&o, &closed} {
		testcall.Must(t, o.Own(p, l.Create(), 16))
	}
	closed.Close()
	o.Use(func(r unsafe.Pointer) {
		var e *own.CloseError
		if err := p.CloseWait(within(time.Millisecond)); !errors.As(err, &e) || e.InUse != 1 || e.NeverClosed != 1 {
			t.Errorf("CloseWait during a Use: %v (%+v)", err, e)
		}
		look(t, l, r)
	})
	testcall.Want(t, l.Report().Err())
}

// within returns a context that is done after d.
func within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	context.AfterFunc(ctx, cancel)
	return ctx
}
