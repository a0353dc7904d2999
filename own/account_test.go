package own

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/testchild"
)

// TestAccountIsExact compares the account of all pools, which other packages
// read, with what C has. In a child, since other tests leave pools behind.
func TestAccountIsExact(t *testing.T) {
	out, status := testchild.Run(t, func() {
		w := newWorld(t, 10_000)
		f := &factory{w: w}
		must := func(when string) {
			// Open batches are not in the account yet.
			settle(t)
			settle(t)
			auto, _ := account.Auto()
			if u := account.Read(); u.Held != w.bytes.Load() || account.Held() != u.Held || u.Live != u.Held || auto != u.Held {
				fmt.Printf("%s: %+v, of these %d automatically, and %d bytes live\n", when, u, auto, w.bytes.Load())
			}
		}
		p, q := w.pool(Options{Size: 100}), f.pool(Options{Drain: true})
		must("at first")
		var held, made []*thing
		for i := range 1000 {
			held = append(held, w.own(t, p, []int{16, 100, 1000, 100_000}[i%4]))
			if i%10 == 0 {
				made = append(made, f.make(t, q))
			}
		}
		child := w.ownUnder(t, q, held[3], 5000)
		must("owned")
		for i, m := range held {
			switch i % 5 {
			case 0:
				m.Close()
			case 1:
				m.Disown()
				w.destroy(m.cell)
			case 2:
				w.bytes.Add(-m.cell.size)
				m.cell.size = int64(i)
				w.bytes.Add(m.cell.size)
				m.Resize(i)
			}
		}
		for _, m := range made[10:] {
			m.Close()
		}
		must("some closed, but not drained")
		q.Drain(20)
		must("some drained")
		held[3].Close()
		must("a parent waits")
		child.Close()
		q.Drain(0)
		must("the parent released")
		for i := range held {
			if i%3 == 0 {
				held[i] = nil
			}
		}
		must("some forgotten")
		p.Destroy(waiting(0))
		must("one pool destroyed")
		q.Destroy(waiting(0))
		must("both destroyed, one to be drained")
		q.Drain(0)
		must("in the end")
		if w.bytes.Load() != 0 || len(w.wrong) != 0 {
			fmt.Println(w.bytes.Load(), "bytes are alive in the end;", w.wrong)
		}
	})
	if out != "" || status != 0 {
		t.Errorf("status %d, output:\n%s", status, out)
	}
}

// TestGrowthNotifies has Pressure called at a bound on all bytes off the heap.
func TestGrowthNotifies(t *testing.T) {
	const size = 1 << 20
	for name, grow := range map[string]func(w *world, p *Pool) *thing{
		"Own": func(w *world, p *Pool) *thing { return w.own(t, p, size) },
		"Make": func(w *world, p *Pool) *thing {
			m := &thing{}
			if err := p.Make(&m.Owner); err != nil {
				t.Error(err)
			}
			return m
		},
		"Resize": func(w *world, p *Pool) *thing {
			m := w.own(t, p, 1<<18)
			m.Resize(size)
			return m
		},
		"small": func(w *world, p *Pool) *thing {
			for range 10_000 {
				w.own(t, p, size/10_000)
			}
			return w.own(t, p, size)
		},
	} {
		w := newWorld(t, 20_000)
		p := (&factory{w: w}).pool(Options{Size: size})
		calls := 0
		account.SetPace(&account.Pace{Pressure: func() {
			calls++
			p.Stats() // would hang if a lock were held
		}})
		account.SetBounds(account.Held()+3*size/4, math.MaxInt64, math.MaxInt64)
		m := grow(w, p)
		account.SetPace(nil)
		if calls == 0 {
			t.Errorf("%s: Pressure was not called for %d bytes more", name, size)
		}
		m.Close()
		p.Destroy(waiting(0))
	}
}

// TestAutoOfMemory compares what a collection could give back with what a Memory
// says that it holds. In a child, since other tests leave owners behind.
func TestAutoOfMemory(t *testing.T) {
	out, status := testchild.Run(t, func() {
		m := NewMemory(nil, MemoryOptions{})
		var held []*Bytes
		must := func(when string) {
			settle(t)
			settle(t)
			settle(t)
			auto, _ := account.Auto()
			if st := m.Stats(); auto != st.Bytes {
				fmt.Printf("%s: %d bytes could be given back, and the Memory has %d\n", when, auto, st.Bytes)
			}
		}
		for i := range 500 {
			b, err := m.NewBytes([]int{1, 100, 5000, 200_000}[i%4])
			if err != nil {
				fmt.Println(err)
				return
			}
			held = append(held, b)
		}
		must("made")
		for i, b := range held {
			if i%3 == 0 {
				b.Close()
			}
		}
		must("some closed")
		for i := range held {
			if i%4 == 0 {
				held[i] = nil
			}
		}
		held = held[:400]
		must("some forgotten")
		clear(held)
		must("in the end")
		if auto, _ := account.Auto(); auto != 0 {
			fmt.Println(auto, "bytes in the end")
		}
	})
	if out != "" || status != 0 {
		t.Errorf("status %d, output:\n%s", status, out)
	}
}

// TestAutoOfGroups is TestAutoOfMemory for the bytes that groups take beyond
// their first 1 KiB, which are most of their bytes.
func TestAutoOfGroups(t *testing.T) {
	out, status := testchild.Run(t, func() {
		m := NewMemory(nil, MemoryOptions{})
		g, err := m.NewGroup()
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, size := range []int{16, 1000, 50_000, 1 << 20} {
			g.Malloc(size)
			settle(t)
			settle(t)
			if auto, _ := account.Auto(); auto < int64(size) || auto != m.Stats().Bytes {
				fmt.Printf("%d bytes could be given back after a Malloc of %d, and the Memory has %d\n", auto, size, m.Stats().Bytes)
			}
		}
		g.Close()
		settle(t)
		if auto, _ := account.Auto(); auto != 0 {
			fmt.Println(auto, "bytes in the end")
		}
	})
	if out != "" || status != 0 {
		t.Errorf("status %d, output:\n%s", status, out)
	}
}

// TestAdmitBeforeOwn sets a bound that a resource exceeds: it stays with the
// caller, and nothing is counted.
func TestAdmitBeforeOwn(t *testing.T) {
	w := newWorld(t, 100)
	p := w.pool(Options{})
	parent := w.own(t, p, 16)
	refused := errors.New("refused")
	tries := 0
	account.SetPace(&account.Pace{Pressure: func() {}, Reclaim: func(n int64, try int) error {
		if tries++; try < 2 {
			return nil
		}
		return refused
	}})
	defer account.SetPace(nil)
	held := account.Held()
	auto, _ := account.Auto()
	account.SetBounds(math.MaxInt64, math.MaxInt64, held+1<<20)
	const size = 2 << 20
	for name, own := range map[string]func(o *Owner, c *cell) error{
		"Own":      func(o *Owner, c *cell) error { return p.Own(o, c.pointer(), size) },
		"own":      func(o *Owner, c *cell) error { return p.own(o, uintptr(c.pointer()), size) },
		"OwnUnder": func(o *Owner, c *cell) error { return p.OwnUnder(o, &parent.Owner, c.pointer(), size) },
	} {
		tries = 0
		var o Owner
		c := w.create(size)
		if err := own(&o, c); !errors.Is(err, refused) || tries != 3 {
			t.Errorf("%s: %v, after %d tries", name, err, tries)
		}
		if now, _ := account.Auto(); !o.Closed() || account.Held() != held || now != auto {
			t.Errorf("%s: refused, and closed %v, %d bytes held, %d of them automatically", name, o.Closed(), account.Held()-held, now-auto)
		}
		w.destroy(c) // it is ours
	}
	account.SetBounds(math.MaxInt64, math.MaxInt64, math.MaxInt64)
	if m := w.own(t, p, size); m.Closed() {
		t.Error("refused without a bound")
	}
	parent.Close()
	p.Destroy(waiting(0))
}
