package own

import (
	"fmt"
	"testing"

	"github.com/cheapgo/cheap/internal/account"
)

// TestAccountIsExact compares the account of all pools, which other packages
// read, with what C has. In a child, since other tests leave pools behind.
func TestAccountIsExact(t *testing.T) {
	out, status := inChild(t, func() {
		w := newWorld(t, 10_000)
		f := &factory{w: w}
		must := func(when string) {
			// What is in open batches is not in there yet.
			settle(t)
			settle(t)
			if u := account.Read(); u.Held != w.bytes.Load() || account.Held() != u.Held || u.Live != u.Held {
				fmt.Printf("%s: %+v, and %d bytes live\n", when, u, w.bytes.Load())
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
		p.Destroy(0)
		must("one pool destroyed")
		q.Destroy(0)
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

// TestGrowthNotifies has somebody wait for a bound of all bytes off the heap.
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
		account.SetPressure(account.Held()+3*size/4, func(int64) {
			calls++
			p.Stats() // would hang if a lock were held
		})
		m := grow(w, p)
		account.SetPressure(0, nil)
		if calls == 0 {
			t.Errorf("%s: nobody was notified of %d bytes more", name, size)
		}
		m.Close()
		p.Destroy(0)
	}
}
