package own

import (
	"errors"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/own/internal/intake"
)

// A factory constructs resources of a world.
type factory struct {
	w     *world
	calls atomic.Int64
	// If set, it says how many of n to make, and the error.
	says func(call, n int) (int, error)
}

func (f *factory) construct(r []uintptr) (int, error) {
	call := int(f.calls.Add(1))
	n, err := len(r), error(nil)
	if f.says != nil {
		n, err = f.says(call, len(r))
	}
	for i := range n {
		r[i] = uintptr(f.w.create(factorySize).pointer())
	}
	return n, err
}

const factorySize = 100

// pool returns a pool that constructs.
func (f *factory) pool(o Options) *Pool {
	o.Construct = f.construct
	if o.Size == 0 {
		o.Size = factorySize
	}
	return f.w.pool(o)
}

// make makes a thing, whose cell is set afterwards.
func (f *factory) make(t testing.TB, p *Pool) *thing {
	t.Helper()
	m := &thing{}
	testcall.Must(t, m.Make(p))
	f.find(m)
	return m
}

// find sets a thing's cell to what it owns.
func (f *factory) find(m *thing) {
	m.owner.useNumber(func(r uintptr) { m.cell = f.w.at(r) })
}

// TestMakeHandsOutEachOnce makes, closes and forgets: each owner has a resource
// of its own, and few calls of the constructor are enough.
func TestMakeHandsOutEachOnce(t *testing.T) {
	const n = 2000
	for _, o := range []Options{{}, {Batch: 1}, {Batch: 10}, {Pinned: 1000}, {Trace: true}, {OnCollect: func(Collected) {}}, {Size: 1 << 20}} {
		f := &factory{w: newWorld(t, 3*n)}
		p := f.pool(o)
		seen := map[*cell]bool{}
		testcall.Aside(func() {
			for i := range n {
				m := f.make(t, p)
				if m.cell == nil || seen[m.cell] || !m.cell.alive() {
					t.Fatalf("make %d: cell %v", i, m.cell)
				}
				seen[m.cell] = true
				if i%3 == 0 {
					m.Close()
					mustBeReleased(t, m.cell, "by Close")
				}
			}
		})
		if calls := f.calls.Load(); o.Batch == 0 && o.Pinned == 0 && o.Size == 0 && calls > n/50 {
			t.Errorf("%+v: %d calls of the constructor for %d resources", o, calls, n)
		}
		collectAtMost(t, few, "what was forgotten, and the stock", func() bool { return f.w.alive() == 0 })
		mustStats(t, p, Stats{})
		mustDestroy(t, p)
	}
}

// TestMadeAheadCounts looks at a stock in the pool's counters.
func TestMadeAheadCounts(t *testing.T) {
	f := &factory{w: newWorld(t, 100)}
	p := f.pool(Options{})
	var made []*thing
	for range 5 {
		made = append(made, f.make(t, p))
		all := f.w.next.Load()
		mustStats(t, p, Stats{Live: int64(len(made)), Made: all - int64(len(made)), Bytes: all * factorySize})
	}
	for i, m := range made {
		m.Close()
		all := f.w.alive()
		mustStats(t, p, Stats{Live: int64(4 - i), Made: all - int64(4-i), Bytes: all * factorySize})
	}
	if f.w.alive() == 0 {
		t.Error("nothing is made ahead")
	}
	mustDestroy(t, p)
	mustStats(t, p, Stats{})
	if n := f.w.alive(); n != 0 {
		t.Errorf("%d are left after CloseWait", n)
	}
}

// TestStockOfAnIdlePoolIsReleased leaves a pool alone: the stock goes. While Make
// is called now and then it stays.
func TestStockOfAnIdlePoolIsReleased(t *testing.T) {
	setProcs(t, 1) // each P has a stock
	f := &factory{w: newWorld(t, 1000)}
	p := f.pool(Options{OnCollect: func(c Collected) { t.Errorf("the collector found %+v", c) }})
	var made []*thing
	for range 10 {
		made = append(made, f.make(t, p))
		gc(t)
	}
	if calls := f.calls.Load(); calls != 1 {
		t.Errorf("%d calls of the constructor for 10 resources", calls)
	}
	collectAtMost(t, few, "the stock of a pool that is idle", func() bool { return f.w.alive() == int64(len(made)) })
	if s := p.Stats(); s.Made != 0 || s.Live != 10 || s.Bytes != 10*factorySize || s.Collected != 0 {
		t.Errorf("%+v", s)
	}
	for _, m := range made {
		mustBeAlive(t, m.cell, "with the stock")
		m.Close()
	}
	f.make(t, p).Close() // works again
	mustDestroy(t, p)
}

// TestConstructorFailsMidway has its prefix served, then its error, then a new
// attempt. The prefix and the error wait for the next Make over a collection.
func TestConstructorFailsMidway(t *testing.T) {
	setProcs(t, 1)
	oops := errors.New("oops")
	f := &factory{w: newWorld(t, 100)}
	f.says = func(call, n int) (int, error) {
		switch call {
		case 1:
			return 3, oops
		case 2:
			return 0, oops
		case 3:
			return 2, nil // not all of them, and no reason
		case 4:
			return 0, nil
		}
		return n, nil
	}
	p := f.pool(Options{})
	var made []*thing
	for i, want := range []error{nil, nil, nil, oops, oops, nil, nil, intake.ErrMadeNone, nil} {
		if i == 2 {
			gc(t)
		}
		m := &thing{}
		if err := m.Make(p); err != want {
			t.Fatalf("Make %d: %v, want %v", i, err, want)
		} else if err == nil {
			f.find(m)
			made = append(made, m)
		} else if !m.Closed() {
			t.Errorf("Make %d: an error, and an owner", i)
		}
	}
	for _, m := range made {
		m.Close()
		mustBeReleased(t, m.cell, "by Close")
	}
	mustDestroy(t, p)
	if n := f.w.alive(); n != 0 {
		t.Errorf("%d are left after CloseWait", n)
	}
}

// TestConstructorThatLies says it made more than there was room for, or fewer
// than none.
func TestConstructorThatLies(t *testing.T) {
	for _, n := range []int{-1, 1 << 20} {
		p := NewPool(Options{Name: "image", Release: func(_ any, _ []uintptr) error { return nil }, Construct: func([]uintptr) (int, error) { return n, nil }})
		mustMisuse(t, "image.Make", func() { new(object).Make(p) }, "returned")
		mustDestroy(t, p)
	}
}

// TestConstructorPanics leaves the pool usable.
func TestConstructorPanics(t *testing.T) {
	f := &factory{w: newWorld(t, 100)}
	f.says = func(call, n int) (int, error) {
		if call == 1 {
			panic("oops")
		}
		return n, nil
	}
	p := f.pool(Options{})
	if v := testcall.Catch(func() { new(object).Make(p) }); v != "oops" {
		t.Errorf("panic value %v", v)
	}
	f.make(t, p).Close()
	mustDestroy(t, p)
}

// TestConstructorUsesItsPool makes and owns in its own pool, and closes. What the
// inner Make leaves is still there when the outer one goes on.
func TestConstructorUsesItsPool(t *testing.T) {
	setProcs(t, 1)
	w := newWorld(t, 1000)
	f := &factory{w: w}
	var p *Pool
	var inner thing
	f.says = func(call, n int) (int, error) {
		if call == 1 {
			testcall.Want(t, inner.Make(p))
			w.own(t, p, 10).Close()
			gc(t)
		}
		return n, nil
	}
	p = f.pool(Options{})
	m := f.make(t, p)
	f.find(&inner)
	if m.cell == inner.cell {
		t.Error("one resource was handed out twice")
	}
	m.Close()
	inner.Close()
	mustDestroy(t, p)
	if n := w.alive(); n != 0 {
		t.Errorf("%d are left after CloseWait", n)
	}
}

func TestMakeMisuse(t *testing.T) {
	f := &factory{w: newWorld(t, 100)}
	p := f.pool(Options{Name: "image"})
	m := f.make(t, p)
	mustMisuse(t, "image.Make", func() { m.Make(p) }, "owns something already")
	m.Close()
	if err := m.Make(p); err != nil {
		t.Errorf("Make with a Handle that is closed: %v", err)
	}
	m.Close()
	mustDestroy(t, p)
	q := f.w.pool(Options{Name: "commit"})
	mustMisuse(t, "commit.Make", func() { new(object).Make(q) }, "Construct")
	mustDestroy(t, q)
}

// TestMakeAfterDestroy gets an error, also if the pool is destroyed while the
// constructor runs. Then the resources that it makes are released.
func TestMakeAfterDestroy(t *testing.T) {
	f := &factory{w: newWorld(t, 100)}
	p := f.pool(Options{})
	f.says = func(_, n int) (int, error) {
		mustDestroy(t, p)
		return n, nil
	}
	for range 2 {
		var o object
		if err := o.Make(p); err != ErrPoolClosed || !o.Closed() {
			t.Errorf("Make: %v", err)
		}
	}
	if n, calls := f.w.alive(), f.calls.Load(); n != 0 || calls != 1 {
		t.Errorf("%d are left, after %d calls of the constructor", n, calls)
	}
	mustStats(t, p, Stats{})
}

// TestMakeInDrainPool leaves the stock's release to Drain, too.
func TestMakeInDrainPool(t *testing.T) {
	f := &factory{w: newWorld(t, 100)}
	p := f.pool(Options{Run: NewQueue(1, nil).Run()})
	m := f.make(t, p)
	m.Close()
	if err := new(object).Make(p); err != ErrQueueFull {
		t.Errorf("Make with a full queue: %v", err)
	}
	if n := drainPool(p, 0); n != 1 {
		t.Errorf("Drain: %d", n)
	}
	e := destroyError(t, p, waiting(0))
	if e.NeverClosed != 0 || e.Queued != int64(f.w.alive()) || e.Queued == 0 {
		t.Errorf("%+v, and %d are alive", e, f.w.alive())
	}
	if n := drainPool(p, 0); int64(n) != e.Queued || f.w.alive() != 0 {
		t.Errorf("Drain: %d, %d are alive", n, f.w.alive())
	}
}

// TestClosePoolOfStockStillWaitsForUse has more in the queue than in Use.
func TestClosePoolOfStockStillWaitsForUse(t *testing.T) {
	f := &factory{w: newWorld(t, 100)}
	p := f.pool(Options{Run: new(Queue).Run()})
	m := f.make(t, p)
	inside, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		m.Use(func(unsafe.Pointer) {
			m.Close()
			close(inside)
			<-leave
		})
	}()
	<-inside
	if e := destroyError(t, p, whenWaiting(func() { close(leave) })); e.InUse != 0 {
		t.Errorf("CloseWait did not wait for the Use: %+v", e)
	}
	<-left
	drainPool(p, 0)
	if n := f.w.alive(); n != 0 {
		t.Errorf("%d are alive", n)
	}
}
