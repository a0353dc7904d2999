package own

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/race"
)

// A world stands for the C side. Its resources are cells, and their addresses.
// It records the state of each, and every event that must not happen.
type world struct {
	cells []cell
	next  atomic.Int64 // cells in use
	bytes atomic.Int64 // of resources that have not been destroyed
	died  atomic.Int64 // resources that have been destroyed
	calls atomic.Int64 // of release

	// If set, it runs before the resources are destroyed.
	before func(cells []*cell)

	mu    sync.Mutex
	wrong []string
	order []int // the destroyed cells, in order, if keepOrder
	// Set before the first release.
	keepOrder bool
}

// A cell is a resource.
type cell struct {
	deaths   atomic.Int32
	users    atomic.Int32 // calls that need it undestroyed
	children atomic.Int32 // that must be destroyed before it
	parent   int32        // the number of another cell, -1 if none
	size     int64
}

// newWorld returns a world that can have n resources at all, and looks in the
// end whether anything was wrong.
func newWorld(t testing.TB, n int) *world {
	w := &world{cells: make([]cell, n)}
	t.Cleanup(func() {
		flush(t)
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, s := range w.wrong {
			t.Error(s)
		}
	})
	return w
}

// create makes a resource.
func (w *world) create(size int) *cell { return w.createUnder(nil, size) }

// createUnder makes a resource that depends on another one, or on none.
func (w *world) createUnder(parent *cell, size int) *cell {
	i := w.next.Add(1) - 1
	c := &w.cells[i]
	c.size, c.parent = int64(size), -1
	if parent != nil {
		c.parent = int32(w.number(parent))
		parent.children.Add(1)
	}
	w.bytes.Add(c.size)
	return c
}

func (c *cell) pointer() unsafe.Pointer { return unsafe.Pointer(c) }

func (c *cell) alive() bool { return c.deaths.Load() == 0 }

// number returns which of the cells it is.
func (w *world) number(c *cell) int {
	return int((uintptr(unsafe.Pointer(c)) - uintptr(unsafe.Pointer(&w.cells[0]))) / unsafe.Sizeof(cell{}))
}

// at returns the cell at an address, nil if there is none.
func (w *world) at(address uintptr) *cell {
	off := address - uintptr(unsafe.Pointer(&w.cells[0]))
	if i := off / unsafe.Sizeof(cell{}); off%unsafe.Sizeof(cell{}) == 0 && i < uintptr(len(w.cells)) {
		return &w.cells[i]
	}
	return nil
}

// release destroys resources; it is a pool's release function.
func (w *world) release(_ any, resources []uintptr) error {
	w.calls.Add(1)
	cells := make([]*cell, 0, 16)
	for _, r := range resources {
		c := w.at(r)
		if c == nil || int64(w.number(c)) >= w.next.Load() {
			w.complain("the release function got %#x, which is no resource", r)
			continue
		}
		cells = append(cells, c)
	}
	if len(resources) == 0 {
		w.complain("the release function was called for nothing")
	}
	if w.before != nil {
		w.before(cells)
	}
	for _, c := range cells {
		w.destroy(c)
	}
	return nil
}

func (w *world) destroy(c *cell) {
	n := c.deaths.Add(1)
	switch i := w.number(c); {
	case n != 1:
		w.complain("resource %d was destroyed for the %d. time", i, n)
		return
	case c.users.Load() != 0:
		w.complain("resource %d was destroyed while it was in use", i)
	case c.children.Load() > 0: // counted by createUnder only
		w.complain("resource %d was destroyed before %d of its children", i, c.children.Load())
	}
	if c.parent >= 0 {
		parent := &w.cells[c.parent]
		if !parent.alive() {
			w.complain("resource %d was destroyed after its parent", w.number(c))
		}
		parent.children.Add(-1)
	}
	if w.keepOrder {
		w.mu.Lock()
		w.order = append(w.order, w.number(c))
		w.mu.Unlock()
	}
	w.bytes.Add(-c.size)
	w.died.Add(1)
}

// complain records an error, unless there are many already.
func (w *world) complain(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wrong) < 10 {
		w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
	}
}

// alive is how many resources there are.
func (w *world) alive() int64 { return w.next.Load() - w.died.Load() }

// pool returns a pool of such resources.
func (w *world) pool(o Options) *Pool {
	o.Release = w.release
	return NewPool(o)
}

// A thing is an owner's type, as a binding has it.
type thing struct {
	Owner
	cell *cell // stands for nothing that a binding would have
}

// own makes a resource and a thing that owns it.
func (w *world) own(t testing.TB, p *Pool, size int) *thing {
	t.Helper()
	m := &thing{cell: w.create(size)}
	if err := p.Own(&m.Owner, m.cell.pointer(), size); err != nil {
		t.Fatal(err)
	}
	return m
}

// ownUnder is own for one that depends on another.
func (w *world) ownUnder(t testing.TB, p *Pool, parent *thing, size int) *thing {
	t.Helper()
	m := &thing{cell: w.createUnder(parent.cell, size)}
	if err := p.OwnUnder(&m.Owner, &parent.Owner, m.cell.pointer(), size); err != nil {
		t.Fatal(err)
	}
	return m
}

// aside runs f on a goroutine of its own, so that no reference stays behind in
// this one's registers or stack.
func aside(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// longest is how long a test waits for an event that has to come.
const longest = 20 * time.Second

// patience is how long flush waits.
var patience = longest

// flush waits until nothing is queued or being released.
func flush(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := Flush(ctx); err != nil {
		patience = longest / 1000 // what one test has left behind need not hold up all others
		t.Fatalf("Flush: %v; %+v", err, Releases())
	}
}

// gc collects, and waits until the cleanups of that collection have run and the
// releases that they asked for.
func gc(t testing.TB) {
	t.Helper()
	cleanups(t)
	flush(t)
}

// settle is gc for tests whose releases wait for Drain.
func settle(t testing.TB) {
	t.Helper()
	cleanups(t)
	wait(t, "the workers to end", func() bool { return Releases() == ReleaseStats{} })
}

// cleanups collects, and waits until the cleanups of that collection have run.
func cleanups(t testing.TB) {
	t.Helper()
	runtime.GC()
	if procs := runtime.GOMAXPROCS(0); procs != lost.procs {
		lost.procs, lost.cleanups = procs, 0
	}
	counts := []metrics.Sample{{Name: "/gc/cleanups/executed:cleanups"}, {Name: "/gc/cleanups/queued:cleanups"}}
	executed, since := uint64(0), time.Now()
	wait(t, "the cleanups to run", func() bool {
		metrics.Read(counts)
		if n := counts[0].Value.Uint64(); n != executed {
			executed, since = n, time.Now()
		}
		left := counts[1].Value.Uint64() - executed
		if lost.procs < runtime.NumCPU() && time.Since(since) > time.Second {
			lost.cleanups = left
		}
		return left <= lost.cleanups
	})
}

// lost are the cleanups that Ps keep that do not run. The test command has them with
// -cpu=1, for one: it lowers GOMAXPROCS.
var lost struct {
	procs    int
	cleanups uint64
}

// collect collects until done reports true.
func collect(t testing.TB, what string, done func() bool) {
	t.Helper()
	collectAtMost(t, 1000, what, done)
}

// collectAtMost is collect with a bound on the number of collections.
func collectAtMost(t testing.TB, n int, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(longest)
	for range n {
		if done() {
			return
		}
		gc(t)
		if time.Now().After(deadline) {
			break
		}
	}
	if !done() {
		t.Fatalf("not collected: %s; %+v", what, Releases())
	}
}

// few collections are enough for dropped owners: one seals their batch, the next
// finds it, and owners that these refer to may take as many again.
const few = 8

// wait waits until done reports true.
func wait(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(longest); !done(); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %s; %+v", what, Releases())
		}
	}
}

// catch returns what f panics with.
func catch(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// mustMisuse runs f, which has to panic with a MisuseError of op that says each
// of the words.
func mustMisuse(t testing.TB, op string, f func(), words ...string) {
	t.Helper()
	v := catch(f)
	e, ok := v.(*cheap.MisuseError)
	if !ok {
		t.Errorf("%s: panic value %v, want a MisuseError", op, v)
		return
	}
	if e.Op != op || e.Error() != "cheap: "+op+": "+e.Reason {
		t.Errorf("%q, want %s in it", e, op)
	}
	for _, w := range words {
		if !strings.Contains(e.Reason, w) {
			t.Errorf("%s: %q does not say %q", op, e.Reason, w)
		}
	}
}

// mustStats compares all of a pool's counters but Collected and OldestQueued.
func mustStats(t testing.TB, p *Pool, want Stats) {
	t.Helper()
	got := p.Stats()
	got.Collected, got.OldestQueued = want.Collected, want.OldestQueued
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// waiting returns a context that is done after d.
func waiting(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// mustDestroy destroys a pool that has nothing left.
func mustDestroy(t testing.TB, p *Pool) {
	t.Helper()
	if err := p.Destroy(waiting(longest)); err != nil {
		t.Errorf("Destroy: %v", err)
	}
}

// destroyError destroys a pool that has something left.
func destroyError(t testing.TB, p *Pool, wait time.Duration) *DestroyError {
	t.Helper()
	err := p.Destroy(waiting(wait))
	var e *DestroyError
	if !errors.As(err, &e) {
		t.Fatalf("Destroy: %v, want a DestroyError", err)
	}
	return e
}

// times is n, or a tenth of it where all is slow.
func times(n int) int {
	if race.Build {
		return n / 10
	}
	return n
}

// setProcs is runtime.GOMAXPROCS for the time of a test.
func setProcs(t testing.TB, n int) {
	old := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(old) })
}

// useNumber and number are Use and Resource of a number, also in a pool of pointers.
func (o *Owner) useNumber(f func(uintptr)) {
	t := o.use("Use")
	defer unuse(t, o.ref.Index)
	f(t.Word(o.ref.Index))
}

func (o *Owner) number() uintptr {
	t := o.open()
	if t == nil {
		return 0
	}
	return t.Word(o.ref.Index)
}

// released makes a release function of f.
func released(f func([]uintptr)) func(any, []uintptr) error {
	return func(_ any, resources []uintptr) error {
		f(resources)
		return nil
	}
}
