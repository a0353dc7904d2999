package cheap

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// A scene is some heaps, and what is over them, with users that do random operations on
// all of it: on blocks of every kind, with Locals, under limits, in arenas, arenas of the
// pool and objects of FixedBlock, and on heaps that come and go. Each block is in the reference of
// its user, and its contents are verified when it is freed.
type scene struct {
	t     testing.TB
	users []*user
	mix   mix

	shared  [2]*Heap // the second has a limit
	under   *Heap    // has a limit; an Arena and a FixedBlock take their chunks from it
	handed  [2]chan shadow.Block
	refusal error // as in machine; of all
}

// A mix says what users do.
type mix struct {
	size    func(r *rand.Rand) int
	most    int  // live blocks of a user on one heap
	align   int  // the binary logarithm of the largest alignment
	wide    int  // one block in so many of an arena has a size of the mix
	life    int  // the most operations on a heap of a user's own
	realloc int  // of 256 operations on a heap, so many are Realloc
	bursts  int  // so many are some blocks of one size, or neighbours that are freed
	rare    int  // and so many are what is not done often
	near    bool // Realloc asks for a size that is near the old one, so that mappings grow
}

// A user is a goroutine of a scene.
type user struct {
	*scene
	r    *rand.Rand
	done deeds

	on [2]flow // machines on the shared heaps

	own  flow // a machine on a heap of its own, or nil
	left int  // operations until the heap of its own is destroyed

	arena, pooled scratch
	fixed         fixed
}

// deeds are counts of what users have done.
type deeds struct {
	ops     int   // operations
	mallocs int64 // blocks that heaps have handed out
	refused int   // requests that got no block, for a limit or because the system refused
	handed  int   // blocks that a user has taken over from another
	heaps   int   // heaps of a user's own that were destroyed
	trims   int
}

func (d deeds) String() string {
	return fmt.Sprintf("%d operations, %d blocks of heaps, %d requests refused, %d blocks taken over, %d heaps destroyed, %d trims",
		d.ops, d.mallocs, d.refused, d.handed, d.heaps, d.trims)
}

// count adds what m has done, which does nothing more.
func (d *deeds) count(m *machine) {
	d.mallocs += m.mallocs
	d.refused += m.refused
}

// add adds what another user has done.
func (d *deeds) add(u deeds) {
	d.ops += u.ops
	d.mallocs += u.mallocs
	d.refused += u.refused
	d.handed += u.handed
	d.heaps += u.heaps
	d.trims += u.trims
}

// A flow is a machine whose blocks become more for a while, and then fewer.
type flow struct {
	*machine
	growing bool
}

// newScene makes a scene. It returns an error if the system has no memory.
func newScene(t testing.TB, users int, limit int64, x mix) (*scene, error) {
	s := &scene{t: t, mix: x}
	for i, l := range []int64{0, limit, limit} {
		h, err := NewHeap(HeapOptions{Limit: l})
		if err != nil {
			return nil, err // only the first can fail, which makes the map
		}
		if i < len(s.shared) {
			s.shared[i], s.handed[i] = h, make(chan shadow.Block, 4*users)
		} else {
			s.under = h
		}
	}
	for i := range users {
		u := &user{scene: s, r: rand.New(rand.NewPCG(uint64(i), 13))}
		for j, h := range s.shared {
			u.on[j].machine = aloneOn(t, h)
		}
		s.users = append(s.users, u)
		for j, set := range u.sets() {
			set.Seed(uint64(i*1000 + j*100))
		}
	}
	return s, nil
}

// sets returns the references of the user's blocks.
func (u *user) sets() []*shadow.Set {
	all := []*shadow.Set{&u.on[0].live, &u.on[1].live, &u.arena.live, &u.pooled.live, &u.fixed.live}
	if u.own.machine != nil {
		all = append(all, &u.own.live)
	}
	return all
}

// refuse says whether the system may refuse memory from now on, by which error.
func (s *scene) refuse(err error) {
	s.refusal = err
	for _, u := range s.users {
		u.on[0].refusal, u.on[1].refusal = err, err
		if u.own.machine != nil {
			u.own.refusal = err
		}
	}
}

// work has each user do n operations, all at the same time.
func (s *scene) work(n int) {
	var wg sync.WaitGroup
	for _, u := range s.users {
		wg.Go(func() {
			for end := u.done.ops + n; u.done.ops < end; {
				u.step()
			}
		})
	}
	wg.Wait()
}

// step does one operation.
func (u *user) step() {
	u.done.ops++
	switch n := u.r.IntN(64); {
	case n < 24:
		u.share(0)
	case n < 38:
		u.share(1)
	case n < 48:
		u.useOwn()
	case n < 52:
		u.use(&u.arena, false)
	case n < 56:
		u.use(&u.pooled, true)
	default:
		u.useFixed()
	}
}

// share does an operation on a heap that all users have, or takes over a block from
// another user, or hands one over.
func (u *user) share(i int) {
	m := &u.on[i]
	switch n := u.r.IntN(32); {
	case n == 0 && m.live.Len() > 0:
		b := m.live.Take(u.r.IntN(m.live.Len()))
		select {
		case u.handed[i] <- b:
		default:
			u.must(m.live.Give(b))
		}
	case n == 1:
		select {
		case b := <-u.handed[i]:
			u.must(m.live.Give(b))
			u.done.handed++
		default:
		}
	default:
		u.operate(m)
	}
}

// must ends the program if err is not nil.
func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// operate does an operation on the heap of m.
func (u *user) operate(m *flow) {
	r := u.r
	i := r.IntN(len(m.workers))
	frees := 140
	if m.growing {
		frees = 90
	}
	ok := true
	n := r.IntN(256)
	// below reports whether n is one of the next k numbers.
	below := func(k int) bool { n -= k; return n < 0 }
	switch {
	case below(u.mix.rare):
		u.rare(m, i)
	case below(u.mix.bursts):
		u.burst(m, i)
	case below(u.mix.realloc):
		n, size := r.IntN(1<<30), u.mix.size(r)
		if u.mix.near && m.live.Len() > 0 {
			size = r.IntN(2*m.live.At(n%m.live.Len()).Usable + 1)
		}
		ok = m.realloc(i, n, size)
	case below(frees):
		m.free(i, r.IntN(1<<30))
	case below(10):
		count := 1 + r.IntN(8)
		ok = m.calloc(i, count, u.mix.size(r)/count)
	case below(6):
		ok = m.aligned(i, u.mix.size(r), 1<<r.IntN(u.mix.align+1))
	default:
		ok = m.malloc(i, u.mix.size(r))
	}
	switch {
	case !ok || m.live.Len() >= u.mix.most:
		m.growing = false
	case m.live.Len() == 0 || r.IntN(1<<12) == 0:
		m.growing = true
	}
}

// rare does what is not done often.
func (u *user) rare(m *flow, i int) {
	switch r := u.r; r.IntN(64) {
	case 0:
		m.h.Trim()
		u.done.trims++
	case 1:
		Trim()
		u.done.trims++
	case 2, 3, 4, 5, 6, 7:
		// The addresses of a heap that is destroyed while a Local is open are lost, so
		// one that is destroyed soon has no Local that the collector closes.
		if m.workers[i].local != nil && m.machine != u.own.machine && r.IntN(4) == 0 {
			m.workers[i].local = nil
		} else {
			m.local(i)
		}
	}
}

// burst allocates blocks of one size, or frees blocks that are neighbours, as many as
// travel between caches.
func (u *user) burst(m *flow, i int) {
	n := 1 + u.r.IntN(250)
	u.done.ops += n - 1
	size := 16 << (3 * u.r.IntN(3))
	for ; n > 0; n-- {
		if !m.growing {
			m.free(i, m.live.Len()/2)
		} else if !m.malloc(i, size) {
			m.growing = false
		}
	}
}

// useOwn makes a heap, does an operation on it, or destroys it.
func (u *user) useOwn() {
	m := &u.own
	switch {
	case m.machine == nil:
		limit := int64(0)
		if u.r.IntN(2) == 0 {
			limit = int64(1+u.r.IntN(32)) << 17
		}
		h, err := NewHeap(HeapOptions{Limit: limit})
		if err != nil {
			if u.refusal == nil || !errors.Is(err, u.refusal) {
				u.t.Fatal(err)
			}
			return
		}
		m.machine = aloneOn(u.t, h)
		m.refusal = u.refusal
		m.live.Seed(u.r.Uint64() >> 1)
		u.left = u.r.IntN(u.mix.life)
	case u.left == 0:
		u.endOwn()
	default:
		u.left--
		if u.r.IntN(512) == 0 {
			m.misuse(u.r.IntN(len(m.workers)), u.r.IntN(1<<30))
			return
		}
		u.operate(m)
	}
}

// endOwn destroys the heap of its own.
func (u *user) endOwn() {
	m := u.own.machine
	m.closeLocals()
	m.check()
	u.done.count(m)
	u.done.heaps++
	if u.r.IntN(2) == 0 {
		u.must(m.live.CheckAll(osmem.Pointer))
		u.must(m.h.DestroyAll())
	} else {
		m.finish()
	}
	if err := m.h.Destroy(); err != ErrDestroyed {
		u.t.Fatalf("a second Destroy: %v", err)
	}
	u.own.machine = nil
}

// check compares everything with the references, while no user works.
func (s *scene) check() {
	for i, handed := range s.handed {
		var all []*machine
		for _, u := range s.users {
			all = append(all, u.on[i].machine)
		}
		for len(handed) > 0 {
			s.must(all[0].live.Give(<-handed))
		}
		checkTogether(all...)
	}
	var chunks int
	var all shadow.Set // no two blocks overlap, whosever they are
	for _, u := range s.users {
		if u.own.machine != nil {
			u.own.check()
		}
		for _, set := range u.sets() {
			s.must(set.CheckAll(osmem.Pointer))
			for i := range set.Len() {
				s.must(all.Give(set.At(i)))
			}
		}
		if a := u.arena.a; a != nil {
			chunks += len(a.mem.chunks) + len(a.mem.large)
		}
		if f := u.fixed.f; f != nil {
			chunks += len(f.all)
			if live := f.liveBlocks(); live != u.fixed.live.Len() {
				s.t.Fatalf("a FixedBlock counts %d live blocks, of %d", live, u.fixed.live.Len())
			}
		}
	}
	if st := s.under.Stats(); st.Blocks != int64(chunks) || st.Held < st.Bytes || st.Held > st.Limit {
		s.t.Fatalf("%+v, but there are %d chunks", st, chunks)
	}
}

// end frees everything and destroys all heaps. It returns what all users have done.
func (s *scene) end() (sum deeds) {
	for i := range s.handed {
		close(s.handed[i])
	}
	for _, u := range s.users {
		u.end(&u.arena, false)
		u.end(&u.pooled, false)
		u.endFixed()
		if u.own.machine != nil {
			u.endOwn()
		}
		for i := range u.on {
			m := u.on[i].machine
			for b := range s.handed[i] {
				s.must(m.live.Give(b))
			}
			for m.live.Len() > 0 {
				m.free(u.r.IntN(len(m.workers)), u.r.IntN(1<<30))
			}
			m.closeLocals()
			u.done.count(m)
		}
		sum.add(u.done)
	}
	for _, h := range []*Heap{s.shared[0], s.shared[1], s.under} {
		testwait.Until(s.t, "the caches of dropped Locals are gone", func() bool {
			runtime.GC()
			return !(*heap.Heap)(h).HasLocals()
		})
		if h == s.under {
			sum.mallocs += h.Stats().Mallocs
		}
		mustHoldNothing(s.t, h)
		s.must(h.Destroy())
	}
	return sum
}
