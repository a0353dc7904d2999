package batch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A resource is what the model knows of an entry.
type resource struct {
	b      *batch
	l      *Batch
	i      uint32
	parent *resource
	state  *resource // itself, if the state is its own, or nil

	open     bool
	disowned bool
	released bool
	uses     int
	awaited  <-chan struct{} // of Await, if Close has left the release to others
	children int             // that are not released
}

// A batch is what the model knows of a batch.
type batch struct {
	l         *Batch
	sentinels []*Sentinel
	entries   []*resource
	family    *resource // the parent of all entries, or nil
	sealed    bool
	split     bool
	dead      map[uint32]bool // sentinels whose owners are dropped
	steps     []*Claim
}

// sentinel returns the sentinel of an entry.
func (b *batch) sentinel(i uint32) *Sentinel { return b.sentinels[i>>b.l.Share] }

// dropped reports whether the owner of an entry is dropped.
func (b *batch) dropped(i uint32) bool { return b.dead[i>>b.l.Share] }

// A model is a simple reference for batches of two kinds: resources of one are
// released when they are closed, those of the other by drain.
type model struct {
	t         *testing.T
	direct    Spec
	queue     Spec
	list      List
	batches   []*batch
	resources []*resource // the number of a resource is its index and 1
	jobs      []*resource // of queue
	dead      []uint32    // jobs that the releasers got
	log       []string
}

// direct and queued are the releasers of the two kinds.
type (
	direct struct{ m *model }
	queued struct{ m *model }
)

func (d direct) Closed(l *Batch, i uint32) Outcome { return l.Release(i) }
func (d direct) Dead(j Job)                        { d.m.dead = append(d.m.dead, j.Entry) }

func (q queued) Closed(l *Batch, i uint32) Outcome {
	r := q.m.of(l.Word(i))
	q.m.jobs = append(q.m.jobs, r)
	return Outcome{}
}
func (q queued) Dead(j Job) { q.m.dead = append(q.m.dead, j.Entry) }

func newModel(t *testing.T) *model {
	m := &model{t: t}
	for _, k := range []*Spec{&m.direct, &m.queue} {
		k.Release = m.release
	}
	m.direct.Name, m.direct.Releaser = "direct", direct{m}
	m.queue.Name, m.queue.Releaser, m.queue.Queues = "queue", queued{m}, true
	return m
}

func (m *model) of(number uintptr) *resource { return m.resources[number-1] }

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	for _, s := range m.log[max(0, len(m.log)-30):] {
		m.t.Log(s)
	}
	m.t.Fatalf(format, args...)
}

// release is the release function of both kinds.
func (m *model) release(state any, numbers []uintptr) error {
	mine, _ := state.(*resource)
	for _, n := range numbers {
		r := m.of(n)
		switch {
		case mine != r.state, mine != nil && len(numbers) != 1:
			m.fail("%d is released with %d others and the state %+v, want %+v", n, len(numbers)-1, mine, r.state)
		case r.released:
			m.fail("%d is released again", n)
		case r.disowned:
			m.fail("%d is released and was disowned", n)
		case r.open:
			m.fail("%d is released and is open", n)
		case r.uses > 0:
			m.fail("%d is released in use", n)
		case r.children > 0:
			m.fail("%d is released before %d children", n, r.children)
		}
		r.released = true
		if r.parent != nil {
			r.parent.children--
		}
	}
	return nil
}

// due reports whether an entry has to be released by now, or is with its queue.
func (m *model) due(r *resource) bool {
	return !r.open && !r.disowned && r.uses == 0 && r.children == 0
}

// begin opens a batch. All entries of it have the same parent, or none.
func (m *model) begin(rnd *rand.Rand, parent *resource) *batch {
	k := &m.direct
	if rnd.IntN(3) == 0 {
		k = &m.queue
	}
	b := &batch{family: parent}
	var f *Family
	if parent != nil {
		if f = parent.l.Family(parent.i); (f != nil) != parent.open {
			m.fail("Family of %v: %v", parent, f)
		}
		if f == nil {
			return nil
		}
	}
	n := uint32(1 + rnd.IntN(8))
	if rnd.IntN(20) == 0 {
		n = 1 << pageShift * 2
	}
	b.l = New(k, nil, f, n, uint8(1+rnd.IntN(3)))
	b.l.Probe = true
	b.sentinels, b.dead = b.l.NewSentinels(nil, nil), map[uint32]bool{}
	b.l.Link(&m.list)
	m.batches = append(m.batches, b)
	return b
}

// put adds an entry.
func (m *model) put(rnd *rand.Rand, b *batch) {
	if b.sealed || len(b.entries) == int(b.l.Size()) {
		return
	}
	if b.family != nil {
		// A Use of a closed parent puts its release off, so a child may still join.
		joined, want := b.l.kin.family.Join(), b.family.open || b.family.uses > 0
		if joined != want {
			m.fail("Join: %v, want %v", joined, want)
		} else if !joined {
			return
		}
		b.family.children++
	}
	r := &resource{b: b, l: b.l, i: uint32(len(b.entries)), parent: b.family, open: true}
	m.resources = append(m.resources, r)
	flags := uint64(0)
	if rnd.IntN(4) == 0 {
		r.state = r
		flags = b.l.Give(r.i, r)
	}
	b.l.Put(int(r.i), uintptr(len(m.resources)), 10, flags)
	b.entries = append(b.entries, r)
}

// step does one operation at random.
func (m *model) step(rnd *rand.Rand) {
	pick := func() (*batch, *resource) {
		b := m.batches[rnd.IntN(len(m.batches))]
		if len(b.entries) == 0 {
			return b, nil
		}
		r := b.entries[rnd.IntN(len(b.entries))]
		if b.dropped(r.i) {
			return b, nil
		}
		return b, r
	}
	if len(m.batches) == 0 {
		m.begin(rnd, nil)
		return
	}
	b, r := pick()
	op := rnd.IntN(13)
	m.log = append(m.log, fmt.Sprintf("%d on %p, %+v", op, b.l, r))
	switch op {
	case 0:
		m.begin(rnd, nil)
	case 1:
		if r != nil {
			m.begin(rnd, r)
		}
	case 2, 3, 4:
		m.put(rnd, b)
	case 5:
		if r == nil {
			return
		}
		r.open = false
		if later, _ := b.sentinel(r.i).Close(r.i); later {
			r.awaited = b.sentinel(r.i).Await(r.i)
		}
	case 6:
		if r == nil || !r.open {
			return
		}
		b.sentinel(r.i).Enter(r.i, "Use")
		r.uses++
	case 7:
		if r == nil || r.uses == 0 {
			return
		}
		r.uses--
		b.sentinel(r.i).Exit(r.i)
	case 8:
		if r == nil {
			return
		}
		var want error
		switch {
		case !r.open:
			want = ErrClosed
		case r.uses > 0:
			want = ErrInUse
		case r.children > 0:
			want = ErrChildren
		default:
			r.open, r.disowned = false, true
			if r.parent != nil {
				r.parent.children--
			}
		}
		if err := b.l.Disown(r.i); err != want {
			m.fail("Disown: %v, want %v", err, want)
		}
	case 9:
		m.seal(b)
	case 10:
		m.drop(b, uint32(rnd.IntN(len(b.sentinels))))
	case 11:
		m.outlive(b)
	case 12:
		m.work(rnd)
	}
}

func (m *model) seal(b *batch) {
	if b.sealed {
		return
	}
	b.sealed = true
	gone := 0
	for _, r := range b.entries {
		if r.released || r.disowned {
			gone++
		}
	}
	if got, _ := b.l.Seal(b.sentinels[0], uint32(len(b.entries)), int64(10*len(b.entries))); got != uint32(gone) {
		m.fail("Seal: %d are gone, want %d", got, gone)
	}
}

// outlive has a batch outlive collections, and be split.
func (m *model) outlive(b *batch) {
	if !b.sealed || b.dead[0] {
		return
	}
	gone := true
	for _, r := range b.entries {
		gone = gone && (r.released || r.disowned)
	}
	again := b.l.outlived(b.sentinels[0])
	if want := !b.split && len(b.sentinels) > 1 && !gone; again != want {
		m.fail("outlived: %v, want %v", again, want)
	} else if want {
		b.split = true
	}
	if (b.l.parts != nil) != b.split {
		m.fail("split: %v, want %v", !b.split, b.split)
	}
}

// drop has the collector find a batch, or if it is split, the sentinel j, if none of the
// owners is in Use.
func (m *model) drop(b *batch, j uint32) {
	if !b.sealed || b.dead[j] {
		return
	}
	var entries []*resource
	for _, r := range b.entries {
		if !b.split || r.i>>b.l.Share == j {
			entries = append(entries, r)
		}
	}
	if b.split && len(entries) == 0 {
		return // nobody has registered it
	}
	if slices.ContainsFunc(entries, func(r *resource) bool { return r.uses > 0 }) {
		return
	}
	job := Lost | j
	if !b.split {
		job = All
		for j := range b.sentinels {
			b.dead[uint32(j)] = true
		}
	}
	b.dead[j] = true
	n := len(m.dead)
	b.l.lost(j)
	left := slices.ContainsFunc(entries, func(r *resource) bool {
		return r.open || !b.split && !r.released && !r.disowned
	})
	if (len(m.dead) > n) != left || left && m.dead[n] != job {
		m.fail("passed to the sink: %x, entries are left: %v", m.dead[n:], left)
	}
	if left {
		b.steps = append(b.steps, &Claim{Job: JobOf(b.l, job)})
	}
}

// work does a part of what the releasers have got.
func (m *model) work(rnd *rand.Rand) {
	if len(m.jobs) > 0 && rnd.IntN(2) == 0 {
		r := m.jobs[0]
		m.jobs = m.jobs[1:]
		r.l.Release(r.i).Settle(r.l.Spec, 1)
		return
	}
	for _, b := range m.batches {
		if len(b.steps) == 0 {
			continue
		}
		d := b.steps[0]
		from, most := d.Next, 1+rnd.IntN(4)
		if d.Job.Entry != All && d.Next == 0 && rnd.IntN(2) == 0 {
			d.Others, most = true, len(b.entries)
		}
		// If another job has taken the entries of this one, it takes none of others.
		taken := d.Others && !slices.ContainsFunc(b.entries, func(r *resource) bool { return r.open && Lost|r.i>>b.l.Share == d.Job.Entry })
		p := d.Step(most)
		found, ready := 0, 0
		var apart []uint32
		for _, r := range b.entries {
			switch j := r.i >> b.l.Share; {
			case !r.open || !b.dead[j] || r.i < from || r.i >= d.Next || taken:
			case d.Job.Entry != All && !d.Others && Lost|j != d.Job.Entry:
			default:
				r.open = false
				if r.state != nil && r.children == 0 {
					apart = append(apart, r.i)
					m.jobs = append(m.jobs, r)
					continue
				}
				found++
				if r.children == 0 {
					ready++
				}
			}
		}
		if !slices.Equal(d.Apart, apart) {
			m.fail("a step of %d of %x has set %d apart, want %d", most, d.Job.Entry, d.Apart, apart)
		}
		if d.Found != found || p.K != ready || ready > most {
			m.fail("a step of %d of %x claimed %d and found %d, want %d and %d", most, d.Job.Entry, p.K, d.Found, ready, found)
		}
		if d.Next == b.l.Len() {
			b.steps = b.steps[1:]
		}
		p.Release().Settle(p.Batch.Spec, p.K)
		return
	}
}

// compare looks at all entries and batches.
func (m *model) compare() {
	linked := map[*Batch]bool{}
	for _, l := range m.list.All(nil) {
		linked[l] = true
	}
	owners, bytes := int64(0), int64(0)
	for _, b := range m.batches {
		gone, awaited := 0, 0
		for _, r := range b.entries {
			if r.awaited != nil {
				select {
				case <-r.awaited:
					r.awaited = nil
				default:
					awaited++
				}
				if (r.awaited == nil) != r.released {
					m.fail("%+v is awaited: %v", r, r.awaited != nil)
				}
			}
			if got := b.l.State(r.i)&Open != 0; got != r.open && !b.dropped(r.i) {
				m.fail("an entry is open: %v, want %v", got, r.open)
			}
			if r.released || r.disowned {
				gone++
			}
			if m.due(r) && !r.released && !slices.Contains(m.jobs, r) {
				m.fail("%+v is not released", r)
			}
			if r.state != nil && (r.released || r.disowned) && b.l.families[r.i].own != nil {
				m.fail("%+v is gone, and its state is kept", r)
			}
		}
		if got, _ := b.l.Gone(); got != gone {
			m.fail("%d entries are gone, want %d", got, gone)
		}
		if b.l.notes != nil && len(b.l.awaited) != awaited {
			m.fail("%d releases are awaited, want %d", len(b.l.awaited), awaited)
		}
		if want := !b.sealed || gone < len(b.entries); linked[b.l] != want {
			m.fail("a batch is on its list: %v, want %v", linked[b.l], want)
		}
		if b.sealed {
			owners += int64(len(b.entries) - gone)
		}
	}
	bytes = 10 * owners
	n := m.direct.Counts.Owners.Load() + m.queue.Counts.Owners.Load()
	if k := m.direct.Counts.Bytes.Load() + m.queue.Counts.Bytes.Load(); n != owners || k != bytes {
		m.fail("%d owners of %d bytes are counted, want %d of %d", n, k, owners, bytes)
	}
}

// TestModel does random operations on entries, families and dead batches, and
// compares with the model after each. In the end all is dropped: everything is
// released once, children before their parents.
func TestModel(t *testing.T) {
	defer func(was bool) { Leak = was }(Leak)
	Leak = true // the model drops batches itself
	rounds := 600
	if testing.Short() {
		rounds = 100
	}
	for seed := range rounds {
		rnd := rand.New(rand.NewPCG(uint64(seed), 1))
		m := newModel(t)
		for range 150 {
			m.step(rnd)
			m.compare()
		}
		for _, b := range m.batches {
			for _, r := range b.entries {
				for ; r.uses > 0; r.uses-- {
					r.uses--
					b.sentinel(r.i).Exit(r.i)
					r.uses++
				}
			}
		}
		for _, b := range m.batches {
			m.seal(b)
			for j := range b.sentinels {
				m.drop(b, uint32(j))
			}
		}
		for range 10 * (len(m.resources) + len(m.batches)) {
			m.work(rnd)
		}
		m.compare()
		for _, r := range m.resources {
			if r.released == r.disowned {
				m.fail("seed %d: %+v is left", seed, r)
			}
		}
		if n := len(m.list.All(nil)); n != 0 {
			m.fail("seed %d: %d batches are left on the list", seed, n)
		}
	}
}
