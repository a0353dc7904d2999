package intake

import (
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/window"
	"github.com/cheapgo/cheap/own/internal/worker"
)

// A follower does what package own does at the end of a sweep or a walk.
type follower struct {
	AfterSweep
	worker.AfterWalk
}

func init() { gcwatch.Follow(follower{}) }

// A pool is an intake whose resources are numbers, and the count of those that are
// not released.
type pool struct {
	spec  batch.Spec
	in    Intake
	alive atomic.Int64
}

// newPool returns a pool. If ahead is more than 0, the constructor makes as many
// resources in a call.
func newPool(ahead int) *pool {
	p := &pool{spec: batch.Spec{Name: "test", Batch: 256, Pinned: 64 << 10, Size: 16, Numbers: true}}
	p.spec.Release = func(_ any, resources []uintptr) error { p.alive.Add(-int64(len(resources))); return nil }
	p.spec.Releaser = worker.NewDispatcher(0, false)
	var construct func([]uintptr) (int, error)
	if ahead > 0 {
		construct = func(resources []uintptr) (int, error) {
			n := min(ahead, len(resources))
			p.alive.Add(int64(n))
			return n, nil
		}
	}
	p.in.Init(&p.spec, construct, nil)
	return p
}

// own owns a resource.
func (p *pool) own(r *batch.Ref) error {
	p.alive.Add(1)
	if *r = batch.RefTo(p.in.Put(1, 16)); r.Sentinel() != nil {
		return nil
	}
	_, err := p.in.Own(r, nil, 1, 16, nil)
	if err != nil {
		p.alive.Add(-1)
	}
	return err
}

// make makes a resource and owns it.
func (p *pool) make(r *batch.Ref) error {
	if *r = batch.RefTo(p.in.Next()); r.Sentinel() != nil {
		return nil
	}
	return p.in.Make(r)
}

// newCarver returns a Carver whose handles are Refs.
func newCarver(h *cheap.Heap) *Carver {
	c := &Carver{
		Heap:   h,
		Stride: unsafe.Sizeof(batch.Ref{}),
		In:     new(Intake),
		NewHandles: func(t *batch.Sentinel, n uint32) unsafe.Pointer {
			all := make([]batch.Ref, n)
			for i := range all {
				all[i] = batch.RefTo(t, uint32(i))
			}
			return unsafe.Pointer(&all[0])
		},
	}
	c.In.Init(&batch.Spec{Name: "memory", Batch: 512, Pinned: 64 << 10, Heap: h, Releaser: c}, nil, nil)
	return c
}

// block makes a block.
func (c *Carver) block(size int) (r *batch.Ref, err error) {
	handle, _ := c.Carve(size, 0)
	if handle == nil {
		handle, _, err = c.CarveSlow("block", size, 0, false)
	}
	return (*batch.Ref)(handle), err
}

// A maker makes owners of some kind.
type maker struct {
	name   string
	places *places
	make   func() error
	left   func() int64 // resources that are not released
	end    func()
}

// makers returns a maker of each kind. Their owners are forgotten.
func makers(t *testing.T) []maker {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	testcall.Must(t, err)
	p, q := newPool(0), newPool(1)
	c := newCarver(h)
	return []maker{
		{"Own", &p.in.owning, func() error { return p.own(new(batch.Ref)) }, p.alive.Load, func() { p.in.End() }},
		{"Make", &q.in.making, func() error { return q.make(new(batch.Ref)) }, q.alive.Load, func() { q.in.End() }},
		{"Carve", &c.In.owning, func() error { _, err := c.block(100); return err },
			func() int64 { return h.Stats().Blocks }, func() { c.In.End(); h.DestroyAll() }},
	}
}

// used returns how many of the first n Ps have a window through which an entry was
// written.
func (ps *places) used(n uint) (k int) {
	for id := range n {
		s, ok := ps.At(id).Shard.(*shard)
		if !ok {
			continue
		}
		s.mu.Lock()
		if n, _ := s.inUse(); n > 0 || len(s.batches.All(nil)) > 0 {
			k++
		}
		s.mu.Unlock()
	}
	return k
}

// setProcs sets GOMAXPROCS until the end of the test. It collects before: the
// runtime forgets cleanups that the sweeper has found on a P that is removed.
func setProcs(t *testing.T, n int) {
	old := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GC(); runtime.GOMAXPROCS(old) })
}

// collectAtMost collects until done reports true, n times at most. After each collection it
// waits until the runtime has told of it, and the workers have done what follows from it.
func collectAtMost(t *testing.T, n int, what string, done func() bool) {
	t.Helper()
	for range n {
		var told atomic.Bool
		gcwatch.Next(func() { told.Store(true) })
		runtime.GC()
		testwait.Until(t, "the collection is known", told.Load)
		testwait.Until(t, "the workers have ended", func() bool { return worker.Idle() && worker.CurrentState() == worker.State{} })
		if done() {
			return
		}
	}
	t.Fatalf("not released: %s; %+v", what, worker.CurrentState())
}

// TestWindowsFollowGOMAXPROCS makes pools at a GOMAXPROCS of 1, raises it to 4, and
// lowers and raises it again. Each P that runs has a window, and Ps that come back
// find the window that they had.
func TestWindowsFollowGOMAXPROCS(t *testing.T) {
	if !window.Possible {
		return // there are no windows
	}
	setProcs(t, 1)
	all := makers(t)
	var first []*window.Window
	for round := range 2 {
		for i, kind := range all {
			runtime.GC()
			runtime.GOMAXPROCS(4)
			var calls atomic.Int64
			used := 0 // a collection may end batches after that
			testwait.Beside(t, 4, func() error {
				if calls.Add(1) > 400_000 { // a machine with fewer cores takes turns
					runtime.Gosched()
				}
				return kind.make()
			}, func() bool { used = max(used, kind.places.used(4)); return used == 4 })
			if used != 4 {
				t.Fatalf("%s: entries were written through %d windows, with 4 Ps", kind.name, used)
			}
			if n := len(kind.places.all()); n != 5 {
				t.Errorf("%s: %d shards, with 4 Ps", kind.name, n)
			}
			for id := range uint(4) {
				if w := kind.places.At(id); round == 0 {
					first = append(first, w)
				} else if first[4*i+int(id)] != w {
					t.Errorf("%s: P %d has another window than before", kind.name, id)
				}
			}
			// What is open on Ps that no longer run is released, too.
			runtime.GC()
			runtime.GOMAXPROCS(1)
			collectAtMost(t, 8, kind.name+" on Ps that do not run", func() bool { return kind.left() == 0 })
			for _, s := range kind.places.all() {
				s.mu.Lock()
				if s.open != nil || s.window.Opened() {
					t.Errorf("%s: a batch or a window is still open", kind.name)
				}
				s.mu.Unlock()
			}
		}
	}
	for _, kind := range all {
		kind.end()
	}
}

// TestShardsFollowGOMAXPROCS locks one shard after the other, without windows: the
// pool adds shards up to GOMAXPROCS, and not beyond.
func TestShardsFollowGOMAXPROCS(t *testing.T) {
	if window.Possible {
		return // shards belong to Ps
	}
	setProcs(t, 1)
	for _, kind := range makers(t) {
		for _, procs := range []int{1, 4, 2, 6} {
			runtime.GOMAXPROCS(procs)
			var locked []*shard
			for range max(procs, len(kind.places.all())) {
				locked = append(locked, kind.places.lock()) // waits for ever if none is free
			}
			got := make(chan *shard)
			go func() { got <- kind.places.lock() }()
			for _, s := range locked {
				s.mu.Unlock()
			}
			s := <-got
			s.mu.Unlock()
			if !slices.Contains(locked, s) {
				t.Errorf("%s: one shard more than GOMAXPROCS, which is %d", kind.name, procs)
			}
		}
		if n := len(kind.places.all()); n != 6 {
			t.Errorf("%s: %d shards, want 6", kind.name, n)
		}
		kind.end()
	}
}

// TestOwnBesideAReader makes owners while another goroutine holds the lock of a shard, as Census
// does: nobody waits for it, and Census does not wait either.
func TestOwnBesideAReader(t *testing.T) {
	if !window.Possible {
		return // a shard more is made only up to GOMAXPROCS
	}
	setProcs(t, 1)
	for _, kind := range makers(t) {
		var s *shard
		for s == nil { // what follows a collection may have the lock
			s = kind.places.lockOwn()
		}
		for range 1000 {
			if err := kind.make(); err != nil { // waits for ever if it wants that lock
				t.Fatal(err)
			}
		}
		if s.in.Census(new(census.Pool)) {
			t.Errorf("%s: counted, with a shard locked", kind.name)
		}
		s.unlock()
		collectAtMost(t, 8, kind.name, func() bool { return kind.left() == 0 })
		kind.end()
	}
}

// TestStockOfAPThatStopsIsReleased lowers GOMAXPROCS, and goes on with Make on the P
// that is left: the stock of the others does not stay.
func TestStockOfAPThatStopsIsReleased(t *testing.T) {
	if !window.Possible {
		return // a stock belongs to no P
	}
	setProcs(t, 4)
	p := newPool(100)
	stocks := func() (n int) { // of the Ps that will stop
		for id := uint(1); id < 4; id++ {
			if s, ok := p.in.making.At(id).Shard.(*shard); ok {
				s.mu.Lock()
				if s.made > 0 || len(s.spare) > 0 {
					n++
				}
				s.mu.Unlock()
			}
		}
		return n
	}
	// After the goroutines have seen three stocks they go on for a moment, in which a
	// stock may run out.
	testwait.Until(t, "Ps that will stop have a stock", func() bool {
		testwait.Beside(t, 4, func() error {
			runtime.Gosched()
			for range 10 {
				if err := p.make(new(batch.Ref)); err != nil {
					return err
				}
			}
			return nil
		}, func() bool { return stocks() == 3 })
		return stocks() >= 2
	})
	// No collection is without a Make before it, or the pool would be idle, and each
	// stock would be released.
	runtime.GOMAXPROCS(1)
	collectAtMost(t, 8, "the stock of Ps that do not run", func() bool {
		testcall.Must(t, p.make(new(batch.Ref)))
		live, _, made := p.in.Totals()
		return stocks() == 0 && made == p.alive.Load()-live
	})
	collectAtMost(t, 8, "all of them", func() bool { return p.alive.Load() == 0 })
	p.in.End()
}

// TestStockOfNoPIsReleased puts a stock where a goroutine puts it that finds the shard of its P
// locked, and goes on with Make elsewhere.
func TestStockOfNoPIsReleased(t *testing.T) {
	if !window.Possible {
		return // Make may find any stock
	}
	p := newPool(100)
	b, err := p.in.constructAhead(100)
	testcall.Must(t, err)
	s := p.in.making.all()[0]
	s.mu.Lock()
	b.Home = s
	s.spare = append(s.spare, b)
	s.sealAfterGC()
	s.mu.Unlock()
	gone := func() bool {
		testcall.Must(t, p.make(new(batch.Ref)))
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.spare) == 0
	}
	gone() // no collection is without a Make before it
	collectAtMost(t, 8, "the stock of no P", gone)
	collectAtMost(t, 8, "all of them", func() bool { return p.alive.Load() == 0 })
	p.in.End()
}

// TestPlacesBeginSmall makes a pool, which has one shard until it is used.
func TestPlacesBeginSmall(t *testing.T) {
	p := newPool(0)
	if n := len(p.in.shards()); n != 1 {
		t.Errorf("%d shards at first", n)
	}
	var r batch.Ref
	testcall.Must(t, p.own(&r))
	if n := len(p.in.shards()); n > 2 {
		t.Errorf("%d shards after one Own", n)
	}
	r.Sentinel().Close(r.Index)
	if p.alive.Load() != 0 {
		t.Error("not released")
	}
}

// TestFamiliesAreForgotten makes children of many parents. The intake keeps a shard
// for a family until the next collection, and none after it.
func TestFamiliesAreForgotten(t *testing.T) {
	parents, children := newPool(0), newPool(0)
	const n = 500
	func() {
		kept := make([]batch.Ref, 0, 2*n)
		for range n {
			var r, child batch.Ref
			testcall.Must(t, parents.own(&r))
			f := r.Sentinel().Batch.Family(r.Index)
			children.alive.Add(1)
			if _, err := children.in.Own(&child, f, 1, 16, nil); err != nil {
				t.Fatal(err)
			}
			kept = append(kept, r, child)
		}
		s := children.in.last.Load()
		collectAtMost(t, 4, "the shards", func() bool { return len(children.in.shards()) == 1 })
		if len(children.in.Batches()) != n {
			t.Errorf("%d batches of children", len(children.in.Batches()))
		}
		if children.in.families != nil || children.in.last.Load() != nil {
			t.Error("the intake keeps a map that is as large as it ever was, or a shard")
		}
		// A child that comes later finds its family again, also where the shard that had it was found before.
		children.in.last.Store(s)
		parent, child := kept[2*n-2], kept[2*n-1]
		f := parent.Sentinel().Batch.Family(parent.Index)
		children.alive.Add(1)
		var late batch.Ref
		if _, err := children.in.Own(&late, f, 1, 16, nil); err != nil {
			t.Fatal(err)
		}
		if f != s.family || children.in.families[f] == nil {
			t.Error("the intake does not know the shard of a child")
		}
		parent.Sentinel().Close(parent.Index)
		child.Sentinel().Close(child.Index)
		if parents.alive.Load() != n {
			t.Error("a parent was released before its last child")
		}
		late.Sentinel().Close(late.Index)
		if parents.alive.Load() != n-1 {
			t.Error("a parent was not released after its last child")
		}
		runtime.KeepAlive(&kept)
	}()
	// A worker takes a batch off its list after it has released the resources.
	collectAtMost(t, 8, "parents, children and their batches", func() bool {
		return parents.alive.Load() == 0 && children.alive.Load() == 0 &&
			len(children.in.Batches()) == 0 && len(parents.in.Batches()) == 0
	})
}

// TestNarrowed has the window of the P narrowed: by a Resize on another P, and by two requests to seal the
// batch. The next owner takes the slow path. A request does not close the window that a later one is about.
func TestNarrowed(t *testing.T) {
	if !window.Possible {
		return
	}
	setProcs(t, 1)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would carry requests out
	p := newPool(0)
	defer p.in.End()
	var r batch.Ref
	own := func() *shard {
		t.Helper()
		if s, _ := p.in.Put(1, 16); s != nil {
			t.Error("an owner was made through a window that is narrowed")
		}
		testcall.Must(t, p.own(&r))
		return r.Sentinel().Batch.Home.(*shard)
	}
	s := own()
	s.window.Place++ // the goroutine is elsewhere
	Resize(r.Sentinel().Batch, r.Index, 100)
	s.window.Place--
	var requests [2]sealRequest
	for i := range requests {
		own()
		s.mu.Lock()
		s.requestSeal()
		requests[i] = sealRequest{s, s.requested}
		s.mu.Unlock()
	}
	if requests[0].carryOut(); !s.window.Opened() {
		t.Error("a request that is over has closed the window")
	}
	if requests[1].carryOut(); s.window.Opened() {
		t.Error("a request has not closed the window")
	}
}

// TestFoldForgets asks for a seal, and has no end of a sweep reported. The request, which
// keeps the pool, is not kept beyond the collection.
func TestFoldForgets(t *testing.T) {
	p := newPool(0)
	defer p.in.End()
	for window.Possible {
		testcall.Must(t, p.own(new(batch.Ref)))
		s := p.in.owning.lock()
		s.unlock() // opens the window
		s.mu.Lock()
		if !s.window.Opened() {
			s.mu.Unlock()
			continue // the goroutine has moved to another P
		}
		s.requestSeal()
		a := sealRequest{s, s.requested}
		s.mu.Unlock()
		percpu.Wait()
		a.carryOut()
		narrowed.mu.Lock()
		_, kept := narrowed.all[a]
		narrowed.mu.Unlock()
		if kept {
			t.Error("the request is kept")
		}
		return
	}
}
