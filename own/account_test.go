package own

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// A pacer is an account.Pacer.
type pacer struct {
	pressure func() // or nil
	wait     func(ctx context.Context, n int64, inLine bool, take func() bool) error
}

func (p pacer) Pressure() {
	if p.pressure != nil {
		p.pressure()
	}
}

func (p pacer) Check() {}

func (p pacer) Reclaim(int64, int, bool) error { return account.ErrUnpaced }

func (p pacer) Wait(ctx context.Context, n int64, inLine bool, take func() bool) error {
	return p.wait(ctx, n, inLine, take)
}

// setCeiling bounds what all accounts may hold.
func setCeiling(n int64) {
	account.Process.SetBounds(account.Bounds{HeldAt: account.NoBound, ReclaimableAt: account.NoBound, Ceiling: n})
}

func sumOfAccounts() (sum account.Usage) {
	for _, u := range account.Process.List() {
		sum.Held += u.Held
		sum.Live += u.Live
	}
	return sum
}

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
			auto, _ := account.Process.Reclaimable()
			if u := sumOfAccounts(); u.Held != w.bytes.Load() || account.Process.Held() != u.Held || u.Live != u.Held || auto != u.Held {
				fmt.Printf("%s: %+v, of these %d automatically, and %d bytes live\n", when, u, auto, w.bytes.Load())
			}
		}
		p, q := w.pool(Options{Size: 100}), f.pool(Options{Run: new(Queue).Run()})
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
		drainPool(q, 20)
		must("some drained")
		held[3].Close()
		must("a parent waits")
		child.Close()
		drainPool(q, 0)
		must("the parent released")
		for i := range held {
			if i%3 == 0 {
				held[i] = nil
			}
		}
		must("some forgotten")
		p.CloseWait(waiting(0))
		must("one pool destroyed")
		q.CloseWait(waiting(0))
		must("both destroyed, one to be drained")
		drainPool(q, 0)
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
			testcall.Want(t, m.Make(p))
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
		account.Process.SetPacer(pacer{pressure: func() {
			calls++
			p.Stats() // would hang if a lock were held
		}})
		account.Process.SetBounds(account.Bounds{HeldAt: account.Process.Held() + 3*size/4, ReclaimableAt: account.NoBound, Ceiling: account.NoBound})
		m := grow(w, p)
		account.Process.SetPacer(nil)
		if calls == 0 {
			t.Errorf("%s: Pressure was not called for %d bytes more", name, size)
		}
		m.Close()
		p.CloseWait(waiting(0))
	}
}

// TestAutoOfMemory compares what a collection could give back with what a Memory says that it holds, also of
// the bytes that a group takes beyond its first 1 KiB. In a child, since other tests leave owners behind.
func TestAutoOfMemory(t *testing.T) {
	out, status := testchild.Run(t, func() {
		m := NewMemory(nil, MemoryOptions{})
		var held []*Bytes
		must := func(when string) {
			settle(t)
			settle(t)
			settle(t)
			auto, _ := account.Process.Reclaimable()
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
		must("all forgotten")
		g, err := m.NewGroup()
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, size := range []int{16, 1000, 50_000, 1 << 20} {
			g.Malloc(size)
			must("a group has more")
			if auto, _ := account.Process.Reclaimable(); auto < int64(size) {
				fmt.Printf("%d bytes could be given back after a Malloc of %d\n", auto, size)
			}
		}
		g.Close()
		must("in the end")
		if auto, _ := account.Process.Reclaimable(); auto != 0 {
			fmt.Println(auto, "bytes in the end")
		}
	})
	if out != "" || status != 0 {
		t.Errorf("status %d, output:\n%s", status, out)
	}
}

// TestReserve sets a bound that a resource exceeds: Reserve refuses it, and counts
// nothing. Own takes it, and so do all ways to own with a Room.
func TestReserve(t *testing.T) {
	const size = 2 << 20
	w := newWorld(t, 100)
	p := w.pool(Options{Name: "image"})
	parent := w.own(t, p, size)
	refused := errors.New("refused")
	tries := 0
	account.Process.SetPacer(pacer{wait: func(ctx context.Context, _ int64, inLine bool, take func() bool) error {
		if !inLine {
			t.Error("a Reserve is not in line")
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if tries++; take() {
			return nil
		}
		return refused
	}})
	defer account.Process.SetPacer(nil)
	held := account.Process.Held()
	mustHold := func(more int64) {
		t.Helper()
		if n := account.Process.Held() - held; n != more {
			t.Errorf("%d bytes are held, want %d", n, more)
		}
	}
	setCeiling(held + size + 1<<20)
	room, err := p.Reserve(context.Background(), size)
	testcall.Must(t, err)
	mustHold(size)
	if _, err := p.Reserve(context.Background(), size); !errors.Is(err, refused) || tries != 1 || !strings.Contains(err.Error(), "image.Reserve") {
		t.Errorf("Reserve: %v, after %d tries", err, tries)
	}
	if _, err := p.Reserve(waiting(0), size); !errors.Is(err, context.DeadlineExceeded) || tries != 1 {
		t.Errorf("Reserve with a context that is done: %v", err)
	}
	mustHold(size)
	for range 2 {
		room.Close()
		mustHold(0)
	}
	var o object
	ended := room
	mustMisuse(t, "image.Reserve", func() { p.Reserve(context.Background(), -1) }, "negative") //cheapvet:ignore closeforgotten it panics
	for name, own := range map[string]func(m *thing) error{
		"Own":         func(m *thing) error { return m.Own(p, m.cell.pointer(), size) },
		"Parent":      func(m *thing) error { return m.OwnWith(p, m.cell.pointer(), With{Size: size, Parent: parent.Owner()}) },
		"Room":        func(m *thing) error { return m.OwnWith(p, m.cell.pointer(), With{Room: room}) },
		"Room, child": func(m *thing) error { return m.OwnWith(p, m.cell.pointer(), With{Parent: parent.Owner(), Room: room}) },
		"Room, state": func(m *thing) error { return m.OwnWith(p, m.cell.pointer(), With{State: m.cell.hold(), Room: room}) },
		"ended":       func(m *thing) error { return m.OwnWith(p, m.cell.pointer(), With{Room: ended}) },
	} {
		if room, err = p.Reserve(context.Background(), size); err != nil {
			t.Fatal(err)
		}
		m := &thing{cell: w.create(size)}
		if name == "Own" || name == "Parent" || name == "ended" {
			if err := own(m); err != nil {
				t.Errorf("%s at the bound: %v", name, err)
			}
			mustHold(2 * size)
			room.Close()
		} else if err := own(m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		mustHold(size)
		room.Close() // a copy of it has ended
		mustHold(size)
		m.Close()
		mustBeReleased(t, m.cell, name)
		mustHold(0)
	}
	// Small ones share a batch, which is counted when it is sealed.
	room, err = p.Reserve(context.Background(), 100)
	testcall.Must(t, err)
	mustHold(100)
	small := &thing{cell: w.create(100)}
	testcall.Must(t, small.OwnWith(p, small.cell.pointer(), With{Room: room}))
	mustHold(0)
	mustStats(t, p, Stats{Live: 2, Bytes: size + 100})
	small.Close()

	// After CloseWait the room can be given back only.
	room, err = p.Reserve(context.Background(), 100)
	testcall.Must(t, err)
	child, err := p.Reserve(context.Background(), 100)
	testcall.Must(t, err)
	parent.Close()
	c := w.create(100)
	if err := o.OwnWith(p, c.pointer(), With{Parent: parent.Owner(), Room: child}); err != ErrClosed {
		t.Errorf("Own under a closed parent: %v", err)
	}
	child.Close()
	mustStats(t, p, Stats{Rooms: 1, RoomBytes: 100})
	if e := destroyError(t, p, patient(t)); e.Rooms != 1 || e.NeverClosed != 0 {
		t.Errorf("CloseWait: %v", e)
	}
	if err := o.OwnWith(p, c.pointer(), With{Room: room}); err != ErrPoolClosed || !o.Closed() {
		t.Errorf("Own after CloseWait: %v", err)
	}
	if _, err := p.Reserve(context.Background(), 100); err != ErrPoolClosed {
		t.Errorf("Reserve after CloseWait: %v", err)
	}
	if err := p.Discard(c.pointer()); err != nil {
		t.Errorf("Discard: %v", err)
	}
	mustBeReleased(t, c, "by Discard")
	held -= size // the parent's
	mustHold(0)
}

// TestReserveInQueue reserves in a queue that is full, and owns in one that has become
// full.
func TestReserveInQueue(t *testing.T) {
	var released []uintptr
	p := NewPool(Options{Run: NewQueue(1, nil).Run(), Numbers: true, Release: func(_ any, r []uintptr) error {
		released = append(released, r...)
		return nil
	}})
	room, err := p.Reserve(context.Background(), 10)
	testcall.Must(t, err)
	var n, m Number[int]
	testcall.Must(t, n.Own(p, 1, 10))
	n.Close()
	if _, err := p.Reserve(context.Background(), 10); err != ErrQueueFull {
		t.Errorf("Reserve with a full queue: %v", err)
	}
	if err := m.Own(p, 2, 10); err != ErrQueueFull {
		t.Errorf("Own with a full queue: %v", err)
	}
	testcall.Must(t, m.OwnWith(p, 2, With{Room: room}))
	testcall.Must(t, Discard(p, 3))
	m.Close()
	if n := drainPool(p, 0); n != 3 || len(released) != 3 {
		t.Errorf("drained %d, released %d", n, released)
	}
	mustStats(t, p, Stats{})
	mustDestroy(t, p)
}

// TestLargestSize owns a resource whose size has no room in its state: it counts as less, and
// nothing is left of it.
func TestLargestSize(t *testing.T) {
	p := NewPool(Options{Numbers: true, Release: released(func([]uintptr) {})})
	var n Number[int]
	testcall.Must(t, n.Own(p, 7, math.MaxInt))
	mustStats(t, p, Stats{Live: 1, Bytes: min(math.MaxInt, batch.MaxSize)})
	testcall.Must(t, n.Close())
	mustStats(t, p, Stats{})
	mustDestroy(t, p)
}
