package itest

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own"
)

// An ownModel uses pools and their owners, from one goroutine but for what is
// inside of Use. It knows of each resource what has to have become of it.
type ownModel struct {
	test  *testing.T
	pools []*ownPool // the first few are in use, the rest is destroyed
	all   []*owned   // by resource

	mu  sync.Mutex
	log []uintptr // released and not looked at yet
}

const ownPools = 4 // that are in use

type ownPool struct {
	*own.Pool
	queue     *own.Queue // nil if Close releases
	size      int        // of what is made ahead, and of what has size 0
	destroyed bool
}

// An owned is a resource.
type owned struct {
	o      *own.Number[uintptr] // nil when it is forgotten
	pool   *ownPool
	parent *owned
	size   int

	open      bool
	forgotten bool // it may be released, once its children are
	stock     bool // it was made ahead, and may be released
	disowned  bool
	released  bool
	pending   int // children that are not released
	uses      []*ownUse
}

// An ownUse is a Use that is running, on a goroutine of its own.
type ownUse struct{ leave, left chan struct{} }

// TestOwnModel is the model of package own. Go's collector runs only when the
// model says so.
func TestOwnModel(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	test := t
	rapid.Check(t, func(t *rapid.T) {
		m := &ownModel{test: test}
		for range ownPools {
			m.pools = append(m.pools, m.newPool(t))
		}
		defer m.leaveAll()
		t.Repeat(rapid.StateMachineActions(m))
		m.finish(t)
	})
}

func (m *ownModel) newPool(t *rapid.T) *ownPool {
	o := own.Options{
		Name:    "modelled",
		Release: m.release,
		Batch:   rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(t, "batch"),
		Pinned:  rapid.SampledFrom([]int{0, 100, 1000}).Draw(t, "pinned"),
		Size:    rapid.IntRange(1, 200).Draw(t, "size"),
		Trace:   rapid.IntRange(0, 3).Draw(t, "trace") == 0,
	}
	p := &ownPool{size: o.Size}
	if rapid.Bool().Draw(t, "drain") {
		p.queue = new(own.Queue)
		o.Run = p.queue.Run()
	}
	o.Numbers = true
	o.Construct = func(r []uintptr) (int, error) {
		for i := range r {
			r[i] = m.add(&owned{pool: p, size: o.Size, stock: true})
		}
		return len(r), nil
	}
	p.Pool = own.NewPool(o)
	return p
}

// release is the pools' release function. It runs on any goroutine.
func (m *ownModel) release(_ any, r []uintptr) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, r...)
	return nil
}

// add enters a resource, and returns its number.
func (m *ownModel) add(r *owned) uintptr {
	m.all = append(m.all, r)
	return uintptr(len(m.all) - 1)
}

// draw draws one of those that ok accepts. The action is skipped if there is
// none.
func (m *ownModel) draw(t *rapid.T, what string, ok func(r *owned) bool) *owned {
	var list []*owned
	for _, r := range m.all {
		if ok(r) {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		t.Skip("there is none to " + what)
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(t, what)]
}

func (r *owned) held() bool { return r.o != nil }

func (m *ownModel) drawPool(t *rapid.T) *ownPool {
	return m.pools[rapid.IntRange(0, ownPools-1).Draw(t, "pool")]
}

// own owns a new resource.
func (m *ownModel) own(t *rapid.T, parent *owned) {
	p := m.drawPool(t)
	r := &owned{o: new(own.Number[uintptr]), pool: p, parent: parent, open: true}
	size := rapid.SampledFrom([]int{0, 1, 16, 99, 100, 400, 1000, 70_000}).Draw(t, "size")
	if r.size = size; size == 0 {
		r.size = p.size
	}
	id := m.add(r)
	var err, want error
	if parent == nil {
		err = r.o.Own(p.Pool, id, size)
	} else {
		if err = r.o.OwnWith(p.Pool, id, own.With{Size: size, Parent: parent.o.Owner()}); !parent.open {
			want = own.ErrClosed
		}
	}
	if err != want {
		t.Fatalf("Own: %v, want %v", err, want)
	}
	if err != nil {
		r.open, r.disowned = false, true // the caller's
	} else if parent != nil {
		parent.pending++
	}
}

func (m *ownModel) Own(t *rapid.T) { m.own(t, nil) }

func (m *ownModel) OwnWith(t *rapid.T) { m.own(t, m.draw(t, "parent", (*owned).held)) }

func (m *ownModel) Make(t *rapid.T) {
	p := m.drawPool(t)
	o := new(own.Number[uintptr])
	if err := o.Make(p.Pool); err != nil {
		t.Fatal(err)
	}
	id, _ := o.Value()
	r := m.all[id]
	if r.pool != p || !r.stock {
		t.Fatalf("made %d: %+v", id, r)
	}
	r.o, r.stock, r.open = o, false, true
}

func (m *ownModel) Close(t *rapid.T) {
	r := m.draw(t, "owner", (*owned).held)
	o := *r.o
	if rapid.Bool().Draw(t, "copy") {
		o.Close()
	} else {
		r.o.Close()
	}
	r.open = false
}

func (m *ownModel) Disown(t *rapid.T) {
	r := m.draw(t, "owner", (*owned).held)
	var want error
	switch {
	case !r.open:
		want = own.ErrClosed
	case len(r.uses) > 0:
		want = own.ErrInUse
	case r.pending > 0:
		want = own.ErrChildren
	}
	id, err := r.o.Disown()
	if err != want {
		t.Fatalf("Disown: %v, want %v", err, want)
	}
	if err != nil {
		return
	}
	if m.all[id] != r {
		t.Fatalf("disowned %d", id)
	}
	r.open, r.disowned = false, true
	if r.parent != nil {
		r.parent.pending--
	}
}

func (m *ownModel) Resize(t *rapid.T) {
	r := m.draw(t, "owner", (*owned).held)
	size := rapid.IntRange(0, 2000).Draw(t, "size")
	r.o.Resize(size)
	if r.open {
		r.size = size
	}
}

// Use begins a Use.
func (m *ownModel) Use(t *rapid.T) {
	r := m.draw(t, "owner", (*owned).held)
	if !r.open {
		mustMisuse(t, "Use of a closed owner", func() { r.o.Use(func(uintptr) {}) })
		return
	}
	u := &ownUse{make(chan struct{}), make(chan struct{})}
	entered := make(chan uintptr)
	go func(o *own.Number[uintptr]) {
		defer close(u.left)
		o.Use(func(id uintptr) {
			entered <- id
			<-u.leave
		})
	}(r.o)
	if id := <-entered; m.all[id] != r {
		t.Fatalf("used %d", id)
	}
	r.uses = append(r.uses, u)
}

// Leave ends one.
func (m *ownModel) Leave(t *rapid.T) {
	r := m.draw(t, "use", func(r *owned) bool { return len(r.uses) > 0 })
	r.leave()
}

func (r *owned) leave() {
	u := r.uses[len(r.uses)-1]
	r.uses = r.uses[:len(r.uses)-1]
	close(u.leave)
	<-u.left
}

func (m *ownModel) leaveAll() {
	for _, r := range m.all {
		for len(r.uses) > 0 {
			r.leave()
		}
	}
}

// Forget drops an owner, which the collector may find from then on.
func (m *ownModel) Forget(t *rapid.T) {
	r := m.draw(t, "owner", func(r *owned) bool { return r.held() && len(r.uses) == 0 })
	r.o = nil
	r.forgotten = r.open
}

// Collect runs the collector, now and then.
func (m *ownModel) Collect(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "collect") != 0 {
		t.Skip("not now")
	}
	m.collect()
}

// collect runs the collector once, and waits for what follows from that.
func (m *ownModel) collect() {
	testwait.Collect(m.test)
	m.settle()
}

// settle waits until nothing is released any more.
func (m *ownModel) settle() {
	testwait.Until(m.test, "the releases have ended", func() bool {
		return !gcwatch.Walking() && own.ReadReleases() == own.ReleaseStats{}
	})
}

// Drain is Drain of the queue. It returns 0 if there is none.
func (p *ownPool) Drain(max int) int {
	if p.queue == nil {
		return 0
	}
	return p.queue.Drain(max)
}

func (m *ownModel) Drain(t *rapid.T) {
	p := m.pools[rapid.IntRange(0, len(m.pools)-1).Draw(t, "pool")]
	max := rapid.IntRange(-1, 5).Draw(t, "max")
	before := p.Stats().Queued
	n := p.Drain(max)
	left := p.Stats().Queued
	switch {
	case max > 0 && n > max, n < 0, n > 0 && p.queue == nil:
		t.Fatalf("Drain(%d): %d", max, n)
	case max <= 0 && left != 0:
		t.Fatalf("%d are queued after Drain(%d), %d before", left, max, before)
	}
}

// Destroy destroys a pool and puts another in its place.
func (m *ownModel) Destroy(t *rapid.T) {
	i := rapid.IntRange(0, ownPools-1).Draw(t, "pool")
	p := m.pools[i]
	m.destroy(t, p)
	m.pools[i] = m.newPool(t)
	m.pools = append(m.pools, p)
}

func (m *ownModel) destroy(t *rapid.T, p *ownPool) {
	p.destroyed = true
	open, forgotten := 0, 0
	for _, r := range m.all {
		if r.pool != p {
			continue
		}
		if r.forgotten && !r.released {
			forgotten++
		} else if r.open {
			open++
		}
	}
	err := p.Pool.CloseWait(within(0))
	for _, r := range m.all {
		if r.pool == p {
			r.stock = r.stock && p.queue != nil // may be queued, and is not counted here
			m.closeAll(r)
		}
	}
	m.look(t)
	var want own.CloseError
	for _, r := range m.all {
		if r.pool != p || r.gone() {
			continue
		}
		switch {
		case len(r.uses) > 0:
			want.InUse++
		case r.pending > 0:
			want.Waiting++
		}
	}
	var e own.CloseError
	if d := (*own.CloseError)(nil); errors.As(err, &d) {
		e = *d
	} else if err != nil {
		t.Fatal(err)
	}
	// The collector may have found what was forgotten, or not.
	if e.NeverClosed < int64(open) || e.NeverClosed > int64(open+forgotten) {
		t.Fatalf("never closed: %d, want %d to %d", e.NeverClosed, open, open+forgotten)
	}
	if forgotten == 0 && (e.InUse != want.InUse || e.Waiting != want.Waiting || int64(e.Queued) != p.Stats().Queued || e.Releasing != 0) {
		t.Fatalf("%+v, want %+v", e, want)
	}
	if err := new(own.Number[uintptr]).Own(p.Pool, 1, 1); err != own.ErrPoolClosed {
		t.Fatalf("Own after Destroy: %v", err)
	}
}

// closeAll is what Destroy does to a resource, and to all that depend on it.
func (m *ownModel) closeAll(r *owned) {
	if r.gone() || r.stock {
		return
	}
	r.open = false
	if r.pool.queue == nil {
		r.forgotten = false // it has to be released now
	}
	for _, c := range m.all {
		if c.parent == r {
			m.closeAll(c)
		}
	}
}

func (r *owned) gone() bool { return r.released || r.disowned }

// look applies what has been released.
func (m *ownModel) look(t *rapid.T) {
	m.mu.Lock()
	log := m.log
	m.log = nil
	m.mu.Unlock()
	for _, id := range log {
		r := m.all[id]
		switch {
		case r.gone():
			t.Fatalf("%d is released twice, or although disowned: %+v", id, r)
		case r.open && !r.forgotten:
			t.Fatalf("%d is released, and it is open: %+v", id, r)
		case len(r.uses) > 0:
			t.Fatalf("%d is released in use", id)
		case r.pending > 0:
			t.Fatalf("%d is released before %d of its children", id, r.pending)
		}
		r.released, r.open, r.forgotten, r.stock = true, false, false, false
		if r.parent != nil {
			r.parent.pending--
		}
	}
}

// Check compares everything with the pools' own counts. What the collector has found may be
// released between a look at the log and one at the counts, so Check looks again when nothing
// is released any more.
func (m *ownModel) Check(t *rapid.T) {
	if m.difference(t) == "" {
		return
	}
	m.settle()
	if difference := m.difference(t); difference != "" {
		t.Fatal(difference)
	}
}

// difference says where the counts of a pool differ from what the model knows, or "".
func (m *ownModel) difference(t *rapid.T) string {
	m.look(t)
	type sum struct {
		live, bytes, made, queued int64
		vague                     bool // the collector may have queued some
	}
	sums := map[*ownPool]*sum{}
	for _, p := range m.pools {
		sums[p] = &sum{}
	}
	for id, r := range m.all {
		if r.held() && r.o.Closed() != !r.open {
			t.Fatalf("%d is closed: %v; %+v", id, r.o.Closed(), r)
		}
		if r.gone() {
			continue
		}
		s := sums[r.pool]
		s.bytes += int64(r.size)
		if r.stock {
			s.made++
			s.vague = s.vague || r.pool.queue != nil
			continue
		}
		s.live++
		switch {
		case r.forgotten:
			s.vague = true
		case r.open || len(r.uses) > 0 || r.pending > 0:
		case r.pool.queue == nil:
			t.Fatalf("%d is not released: %+v", id, r)
		default:
			s.queued++
		}
	}
	for _, p := range m.pools {
		got, want := p.Stats(), sums[p]
		if got.Bytes != want.bytes || got.Live+got.Made != want.live+want.made || !want.vague && (got.Live != want.live || got.Queued != want.queued) || got.Queued < want.queued {
			return fmt.Sprintf("%+v, want %+v", got, *want)
		}
	}
	return ""
}

// finish ends everything, some of it with Close and the rest by forgetting.
func (m *ownModel) finish(t *rapid.T) {
	m.leaveAll()
	for _, r := range m.all {
		if r.held() && rapid.Bool().Draw(t, "close") {
			r.o.Close()
			r.open = false
		}
		r.forgotten = r.forgotten || r.open
		r.o = nil
	}
	left := func(r *owned) bool { return !r.gone() }
	for range 20 {
		m.collect()
		for _, p := range m.pools {
			p.Drain(0)
		}
		m.look(t)
		if !slices.ContainsFunc(m.all, left) {
			break
		}
	}
	m.Check(t)
	if i := slices.IndexFunc(m.all, left); i >= 0 {
		t.Fatalf("%d is never released: %+v", i, m.all[i])
	}
	for _, p := range m.pools[:ownPools] {
		if err := p.Pool.CloseWait(within(0)); err != nil {
			t.Fatal(err)
		}
	}
}

// mustMisuse fails unless f panics with a [cheap.MisuseError].
func mustMisuse(t *rapid.T, what string, f func()) {
	v := testcall.Catch(f)
	if _, ok := v.(*cheap.MisuseError); !ok {
		t.Fatalf("%s: %v", what, v)
	}
}
