package own

import (
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// A maker makes an owner of some kind.
type maker struct {
	name string
	make func() error
}

// makersOf returns a maker of each kind. Their owners are forgotten. A call of
// Options.Construct makes one resource, so that few are made ahead.
func makersOf(t testing.TB, w *world) (all []maker, p *Pool, m *Memory) {
	f := &factory{w: w}
	p = f.pool(Options{})
	m = NewMemory(newHeap(t), MemoryOptions{})
	return []maker{
		{"Own", func() error {
			c := w.create(16)
			return new(thing).Own(p, c.pointer(), 16)
		}},
		{"Make", func() error { return new(thing).Make(p) }},
		{"Memory", func() error { _, err := m.NewBytes(100); return err }},
		{"Group", func() error { _, err := m.NewGroup(); return err }},
	}, p, m
}

// TestNewPAfterDestroy owns on a P that had no window before CloseWait.
func TestNewPAfterDestroy(t *testing.T) {
	setProcs(t, 4)
	all, p, m := makersOf(t, newWorld(t, 1_000_000))
	mustDestroy(t, p)
	testcall.Want(t, m.CloseWait(patient(t)))
	for _, kind := range all[1:] { // Make, Memory, Group
		var calls atomic.Int64
		testwait.Beside(t, 4, func() error {
			calls.Add(1)
			if err := kind.make(); err != ErrPoolClosed {
				t.Errorf("%s: %v", kind.name, err)
			}
			return nil
		}, func() bool { return calls.Load() > 10_000 })
	}
	var x byte
	for range 1000 {
		if err := new(object).Own(p, unsafe.Pointer(&x), 1); err != ErrPoolClosed {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
}

// A procsMix is what the goroutines of TestHammerProcs share.
type procsMix struct {
	w      *world
	f      *factory
	h      *cheap.Heap
	made   atomic.Int64
	pool   atomic.Pointer[Pool]
	memory atomic.Pointer[Memory]
}

// step makes an owner of some kind, and closes it, keeps it in a slot of mine, or
// forgets it.
func (x *procsMix) step(t *testing.T, rnd *rand.Rand, mine *[16]*thing, blocks *[16]*Bytes) {
	p, m := x.pool.Load(), x.memory.Load()
	slot := rnd.IntN(len(mine))
	switch kind := rnd.IntN(8); kind {
	case 0, 1, 2, 3:
		o := &thing{}
		if kind < 2 {
			o.cell = x.w.create(16)
			if err := o.Own(p, o.cell.pointer(), 16); err == ErrPoolClosed {
				x.w.destroy(o.cell)
				return
			} else if err != nil {
				t.Error(err)
			}
		} else if err := o.Make(p); err == ErrPoolClosed {
			return
		} else if err != nil {
			t.Error(err)
		}
		x.made.Add(1)
		switch rnd.IntN(3) {
		case 0:
			o.Close()
		case 1:
			mine[slot] = o
		}
	case 4, 5, 6:
		b, err := m.NewBytes(1 + rnd.IntN(200))
		if err == ErrPoolClosed {
			return
		} else if err != nil {
			t.Error(err)
			return
		}
		x.made.Add(1)
		x.fill(t, b, byte(slot))
		switch rnd.IntN(3) {
		case 0:
			b.Close()
		case 1:
			if old := blocks[slot]; old != nil {
				x.check(t, old, byte(slot))
			}
			blocks[slot] = b
		}
	case 7:
		switch rnd.IntN(100) {
		case 0:
			p.Stats()
			m.Stats()
		case 1:
			if x.pool.CompareAndSwap(p, x.f.pool(Options{})) {
				p.CloseWait(patient(t))
			}
		case 2:
			if x.memory.CompareAndSwap(m, NewMemory(x.h, MemoryOptions{})) {
				m.CloseWait(patient(t))
			}
		case 3:
			if o := mine[slot]; o != nil {
				o.Resize(rnd.IntN(1000))
			}
		}
	}
}

// fill writes to a block that no other goroutine has.
func (x *procsMix) fill(t *testing.T, b *Bytes, v byte) {
	if n := b.Len(); n > 0 && testcall.Catch(func() {
		b.Use(func(p []byte) {
			for i := range p {
				if p[i] != 0 {
					t.Errorf("a new block has a %d", p[i])
				}
				p[i] = v
			}
		})
	}) != nil && !b.Closed() {
		t.Error("Use of an open block panics")
	}
}

// check looks whether a block has what fill wrote, unless its Memory was destroyed.
func (x *procsMix) check(t *testing.T, b *Bytes, v byte) {
	testcall.Catch(func() {
		b.Use(func(p []byte) {
			for i := range p {
				if p[i] != v {
					t.Errorf("a block has a %d, want %d", p[i], v)
				}
			}
		})
	})
}

// TestHammerProcs has 8 goroutines own, make, close and forget, in pools and
// Memories that are also destroyed, while GOMAXPROCS goes up and down between 1 and
// 8 and collections run. Each resource is released once, and all are in the end, also
// if the runtime has lost cleanups.
func TestHammerProcs(t *testing.T) {
	defer findLostCleanups()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	n := int64(times(1_000_000))
	w := newWorld(t, int(4*n)) // also of stocks that are made anew
	x := &procsMix{w: w, f: &factory{w: w}, h: newHeap(t)}
	x.pool.Store(x.f.pool(Options{}))
	x.memory.Store(NewMemory(x.h, MemoryOptions{}))
	setProcs(t, 1)
	stop := testwait.Loop(1, runtime.GC)
	var users sync.WaitGroup
	for g := range 8 {
		users.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 3))
			var mine [16]*thing
			var blocks [16]*Bytes
			for x.made.Load() < n {
				x.step(t, rnd, &mine, &blocks)
				changeProcs(rnd)
			}
			for i, b := range blocks {
				if b != nil {
					x.check(t, b, byte(i))
				}
			}
		})
	}
	users.Wait()
	stop()
	p, m := x.pool.Load(), x.memory.Load()
	collectNow(t, "all of them", func() bool {
		return w.alive() == 0 && m.Stats() == Stats{Collected: m.Stats().Collected}
	})
	mustStats(t, p, Stats{})
	mustDestroy(t, p)
	testcall.Want(t, m.CloseWait(patient(t)))
	collectNow(t, "all blocks", func() bool { return x.h.Stats().Blocks == 0 })
}

// collectNow is collect that does not wait for the runtime's cleanups, because some
// may be lost.
func collectNow(t testing.TB, what string, done func() bool) {
	t.Helper()
	wait(t, what+" are released", func() bool {
		runtime.GC()
		return done()
	})
}

// findLostCleanups has the runtime find the cleanups that it has lost, for the tests
// that follow.
func findLostCleanups() {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	runtime.GC()
	runtime.GC()
}
