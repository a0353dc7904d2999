package heap

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// migrate moves the goroutine to another P, unless it stays on its own after a while. It
// reports whether the goroutine was on another one.
func migrate() bool {
	before := percpu.Here()
	for range 50 {
		runtime.Gosched()
		if percpu.Here() != before {
			return true
		}
	}
	return false
}

// TestMigration has goroutines change their Ps all the time: between any two calls, and
// in the middle of a call, wherever the heap asks the system for memory. There it holds
// locks, has taken blocks off lists, and has looked at the cache of the P that the
// goroutine had before.
func TestMigration(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	testheap.SetDecay(t, 0) // so that the heap asks often
	h := NewHeap(t, Options{})
	m := migration{h: h, blocks: make(chan testheap.Handed, 64)}
	hop := func(osmem.Op, uintptr) error {
		if migrate() {
			m.within.Add(1)
		}
		return nil
	}
	osmem.Fault.Store(&hop)
	defer osmem.Fault.Store(nil)
	for try := range 20 {
		var wg sync.WaitGroup
		for g := range uint64(6) {
			wg.Go(func() { m.run(t, rand.New(rand.NewPCG(g, uint64(try))), testheap.HammerRounds(400)) })
		}
		wg.Wait()
		if m.between.Load() > 0 && (m.within.Load() > 0 || testheap.Scarce) || percpu.Portable {
			break
		}
		if try == 19 {
			t.Errorf("the goroutines were on another P %d times between calls, and %d times within one", m.between.Load(), m.within.Load())
		}
	}
	close(m.blocks)
	for b := range m.blocks {
		b.Unwrap(t, h)
	}
	MustHoldNothing(t, h)
}

// A migration is a heap, blocks on their way between goroutines, and how often one of
// them was on another P than before.
type migration struct {
	h               *Heap
	blocks          chan testheap.Handed
	between, within atomic.Int64
}

func (m *migration) step() {
	if migrate() {
		m.between.Add(1)
	}
}

// run allocates, resizes, passes on and frees blocks in one goroutine.
func (m *migration) run(t *testing.T, r *rand.Rand, rounds int) {
	large := span.OwnMapping
	if testheap.Scarce {
		large = 5 * span.UnitSize
	}
	for i := range rounds {
		size := r.IntN(1 << (4 + r.IntN(14)))
		if i%8 == 0 {
			size = large + r.IntN(span.UnitSize)
		}
		b := testheap.Wrap(m.h, size, r.Uint64())
		m.step()
		if i%5 == 0 {
			b.P = m.h.Realloc(b.P, size+size/4)
			m.step()
		}
		select {
		case m.blocks <- b:
			m.step()
			b = <-m.blocks
		default:
		}
		b.Unwrap(t, m.h)
		if i%50 == 0 {
			m.step()
			m.h.Trim()
		}
	}
}

// TestMovedInRefill lets a goroutine change its P while it waits for the lock of a class,
// before it puts a batch into a cache. The other P has a list, which must stay, and the
// batch must not be lost.
func TestMovedInRefill(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	const size = 100
	for range testheap.HammerRounds(100) {
		h := NewHeap(t, Options{})
		cl := &h.classes[sizeclass.Of(size)]
		var locked, began, ended atomic.Bool
		done := make(chan unsafe.Pointer)
		go func() {
			h.Free(h.Malloc(3000)) // a cache
			began.Store(true)
			for !locked.Load() { // not yielding, so that this P is not the other one's
			}
			p := h.Malloc(size) // waits for the lock, and goes on where that is unlocked
			ended.Store(true)
			done <- p
		}()
		for !began.Load() {
		}
		h.Free(h.Malloc(3000))
		h.Free(h.Malloc(size)) // a list
		mine := h.Malloc(size)
		cl.mu.Lock()
		locked.Store(true)
		for !isAwaited(&cl.mu) && !ended.Load() { // not yielding, either
		}
		cl.mu.Unlock()
		other := <-done
		if mine == other {
			t.Fatalf("%p was handed out twice", mine)
		}
		if s := h.Stats(); s.Blocks != 2 {
			t.Fatalf("two blocks are in use: %+v", s)
		}
		h.Free(mine)
		h.Free(other)
		MustHoldNothing(t, h)
		if t.Failed() {
			return
		}
	}
}

// isAwaited reports whether a goroutine waits for mu, which is locked. The first word of a
// Mutex counts those above its three flags.
func isAwaited(mu *sync.Mutex) bool { return atomic.LoadInt32((*int32)(unsafe.Pointer(mu)))>>3 > 0 }

// TestCacheOfEachP looks whether what one P has freed is what this P allocates next, and
// what no other P allocates; and how many caches there are.
func TestCacheOfEachP(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	const ps = 3
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(ps))
	h := NewHeap(t, Options{})
	for _, size := range []int{16, 500, 3000} {
		testwait.Until(t, "each P has its own block back", func() bool {
			var freed, got [ps]unsafe.Pointer
			var turn atomic.Int32
			wait := func(n int32) { // not yielding, so that the goroutine keeps its P
				for turn.Load() < n {
				}
			}
			var place atomic.Int32
			testheap.OnAllPs(ps, func() {
				i := place.Add(1) - 1
				h.Free(h.Malloc(size)) // a cache, with blocks
				freed[i] = h.Malloc(size)
				h.Free(freed[i])
				turn.Add(1)
				wait(ps)
				got[i] = h.Malloc(size)
				turn.Add(1)
				wait(2 * ps)
				h.Free(got[i])
			})
			return freed == got
		})
	}
	most := ps
	if percpu.Portable {
		most = percpu.Max
	}
	if s := h.Stats(); s.Caches > int64(most) {
		t.Errorf("%d Ps: %+v", ps, s)
	}
	MustHoldNothing(t, h)
}
