package own

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own/internal/bell"
)

// TestAwaitLooksWhenWoken counts how often a goroutine that waits looks: once, and once after
// each change.
func TestAwaitLooksWhenWoken(t *testing.T) {
	var changed bell.Bell
	var looks, listens atomic.Int64
	var over atomic.Bool
	listen := func() <-chan struct{} {
		listens.Add(1)
		return changed.Listen()
	}
	got := make(chan error)
	go func() {
		got <- await(patient(t), listen, func() bool {
			looks.Add(1)
			return over.Load()
		})
	}()
	const changes = 100
	for i := range int64(changes) {
		wait(t, "a look", func() bool { return looks.Load() == i+1 })
		over.Store(i == changes-1)
		changed.Ring()
	}
	if err := <-got; err != nil || looks.Load() != changes+1 || listens.Load() != changes+1 {
		t.Errorf("%v; %d looks and %d calls of Listen for %d changes", err, looks.Load(), listens.Load(), changes)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { got <- await(ctx, listen, func() bool { looks.Add(1); return false }) }()
	wait(t, "a look", func() bool { return looks.Load() == changes+2 })
	cancel()
	if err := <-got; err != context.Canceled || looks.Load() > changes+3 {
		t.Errorf("%v; %d looks in all", err, looks.Load())
	}
}

// TestHammerAwait has goroutines wait for releases that others cause in each way: the end of a
// Use, the release of a child, a worker, a thread, a Drain. Nobody looks by itself, so a
// change of which nobody is told ends the test.
func TestHammerAwait(t *testing.T) {
	ctx := patient(t)
	w := newWorld(t, times(200_000))
	for round := range times(400) {
		direct, drained := w.pool(Options{}), w.pool(Options{Run: new(Queue).Run()})
		thread, parents := w.pool(Options{Run: Thread(0)}), w.pool(Options{})
		destroyed := round%2 == 0 // meanwhile
		var wg sync.WaitGroup
		use := func(m *thing) {
			in := make(chan struct{})
			wg.Go(func() {
				m.Use(func(unsafe.Pointer) {
					close(in)
					for range rand.IntN(200) {
						runtime.Gosched()
					}
				})
			})
			<-in
		}
		closeWait := func(m *thing) {
			wg.Go(func() {
				// If one of the pool has closed it, CloseWait does not wait.
				if err := m.CloseWait(ctx); err != nil || !destroyed && m.cell.alive() {
					t.Errorf("CloseWait: %v; alive=%v", err, m.cell.alive())
				}
			})
		}
		var last []*thing
		for _, p := range []*Pool{direct, drained, thread} {
			for i := range 4 {
				m := w.own(t, p, 16)
				if use(m); i%2 == 0 {
					closeWait(m)
				} else {
					last = append(last, m)
				}
			}
			parent := w.own(t, parents, 16)
			child := w.ownUnder(t, p, parent, 16)
			use(child)
			closeWait(parent)
			closeWait(child)
			last = append(last, parent, child)
		}
		testcall.Aside(func() {
			for range 20 {
				w.own(t, direct, 1<<20)
				w.own(t, thread, 1<<20)
			}
		})
		stop := testwait.Loop(1, func() { drainPool(drained, 0); runtime.Gosched() })
		if round%8 == 0 {
			runtime.GC()
			wg.Go(func() {
				if err := Flush(ctx); err != nil {
					t.Errorf("Flush: %v", err)
				}
			})
		}
		for _, p := range []*Pool{direct, thread, parents, drained} {
			if destroyed {
				wg.Go(func() { p.CloseWait(ctx) }) // the error says what was never closed
			}
		}
		wg.Wait()
		for _, p := range []*Pool{direct, thread, parents, drained} {
			p.CloseWait(ctx)
		}
		runtime.KeepAlive(last)
		if err := Flush(ctx); err != nil {
			t.Fatalf("Flush: %v", err)
		}
		stop()
		drainPool(drained, 0)
		if w.alive() != 0 {
			t.Fatalf("round %d: %d resources are left", round, w.alive())
		}
	}
}

// TestClosePoolIsWoken has a CloseWait that waits look once, and then its reason to wait ends in each
// way. No release follows that would wake it.
func TestClosePoolIsWoken(t *testing.T) {
	// use begins a Use, and ends it when end is called.
	use := func(m *thing) (end func()) {
		in, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(left)
			m.Use(func(unsafe.Pointer) { close(in); <-leave })
		}()
		<-in
		return func() { close(leave); <-left }
	}
	t.Run("queued after its last Use", func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.pool(Options{Run: new(Queue).Run()})
		m := w.own(t, p, 16)
		if e := destroyError(t, p, whenWaiting(use(m))); e.Queued != 1 || e.InUse != 0 {
			t.Errorf("%+v", e)
		}
		drainPool(p, 0)
	})
	t.Run("waits for a child after its last Use", func(t *testing.T) {
		w := newWorld(t, 2)
		p, children := w.pool(Options{}), w.pool(Options{Run: new(Queue).Run()})
		m := w.own(t, p, 16)
		child := w.ownUnder(t, children, m, 16)
		if e := destroyError(t, p, whenWaiting(use(m))); e.Waiting != 1 || e.InUse != 0 {
			t.Errorf("%+v", e)
		}
		runtime.KeepAlive(child)
		drainPool(children, 0)
	})
	t.Run("out of the queue after its release", func(t *testing.T) {
		var x byte
		released, leave := make(chan struct{}), make(chan struct{})
		p := NewPool(Options{
			Run:            Thread(0),
			Release:        func(any, []uintptr) error { return ErrInUse },
			OnReleaseError: func(ReleaseError) { close(released); <-leave },
		})
		var o object
		testcall.Must(t, o.Own(p, unsafe.Pointer(&x), 16))
		o.Close()
		<-released // it is gone, and counts as queued
		testcall.Want(t, p.CloseWait(whenWaiting(func() { close(leave) })))
	})
}

// TestAwaitInBubble waits for an hour of a bubble's time, in each way, for what happens in the
// bubble. It looks a few thousand times, and is late by a second at most.
func TestAwaitInBubble(t *testing.T) {
	const hour = time.Hour
	for _, name := range []string{"CloseWait", "Pool.CloseWait", "Flush", "await"} {
		w := newWorld(t, 10)
		synctest.Test(t, func(t *testing.T) {
			p := w.pool(Options{Run: queuedIf(name == "Flush")})
			m := w.own(t, p, 16)
			begin, in := time.Now(), make(chan struct{})
			var ended atomic.Bool
			go func() {
				m.Use(func(unsafe.Pointer) {
					close(in)
					time.Sleep(hour)
					ended.Store(true)
				})
				drainPool(p, 0)
			}()
			<-in
			looks := 0
			var err error
			switch name {
			case "CloseWait":
				err = m.CloseWait(t.Context())
			case "Pool.CloseWait":
				if e := destroyError(t, p, t.Context()); e.NeverClosed != 1 || e.InUse != 0 {
					t.Error(e)
				}
			case "Flush":
				m.Close()
				time.Sleep(hour - time.Second)
				closed := w.own(t, p, 16)
				closed.Close()
				err = Flush(t.Context())
			case "await":
				err = awaitInBubble(t.Context(), func() bool { looks++; return ended.Load() })
			}
			took := time.Since(begin)
			if err != nil || took < hour || took > hour+time.Second || looks > 10_000 {
				t.Errorf("%s: %v after %v and %d looks", name, err, took, looks)
			}
			if name == "await" {
				t.Logf("%d looks, %v late", looks, took-hour)
			}
			ctx, cancel := context.WithTimeout(t.Context(), hour)
			defer cancel()
			begin = time.Now()
			if err := awaitInBubble(ctx, func() bool { return false }); err != context.DeadlineExceeded || time.Since(begin) > hour+time.Millisecond {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
			p.CloseWait(t.Context())
			drainPool(p, 0)
		})
	}
}
