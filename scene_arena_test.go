package cheap

import (
	"errors"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/test/shadow"
)

// A scratch is an arena and the reference of its blocks.
type scratch struct {
	a     *Arena
	live  shadow.Set
	order []unsafe.Pointer // the live blocks, oldest first
	marks []scratchMark
}

// A scratchMark is a mark, and how many blocks there were.
type scratchMark struct {
	Mark
	blocks int
}

// use does an operation on an arena, which is one of the pool or a new one.
func (u *user) use(s *scratch, pooled bool) {
	r := u.r
	if s.a == nil {
		if pooled {
			s.a = GetArena()
		} else {
			s.a = NewArena(u.under, []int{0, 300, 5000, 100_000}[r.IntN(4)])
		}
	}
	switch n := r.IntN(128); {
	default:
		size := r.IntN(200)
		if r.IntN(u.mix.wide) == 0 {
			size = u.mix.size(r)
		}
		u.added(s, s.a.Malloc(size), size, sizeclass.Quantum, pooled)
	case n < 8:
		size, align := r.IntN(2000), 16<<r.IntN(8)
		u.added(s, s.a.AlignedMalloc(size, align), size, align, pooled)
	case n < 14:
		s.marks = append(s.marks, scratchMark{s.a.Mark(), len(s.order)})
	case n < 20 && len(s.marks) > 0:
		i := r.IntN(len(s.marks))
		u.drop(s, s.marks[i].blocks)
		s.a.Release(s.marks[i].Mark)
		s.marks = s.marks[:i+1]
	case n == 20:
		u.drop(s, 0)
		s.a.Reset()
		s.marks = s.marks[:0]
	case n == 21:
		u.drop(s, 0)
		s.a.FreeAll()
		s.marks = s.marks[:0]
	case n == 22:
		u.end(s, pooled && r.IntN(8) == 0)
	case n == 23 && len(s.order) > 0:
		s.a.Free(s.order[r.IntN(len(s.order))]) // frees nothing
	}
}

// added enters a block of an arena.
func (u *user) added(s *scratch, p unsafe.Pointer, size, align int, pooled bool) {
	if p == nil && (!pooled || u.refusal != nil) {
		u.done.refused++
		return
	}
	u.must(s.live.Add(p, size, size, align))
	s.order = append(s.order, p)
}

// drop forgets the blocks of an arena from the n-th on, which are about to be freed.
func (u *user) drop(s *scratch, n int) {
	for _, p := range s.order[n:] {
		u.must(s.live.Remove(p))
	}
	s.order = s.order[:n]
}

// end destroys an arena, gives one of the pool back, or forgets it.
func (u *user) end(s *scratch, forget bool) {
	if s.a == nil {
		return
	}
	u.drop(s, 0)
	switch {
	case forget:
	case s.a.state == arenaTaken:
		s.a.Put()
	default:
		u.must(s.a.Destroy())
	}
	s.a, s.marks = nil, s.marks[:0]
}

// A fixed is a FixedBlock and the reference of its blocks.
type fixed struct {
	f       *FixedBlock
	live    shadow.Set
	growing bool
}

// useFixed does an operation on a FixedBlock.
func (u *user) useFixed() {
	x, r := &u.fixed, u.r
	if x.f == nil {
		size := 1 + r.IntN(16<<r.IntN(8))
		x.f = NewFixedBlock(u.under, FixedBlockOptions{BlockSize: size, Align: 8 << r.IntN(4)})
	}
	mallocs := 24
	if x.growing {
		mallocs = 40
	}
	switch n := r.IntN(64); {
	case n == 0 && r.IntN(16) == 0:
		u.endFixed()
		return
	case n < mallocs:
		p := x.f.Malloc(r.IntN(x.f.MaxSize() + 1))
		if p == nil { // its heap has a limit
			u.done.refused++
			x.growing = false
			return
		}
		u.must(x.live.Add(p, x.f.MaxSize(), x.f.Stride(), int(x.f.align)))
	case x.live.Len() > 0:
		u.freeFixed()
	}
	if x.live.Len() >= 2*u.mix.most {
		x.growing = false
	} else if x.live.Len() == 0 {
		x.growing = true
	}
}

func (u *user) freeFixed() {
	x := &u.fixed
	p := osmem.Pointer(x.live.At(u.r.IntN(x.live.Len())).Addr)
	u.must(x.live.Remove(p))
	x.f.Free(p)
}

// endFixed destroys the FixedBlock.
func (u *user) endFixed() {
	x := &u.fixed
	if x.f == nil {
		return
	}
	var live *LiveError
	if err := x.f.Destroy(); x.live.Len() > 0 && (!errors.As(err, &live) || live.Blocks != int64(x.live.Len())) {
		u.t.Fatalf("Destroy of a FixedBlock with %d live blocks: %v", x.live.Len(), err)
	}
	for x.live.Len() > 0 {
		u.freeFixed()
	}
	if err := x.f.Destroy(); err != nil && err != ErrDestroyed {
		u.t.Fatal(err)
	}
	x.f = nil
}
