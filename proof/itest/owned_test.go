package itest

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own"
)

// A thing owns a number.
type thing struct {
	n    own.Number[uintptr]
	name string
}

// useOwn uses pools of all kinds, and waits until everything is released that
// was owned.
func useOwn(t testing.TB) {
	var born, released atomic.Int64
	release := func(_ any, r []uintptr) error {
		runtime.Gosched()
		released.Add(int64(len(r)))
		return nil
	}
	parents := own.NewPool(own.Options{Numbers: true, Release: release, Trace: true})
	var queue own.Queue
	pools := []*own.Pool{
		own.NewPool(own.Options{Numbers: true, Release: release, OnCollect: func(own.Collected) {}}),
		own.NewPool(own.Options{Numbers: true, Release: release, Batch: 1}),
		own.NewPool(own.Options{Numbers: true, Release: release, Run: queue.Run()}),
		own.NewPool(own.Options{Numbers: true, Release: release, Size: 100, Construct: func(r []uintptr) (int, error) {
			born.Add(int64(len(r)))
			return len(r), nil
		}}),
	}
	var wg sync.WaitGroup
	wg.Go(func() { // so that nothing stays behind on this stack
		parent := &thing{name: "parent"}
		if err := parent.n.Own(parents, 1, 100); err != nil {
			t.Error(err)
		}
		born.Add(1)
		for i, p := range pools {
			for j := range 50 {
				m := &thing{name: "child"}
				var err error
				switch {
				case i == len(pools)-1:
					err = m.n.Make(p)
				case j%5 == 0:
					born.Add(1)
					err = m.n.OwnWith(p, 1, own.With{Size: 100, Parent: parent.n.Owner()})
				default:
					born.Add(1)
					err = m.n.Own(p, 1, 100)
				}
				if err != nil {
					t.Error(err)
				}
				m.n.Use(func(uintptr) {
					if j%3 == 0 {
						m.n.Close()
					}
				})
			}
		}
	})
	wg.Wait()
	for released.Load() != born.Load() {
		runtime.GC()
		queue.Drain(0)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		own.Flush(ctx) // an error if there is something for Drain by now
		cancel()
	}
	for _, p := range append(pools, parents) {
		if err := p.CloseWait(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestFirstUseOfOwnInBubble uses pools inside of a bubble before anywhere else.
// A worker or a timer that were started there would be the bubble's, and keep it
// from ending.
func TestFirstUseOfOwnInBubble(t *testing.T) {
	inChild(t, func(t *testing.T) {
		for range 2 {
			synctest.Test(t, func(t *testing.T) {
				useOwn(t)
				time.Sleep(time.Hour) // of the bubble's time
				synctest.Wait()
				useOwn(t)
			})
			goleak.VerifyNone(t)
			useOwn(t)
			goleak.VerifyNone(t)
		}
	})
}

// TestBubbleLeavesOwners forgets in a bubble what is found after it, and the
// other way round, and closes in one what the other owns. A release is stuck
// while bubbles come and go.
func TestBubbleLeavesOwners(t *testing.T) {
	inChild(t, func(t *testing.T) {
		var released atomic.Int64
		stuck := make(chan struct{})
		p := own.NewPool(own.Options{Numbers: true, Release: func(_ any, r []uintptr) error {
			if r[0] == 2 {
				<-stuck
			}
			released.Add(int64(len(r)))
			return nil
		}})
		mustOwn := func(o *own.Number[uintptr], id uintptr, size int) {
			if err := o.Own(p, id, size); err != nil {
				t.Error(err)
			}
		}
		var outside, inside own.Number[uintptr]
		mustOwn(&outside, 1, 16)
		synctest.Test(t, func(t *testing.T) {
			mustOwn(&inside, 1, 16)
			outside.Close()
			testcall.Aside(func() {
				for range 10 {
					mustOwn(&new(thing).n, 1, 16)
					mustOwn(&new(thing).n, 2, 1<<20)
				}
			})
		})
		inside.Close()
		testwait.Until(t, "a release is stuck", func() bool {
			runtime.GC()
			return own.ReadReleases().Oldest > 150*time.Millisecond
		})
		synctest.Test(t, func(t *testing.T) {
			var o own.Number[uintptr]
			mustOwn(&o, 1, 16)
			o.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := own.Flush(ctx); err != context.DeadlineExceeded {
				t.Errorf("Flush: %v", err)
			}
		})
		close(stuck)
		testwait.Until(t, "all is released", func() bool {
			runtime.GC()
			return released.Load() == 23
		})
		if err := p.CloseWait(t.Context()); err != nil {
			t.Error(err)
		}
		testwait.Until(t, "the workers end", func() bool { return own.ReadReleases() == own.ReleaseStats{} })
		goleak.VerifyNone(t)
	})
}

// TestDestroyInBubble has Destroy wait for a Use that ends later, by the clock of
// the bubble, and for one that does not.
func TestDestroyInBubble(t *testing.T) {
	inChild(t, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for _, after := range []time.Duration{20 * time.Millisecond, time.Minute} {
				p := own.NewPool(own.Options{Numbers: true, Release: func(_ any, _ []uintptr) error { return nil }})
				var o own.Number[uintptr]
				if err := o.Own(p, 1, 16); err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				wg.Go(func() {
					o.Use(func(uintptr) {
						o.Close()
						time.Sleep(after)
					})
				})
				synctest.Wait()
				begin := time.Now()
				err := p.CloseWait(within(time.Second))
				if took := time.Since(begin); (err == nil) != (after < time.Second) || took < min(after, time.Second) {
					t.Errorf("Use takes %v: Destroy returned %v after %v", after, err, took)
				}
				wg.Wait()
			}
		})
	})
}

// within returns a context that is done after d.
func within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// TestNoLeakAfterOwn looks for goroutines once everything is released, and while
// owners are held.
func TestNoLeakAfterOwn(t *testing.T) {
	useOwn(t)
	goleak.VerifyNone(t)
	p := own.NewPool(own.Options{Numbers: true, Release: func(_ any, _ []uintptr) error { return nil }})
	var o own.Number[uintptr]
	if err := o.Own(p, 1, 16); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	goleak.VerifyNone(t)
	o.Close()
}

// TestCheckFinalizers has Go look, at each collection, for cleanups that cannot
// run: because they reach what they are for, or because it shares its slot with
// others. It ends the program if it finds one.
func TestCheckFinalizers(t *testing.T) {
	for name, f := range map[string]func(){
		"own": func() {
			for _, batch := range []int{1, 2, 16, 63, 64, 65, 256, 5000} {
				{
					// The release function reaches the pool, and so does a ledger.
					var p *own.Pool
					p = own.NewPool(own.Options{Numbers: true, Batch: batch, Size: 8, Release: func(_ any, _ []uintptr) error { p.Stats(); return nil }})
					var last thing
					for i := range 2*batch + 10 {
						m := &thing{}
						if err := m.n.Own(p, 1, 8); err != nil {
							panic(err)
						}
						if i == batch/2 {
							if err := last.n.OwnWith(p, 1, own.With{Size: 1 << 20, Parent: m.n.Owner()}); err != nil {
								panic(err)
							}
						}
					}
					runtime.GC()
					runtime.KeepAlive(&last)
				}
			}
			for range 5 {
				runtime.GC()
				if err := own.Flush(context.Background()); err != nil {
					panic(err)
				}
			}
		},
		"wrong": func() {
			type node struct{ next *node }
			p := &node{}
			//cheapvet:ignore cleanupcycle the runtime finds this one
			runtime.AddCleanup(p, func(*node) {}, &node{p})
			runtime.GC()
			runtime.GC()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, ok := testchild.Test(t, func(*testing.T) { f() }, "GODEBUG=checkfinalizers=1")
			if reported := strings.Contains(out, "CLEANUP/FINALIZER ISSUES"); ok != (name == "own") || reported == ok {
				t.Errorf("passed %v, output:\n%s", ok, out)
			}
		})
	}
}
