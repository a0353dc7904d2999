package own

import (
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// A mix is what many goroutines do to the same owners and pools at a time.
type mix struct {
	w     *world
	slots []atomic.Pointer[thing] // owners; one that is overwritten is forgotten
	pools []atomic.Pointer[Pool]  // not destroyed yet, or just now

	mu      sync.Mutex
	drained []*Pool // all that were ever made with Drain
}

var mixOptions = []Options{
	{},
	{Batch: 1},
	{Batch: 3},
	{Pinned: 100},
	{Trace: true},
	{Run: new(Queue).Run()},
	{OnCollect: func(Collected) {}},
	{Run: Inline()},
	{Run: Inline(), Batch: 3},
}

// renew puts a new pool into a place.
func (x *mix) renew(i int) {
	o := mixOptions[i%len(mixOptions)]
	o.Name = "mixed"
	p := x.w.pool(o)
	if o.Run.queue != nil {
		x.mu.Lock()
		x.drained = append(x.drained, p)
		x.mu.Unlock()
	}
	if old := x.pools[i].Swap(p); old != nil {
		old.CloseWait(waiting(time.Duration(i%2) * time.Millisecond))
	}
}

func (x *mix) drain(max int) {
	x.mu.Lock()
	pools := x.drained
	x.mu.Unlock()
	for _, p := range pools {
		drainPool(p, max)
	}
}

// step does one thing. It returns how many resources it made.
func (x *mix) step(t *testing.T, rnd *rand.Rand) int {
	slot := &x.slots[rnd.IntN(len(x.slots))]
	m := slot.Load()
	if m == nil || rnd.IntN(3) == 0 {
		return x.own(t, rnd, slot)
	}
	switch rnd.IntN(16) {
	case 0, 1, 2:
		m.Close()
	case 3:
		o := m.object
		o.Close()
	case 4, 5:
		if _, err := m.Disown(); err == nil {
			m.cell.parent = -1 // its parent need not wait
			x.w.destroy(m.cell)
		} else if err != ErrClosed && err != ErrInUse && err != ErrChildren {
			t.Error(err)
		}
	case 6, 7, 8:
		use(t, m, func() { runtime.Gosched() })
	case 9:
		use(t, m, func() { m.Close() })
	case 10:
		slot.CompareAndSwap(m, nil)
	case 11:
		m.Resize(rnd.IntN(200))
	case 12:
		if s := x.pools[rnd.IntN(len(x.pools))].Load().Stats(); s.Live < 0 {
			t.Errorf("%+v", s)
		}
	case 13:
		m.Closed()
		m.Pointer()
	case 14:
		if rnd.IntN(20) == 0 {
			x.drain(rnd.IntN(100))
		}
	case 15:
		if rnd.IntN(200) == 0 {
			x.renew(rnd.IntN(len(x.pools)))
		}
	}
	return 0
}

// use uses a thing, if it is open, and says so in its cell.
func use(t *testing.T, m *thing, f func()) {
	inside := false
	v := testcall.Catch(func() {
		m.Use(func(resource unsafe.Pointer) {
			inside = true
			c := m.cell
			if resource != c.pointer() || !c.alive() {
				t.Error("Use of something that is destroyed")
			}
			c.users.Add(1)
			f()
			c.users.Add(-1)
			if !c.alive() {
				t.Error("destroyed during Use")
			}
		})
	})
	if e, ok := v.(*cheap.MisuseError); v != nil && (!ok || inside || e.Op != "mixed.Use") {
		t.Error(v)
	}
}

// own owns something, under what the slot has or nothing, and puts it there or
// forgets it.
func (x *mix) own(t *testing.T, rnd *rand.Rand, slot *atomic.Pointer[thing]) int {
	p := x.pools[rnd.IntN(len(x.pools))].Load()
	size := rnd.IntN(100)
	parent := slot.Load()
	c := x.w.create(size)
	m := &thing{cell: c}
	var err error
	var over Owner
	if parent != nil && rnd.IntN(8) == 0 {
		c.parent = int32(x.w.number(parent.cell))
		over = parent.Owner()
		slot = &x.slots[rnd.IntN(len(x.slots))]
	}
	switch {
	case rnd.IntN(8) == 0:
		err = m.OwnWith(p, c.pointer(), With{Size: size, Parent: over, State: c.hold()})
	case over != (Owner{}):
		err = m.OwnWith(p, c.pointer(), With{Size: size, Parent: over})
	default:
		err = m.Own(p, c.pointer(), size)
	}
	switch {
	case err == nil:
		if rnd.IntN(4) != 0 {
			slot.Store(m)
		}
	case err == ErrPoolClosed || c.parent >= 0 && err == ErrClosed:
		if !m.Closed() {
			t.Error("an error, and an owner")
		}
		c.parent = -1
		x.w.destroy(c)
	default:
		t.Error(err)
	}
	return 1
}

// changeProcs changes GOMAXPROCS now and then, from 1 to 8.
func changeProcs(rnd *rand.Rand) {
	if rnd.IntN(500) == 0 {
		runtime.GOMAXPROCS(1 + rnd.IntN(8))
	}
}

// TestHammerExactlyOnce has 16 goroutines own, close, copy, disown, use, forget,
// drain and destroy, and one more collects without pause. Each resource
// is released once, after its children, never in use, and with the state of its own if it
// has one. With -own.long there are
// 10,000,000 resources, GOGC is 1, and GOMAXPROCS changes.
func TestHammerExactlyOnce(t *testing.T) {
	const goroutines = 16
	n := times(250_000)
	if *long {
		n = 10_000_000
		defer debug.SetGCPercent(debug.SetGCPercent(1))
		setProcs(t, 1)
	}
	w := newWorld(t, n+goroutines)
	x := &mix{w: w, slots: make([]atomic.Pointer[thing], 500), pools: make([]atomic.Pointer[Pool], 2*len(mixOptions))}
	for i := range x.pools {
		x.renew(i)
	}
	stop := testwait.Loop(1, runtime.GC)
	var made atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 1))
			for made.Load() < int64(n) {
				if x.step(t, rnd) > 0 {
					made.Add(1)
				}
				if *long {
					changeProcs(rnd)
				}
			}
		})
	}
	wg.Wait()
	stop()
	clear(x.slots)
	x.settle(t)
	var left Stats
	for i := range x.pools {
		s := x.pools[i].Load().Stats()
		left.Live += s.Live
		left.Bytes += s.Bytes
		left.Queued += s.Queued
	}
	if left != (Stats{}) {
		t.Errorf("the pools say that this is left: %+v", left)
	}
	for i := range x.pools {
		mustDestroy(t, x.pools[i].Load())
	}
}

// settle waits for all that a mix made.
func (x *mix) settle(t *testing.T) {
	t.Helper()
	wait(t, "none is alive", func() bool {
		settle(t)
		x.drain(0)
		return x.w.alive() == 0
	})
}

// TestHammerNeverInUse has few owners that all use, while others close them,
// destroy the pool and collect without pause.
func TestHammerNeverInUse(t *testing.T) {
	rounds := times(300)
	w := newWorld(t, rounds*50)
	stop := testwait.Loop(1, runtime.GC)
	defer stop()
	for round := range rounds {
		p := w.pool(Options{Name: "mixed", Batch: 5})
		things := make([]*thing, 50)
		for i := range things {
			if i%10 == 9 {
				m := &thing{cell: w.create(16)}
				m.cell.parent = int32(w.number(things[i-1].cell))
				testcall.Must(t, m.OwnWith(p, m.cell.pointer(), With{Size: 16, Parent: things[i-1].Owner()}))
				things[i] = m
				continue
			}
			things[i] = w.own(t, p, 16)
		}
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(round), uint64(g)))
				for range 100 {
					m := things[rnd.IntN(len(things))]
					use(t, m, func() {
						if rnd.IntN(4) == 0 {
							runtime.Gosched()
						}
						use(t, m, func() {})
					})
				}
			})
		}
		wg.Go(func() {
			for _, m := range things[:25] {
				m.Close()
			}
		})
		wg.Go(func() { p.CloseWait(waiting(time.Duration(round%3) * time.Millisecond)) })
		wg.Wait()
		mustStats(t, p, Stats{})
		for _, m := range things {
			mustBeReleased(t, m.cell, "after CloseWait and the last Use")
		}
	}
}

// TestHammerParents has families grow, close and be forgotten on many goroutines
// at a time.
func TestHammerParents(t *testing.T) {
	n := times(100_000)
	w := newWorld(t, n)
	p, q := w.pool(Options{}), w.pool(Options{Batch: 4})
	roots := make([]atomic.Pointer[thing], 8)
	for i := range roots {
		roots[i].Store(w.own(t, p, 16))
	}
	stop := testwait.Loop(1, runtime.GC)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 2))
			mine := make([]*thing, 20)
			for w.next.Load() < int64(n-16) {
				root := &roots[rnd.IntN(len(roots))]
				parent := root.Load()
				if i := rnd.IntN(len(mine)); mine[i] != nil && rnd.IntN(2) == 0 {
					parent = mine[i]
				}
				m := &thing{cell: w.create(16)}
				m.cell.parent = int32(w.number(parent.cell))
				var state any
				if rnd.IntN(4) == 0 {
					state = m.cell.hold()
				}
				switch err := m.OwnWith([]*Pool{p, q}[rnd.IntN(2)], m.cell.pointer(), With{Size: 16, Parent: parent.Owner(), State: state}); err {
				case nil:
					mine[rnd.IntN(len(mine))] = m
				case ErrClosed:
					m.cell.parent = -1
					w.destroy(m.cell)
				default:
					t.Error(err)
					return
				}
				if m := mine[rnd.IntN(len(mine))]; m != nil && rnd.IntN(3) == 0 {
					m.Close()
				}
				if rnd.IntN(100) == 0 {
					old := root.Swap(w.own(t, p, 16))
					if rnd.IntN(2) == 0 {
						old.Close()
					}
				}
			}
		})
	}
	wg.Wait()
	stop()
	clear(roots)
	collect(t, "all families", func() bool { return w.alive() == 0 })
	mustStats(t, p, Stats{})
	mustStats(t, q, Stats{})
	mustDestroy(t, p)
	mustDestroy(t, q)
}
