package own

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"weak"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestForgottenAreReleased forgets owners of many sizes, from many goroutines.
func TestForgottenAreReleased(t *testing.T) {
	for _, o := range []Options{{}, {Batch: 1}, {Batch: 7}, {Pinned: 100}, {Trace: true}, {Unshared: true}} {
		w := newWorld(t, 4000)
		p := w.pool(o)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 1000 {
					w.own(t, p, []int{1, 10, 16, 100, 1000, 10_000, 100_000, 0}[(i+g)%8])
				}
			})
		}
		wg.Wait()
		collectAtMost(t, few, "all that was forgotten", func() bool { return w.alive() == 0 })
		if s := p.Stats(); s.Live != 0 || s.Bytes != 0 || s.Collected != 4000 {
			t.Errorf("%+v", s)
		}
		mustDestroy(t, p)
	}
}

// TestHeldAreNotReleased forgets some and holds the rest, which is owned, used
// and closed as if nothing had been collected.
func TestHeldAreNotReleased(t *testing.T) {
	const n = 3000
	w := newWorld(t, n)
	p := w.pool(Options{})
	held := make([]*thing, 0, n)
	testcall.Aside(func() {
		for i := range n {
			if m := w.own(t, p, 16); i%3 == 0 {
				held = append(held, m)
			}
		}
	})
	for range few {
		gc(t)
	}
	for _, m := range held {
		if m.Closed() || !m.cell.alive() {
			t.Fatal("released although it is held")
		}
		m.Close()
		mustBeReleased(t, m.cell, "by Close")
	}
	held = nil
	collectAtMost(t, few, "the forgotten", func() bool { return w.alive() == 0 })
	mustDestroy(t, p)
}

// TestCopyKeepsTheResource drops the value that Own was given, and keeps a copy
// of its Handle.
func TestCopyKeepsTheResource(t *testing.T) {
	for _, o := range []Options{{}, {Batch: 1}} {
		w := newWorld(t, 1)
		p := w.pool(o)
		var kept object
		testcall.Aside(func() { kept = w.own(t, p, 16).object })
		for range few {
			gc(t)
		}
		mustBeAlive(t, &w.cells[0], "although a copy is held")
		if kept.Closed() {
			t.Error("the copy is closed")
		}
		runtime.KeepAlive(kept)
		kept = object{}
		collectAtMost(t, few, "what the copy kept", func() bool { return w.alive() == 0 })
		mustDestroy(t, p)
	}
}

// TestOneOwnPerCollection owns and forgets one between two collections each: the
// dead do not wait for their batch to fill.
func TestOneOwnPerCollection(t *testing.T) {
	rounds := times(100)
	w := newWorld(t, rounds)
	p := w.pool(Options{})
	for i := range rounds {
		w.forget(t, p, 1, 16)
		gc(t)
		if n := w.alive(); n > few {
			t.Fatalf("round %d: %d are not released", i, n)
		}
	}
	collectAtMost(t, few, "the last", func() bool { return w.alive() == 0 })
	mustDestroy(t, p)
}

// TestGoValuesAreNotKept looks whether the Go values of a batch are collected,
// while one of them lives.
func TestGoValuesAreNotKept(t *testing.T) {
	type large struct {
		object
		next *large
		_    [10_000]byte
	}
	w := newWorld(t, 50)
	p := w.pool(Options{})
	var held *large
	var others []weak.Pointer[large]
	testcall.Aside(func() {
		for i := range 50 {
			m := &large{}
			m.next = m // a cycle does no harm, as there is no finalizer
			testcall.Must(t, m.Own(p, w.create(1).pointer(), 1))
			if i == 10 {
				held = m
				continue
			}
			others = append(others, weak.Make(m))
		}
	})
	collectAtMost(t, few, "the Go values", func() bool {
		for _, m := range others {
			if m.Value() != nil {
				return false
			}
		}
		return true
	})
	if w.died.Load() == 50 || held.Closed() {
		t.Error("released although it is held")
	}
	runtime.KeepAlive(held)
	held = nil
	collectAtMost(t, few, "the resources", func() bool { return w.alive() == 0 })
	mustDestroy(t, p)
}

// TestDroppedTogether drops a context that holds its pool, whose release
// function holds the context. Both are collected, and the resource that was
// owned last, in a batch that is not full, is released.
func TestDroppedTogether(t *testing.T) {
	type library struct {
		object // of something in another pool
		pool   *Pool
		world  *world
		_      [1000]byte
	}
	for name, use := range map[string]func(w *world, l *library){
		"idle":      func(*world, *library) {},
		"one":       func(w *world, l *library) { w.own(t, l.pool, 16) },
		"half full": func(w *world, l *library) { many(8, func() { w.own(t, l.pool, 16) }) },
		"many":      func(w *world, l *library) { many(1000, func() { w.own(t, l.pool, 16) }) },
		"exact":     func(w *world, l *library) { w.own(t, l.pool, 1<<20) },
		"closed":    func(w *world, l *library) { w.own(t, l.pool, 16).Close() },
		"closed many": func(w *world, l *library) {
			many(1000, func() { w.own(t, l.pool, 16).Close() })
		},
		"collected before": func(w *world, l *library) {
			for range few {
				testcall.Aside(func() { w.own(t, l.pool, 16) })
				gc(t)
			}
			w.own(t, l.pool, 16)
		},
		"family": func(w *world, l *library) {
			m := w.own(t, l.pool, 16)
			w.ownUnder(t, l.pool, w.ownUnder(t, l.pool, m, 16), 1<<20)
		},
		"family of its own": func(w *world, l *library) {
			q := w.pool(Options{})
			l.object = w.own(t, q, 16).object
			for range 3 {
				c := w.createUnder(&w.cells[0], 16)
				testcall.Must(t, new(thing).OwnWith(l.pool, c.pointer(), With{Size: 16, Parent: l.Owner()}))
			}
		},
		"made ahead": func(w *world, l *library) {
			testcall.Must(t, new(thing).Make(l.pool))
		},
		"destroyed": func(w *world, l *library) {
			w.own(t, l.pool, 16)
			l.pool.CloseWait(waiting(0))
		},
		"panicked": func(w *world, l *library) {
			m := w.own(t, l.pool, 16)
			w.before = func([]*cell) { panic("oops") }
			testcall.Catch(func() { m.Close() })
			w.before = nil
			w.destroy(m.cell)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2000)
			var context weak.Pointer[library]
			var pool weak.Pointer[Pool]
			testcall.Aside(func() {
				l := &library{world: w}
				l.pool = NewPool(Options{
					Release:   func(_ any, r []uintptr) error { return l.world.release(nil, r) },
					OnCollect: func(Collected) { l.world.calls.Add(1) },
					Construct: func(r []uintptr) (int, error) {
						for i := range r {
							r[i] = uintptr(l.world.create(16).pointer())
						}
						return len(r), nil
					},
					Size: 16,
				})
				use(w, l)
				context, pool = weak.Make(l), weak.Make(l.pool)
			})
			collectAtMost(t, 2*few, "the context, the pool and its resources", func() bool {
				return w.alive() == 0 && context.Value() == nil && pool.Value() == nil
			})
		})
	}
}

func many(n int, f func()) {
	for range n {
		f()
	}
}

// TestGraphDoesNotGrow makes two million owners, each of which refers to one of
// the last 32 or to none, of which 32 are held. Neither Go's heap nor what C
// has grows, as either would if a batch kept its owners, or these their batch,
// and so on.
func TestGraphDoesNotGrow(t *testing.T) {
	type node struct {
		object
		other *node
	}
	n := times(2_000_000)
	const size = 100
	// The ring of addresses is longer than what can be alive.
	live := make([]bool, n)
	var mu sync.Mutex
	bytes, dead := 0, 0
	p := NewPool(Options{OnCollect: func(Collected) {}, Release: func(_ any, r []uintptr) error {
		mu.Lock()
		defer mu.Unlock()
		for _, i := range r {
			if !live[i] {
				t.Errorf("%d is released twice", i)
			}
			live[i] = false
		}
		bytes -= size * len(r)
		dead += len(r)
		return nil
	}})
	heap := func() int64 {
		for range 3 {
			gc(t)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var last [32]*node
	rnd := rand.New(rand.NewPCG(1, 2))
	make1 := func(i int) {
		m := &node{}
		if rnd.IntN(2) == 0 {
			m.other = last[rnd.IntN(len(last))]
		}
		mu.Lock()
		live[i] = true
		bytes += size
		mu.Unlock()
		testcall.Must(t, p.own(&m.owner, uintptr(i), size))
		last[i%len(last)] = m
	}
	var before int64
	for i := range n {
		make1(i)
		switch (i + 1) % (n / 8) {
		case 0:
			now := heap()
			if before == 0 {
				before = now
			}
			mu.Lock()
			live := bytes
			mu.Unlock()
			// A hundred of the youngest reach the rest of their batches.
			// The array of a large bundle is Go memory with some build tags.
			const most = 2 << 20
			if live > 400<<10 || now-before > most {
				t.Fatalf("after %d owners: %d C bytes live; Go heap %d bytes, %d before", i+1, live, now, before)
			}
		}
	}
	clear(last[:])
	collectAtMost(t, few, "all of them", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return dead == n
	})
	if bytes != 0 {
		t.Errorf("%d bytes are left", bytes)
	}
	mustDestroy(t, p)
}
