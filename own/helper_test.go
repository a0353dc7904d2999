package own

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/worker"
)

// passed is the time that workers take as passed, beyond that of the clock.
var passed atomic.Int64

func init() {
	worker.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	warnedOfGo.Store(true) // the cells of a world are in the Go heap
}

// pass has a release function take long.
func pass(d time.Duration) { passed.Add(int64(d)) }

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
	held     weak.Pointer[held] // the state of its own; zero if none
}

// A held is the state of a cell.
type held struct{ cell *cell }

// hold returns a state of its own for a resource that has no owner yet.
func (c *cell) hold() *held {
	h := &held{c}
	c.held = weak.Make(h)
	return h
}

// newWorld returns a world that can have n resources at all, and looks in the
// end whether anything was wrong. The states of what is destroyed must be gone.
func newWorld(t testing.TB, n int) *world {
	w := &world{cells: make([]cell, n)}
	t.Cleanup(func() {
		flush(t)
		w.mustDropStates(t)
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, s := range w.wrong {
			t.Error(s)
		}
	})
	return w
}

// mustDropStates looks for states of resources that were destroyed.
func (w *world) mustDropStates(t testing.TB) {
	t.Helper()
	var dead []*cell
	for i := range w.cells {
		if c := &w.cells[i]; !c.alive() && c.held.Value() != nil {
			dead = append(dead, c)
		}
	}
	if len(dead) == 0 {
		return
	}
	// A release may not have returned yet.
	wait(t, "the states of what was destroyed are dropped", func() bool {
		runtime.GC()
		return !slices.ContainsFunc(dead, func(c *cell) bool { return c.held.Value() != nil })
	})
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
func (w *world) release(state any, resources []uintptr) error {
	w.calls.Add(1)
	mine, _ := state.(*held)
	cells := make([]*cell, 0, 16)
	for _, r := range resources {
		c := w.at(r)
		if c == nil || int64(w.number(c)) >= w.next.Load() {
			w.complain("the release function got %#x, which is no resource", r)
			continue
		}
		if weak.Make(mine) != c.held || mine != nil && len(resources) != 1 {
			w.complain("resource %d was released with %d others and the state %v, want %v", w.number(c), len(resources)-1, state, c.held.Value())
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

// An object owns any pointer.
type object = Handle[unsafe.Pointer]

// A thing is an owner's type, as a binding has it.
type thing struct {
	object
	cell *cell // stands for nothing that a binding would have
}

// own makes a resource and a thing that owns it.
func (w *world) own(t testing.TB, p *Pool, size int) *thing {
	t.Helper()
	m := &thing{cell: w.create(size)}
	testcall.Must(t, m.Own(p, m.cell.pointer(), size))
	return m
}

// ownSome makes n resources and things that own them.
func (w *world) ownSome(t testing.TB, p *Pool, n, size int) (things []*thing) {
	t.Helper()
	for range n {
		things = append(things, w.own(t, p, size))
	}
	return things
}

// forget makes n things that nobody refers to.
func (w *world) forget(t testing.TB, p *Pool, n, size int) {
	t.Helper()
	testcall.Aside(func() {
		for range n {
			w.own(t, p, size)
		}
	})
}

// ownWith is own for one with a state of its own, which depends on another if that is not
// nil.
func (w *world) ownWith(t testing.TB, p *Pool, parent *thing, size int) *thing {
	t.Helper()
	m, over := new(thing), Owner{}
	if parent == nil {
		m.cell = w.create(size)
	} else {
		m.cell, over = w.createUnder(parent.cell, size), parent.Owner()
	}
	testcall.Must(t, m.OwnWith(p, m.cell.pointer(), With{Size: size, Parent: over, State: m.cell.hold()}))
	return m
}

// ownUnder is own for one that depends on another.
func (w *world) ownUnder(t testing.TB, p *Pool, parent *thing, size int) *thing {
	t.Helper()
	m := &thing{cell: w.createUnder(parent.cell, size)}
	testcall.Must(t, m.OwnWith(p, m.cell.pointer(), With{Size: size, Parent: parent.Owner()}))
	return m
}

// flush waits until nothing is queued or being released.
func flush(t testing.TB) {
	t.Helper()
	if err := Flush(patient(t)); err != nil {
		t.Fatalf("Flush: %v; %+v", err, ReadReleases())
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
	mustEnd(t)
}

// cleanups collects, and waits until the cleanups and finalizers of that collection have run.
func cleanups(t testing.TB) {
	t.Helper()
	runtime.GC()
	mustRun(t)
}

// mustRun waits until the cleanups and finalizers have run that the runtime has queued. What
// waits for a collection is called by the first of them, and may be under way in a finalizer when
// all cleanups have run: see gcwatch.Next.
func mustRun(t testing.TB) {
	t.Helper()
	if procs := runtime.GOMAXPROCS(0); procs != lost.procs {
		lost.procs, lost.cleanups = procs, 0
	}
	before, since := 0, time.Now()
	wait(t, "the cleanups and finalizers have run", func() bool {
		left := testwait.Queued()
		if left != before {
			before, since = left, time.Now()
		}
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
	cleanups int
}

// collect collects until done reports true.
func collect(t testing.TB, what string, done func() bool) {
	t.Helper()
	collectAtMost(t, 1000, what, done)
}

// collectAtMost is collect with a bound on the number of collections.
func collectAtMost(t testing.TB, n int, what string, done func() bool) {
	t.Helper()
	for range n {
		if done() {
			return
		}
		gc(t)
	}
	if !done() {
		t.Fatalf("not collected: %s; %+v", what, ReadReleases())
	}
}

// few collections are enough for dropped owners: one seals their batch, the next
// finds it, and owners that these refer to may take as many again.
const few = 8

// wait waits until done reports true.
func wait(t testing.TB, what string, done func() bool) {
	t.Helper()
	ok := false
	defer func() {
		if !ok {
			t.Logf("%+v", ReadReleases())
		}
	}()
	testwait.Until(t, what, done)
	ok = true
}

// mustEnd waits until no worker is left.
func mustEnd(t testing.TB) {
	t.Helper()
	wait(t, "the workers have ended", func() bool { return ReadReleases() == ReleaseStats{} })
}

// mustMisuse runs f, which has to panic with a MisuseError of op that says each
// of the words.
func mustMisuse(t testing.TB, op string, f func(), words ...string) {
	t.Helper()
	v := testcall.Catch(f)
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

// patient returns a context for what has to end. It is done shortly before the deadline of
// the tests.
func patient(t testing.TB) context.Context {
	if gcwatch.InBubble() {
		return context.Background()
	}
	at, limited := testwait.Deadline(t)
	if !limited {
		return context.Background()
	}
	ctx, cancel := context.WithDeadline(context.Background(), at)
	t.Cleanup(cancel) // a timer would be kept until then
	return ctx
}

// An asker counts how often a goroutine begins to wait for it. The functions of this package
// that wait do so before they wait for a change.
type asker struct {
	context.Context
	cancel func()
	most   int64
	asked  atomic.Int64
	then   func()
}

// doneAfter returns a context that is done when a goroutine has begun to wait for it n times.
// Before that, it has a CloseWait that waits look again.
func doneAfter(n int64) *asker {
	c := &asker{most: n}
	c.Context, c.cancel = context.WithCancel(context.Background())
	if n == 0 {
		c.cancel()
	}
	return c
}

// whenWaiting returns a context that is never done. It has f called, on a goroutine of its
// own, when a goroutine has looked for what it waits for, and begins to wait. What f causes has
// to wake that.
func whenWaiting(f func()) *asker {
	return &asker{Context: context.Background(), then: f}
}

// Done counts.
func (c *asker) Done() <-chan struct{} {
	switch n := c.asked.Add(1); {
	case c.then == nil && n >= c.most:
		c.cancel()
	case c.then == nil:
		batch.Changed.Ring()
	case n == 1:
		go c.then()
	}
	return c.Context.Done()
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
	if err := p.CloseWait(patient(t)); err != nil {
		t.Errorf("CloseWait: %v", err)
	}
}

// destroyError destroys a pool that has something left.
func destroyError(t testing.TB, p *Pool, ctx context.Context) *CloseError {
	t.Helper()
	err := p.CloseWait(ctx)
	var e *CloseError
	if !errors.As(err, &e) {
		t.Fatalf("CloseWait: %v, want a CloseError", err)
	}
	return e
}

// times is n with -own.long, and else a sixth of it, or a tenth where all is slow.
func times(n int) int {
	switch {
	case *long:
		return n
	case race.Build:
		return n / 10
	}
	return n / 6
}

// setProcs is runtime.GOMAXPROCS for the time of a test.
func setProcs(t testing.TB, n int) {
	old := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(old) })
}

// useNumber and number are Use and Resource of a number, also in a pool of pointers.
func (o *owner) useNumber(f func(uintptr)) {
	t := o.use("Use")
	defer unuse(t, o.ref.Index)
	f(t.Word(o.ref.Index))
}

func (o *owner) number() uintptr {
	t := o.open()
	if t == nil {
		return 0
	}
	return t.Word(o.ref.Index)
}

// drainPool is Drain of the pool's Queue. It returns 0 in a pool without one.
func drainPool(p *Pool, most int) int {
	if p.queue == nil {
		return 0
	}
	return p.queue.Drain(most)
}

// queuedIf returns the Run of a Queue, or the zero one.
func queuedIf(queued bool) Run {
	if queued {
		return new(Queue).Run()
	}
	return Run{}
}

// released makes a release function of f.
func released(f func([]uintptr)) func(any, []uintptr) error {
	return func(_ any, resources []uintptr) error {
		f(resources)
		return nil
	}
}
