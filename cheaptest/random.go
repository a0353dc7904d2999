package cheaptest

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/shadow"
)

// The model keeps at most this many blocks and bytes live.
const (
	modelBlocks = 1000
	modelBytes  = 8 << 20
)

// A model is an allocator beside a reference: the live blocks, none of which overlap,
// and the contents that were written to them.
type model struct {
	*trial
	rng   *rand.Rand
	live  set
	bytes int
	asked int // sum of all sizes ever requested
	mark  int
}

// more reports whether to go on after that many steps: for the requested time, but with
// an allocator whose Free frees nothing only as long as memory lasts.
func (m *model) more(step int, begin time.Time) bool {
	const most = 128 << 20
	return step < 10_000 || m.now().Sub(begin) < m.time && (m.guarantees.Reuses || m.asked < most)
}

// checkModel draws operations at random, and compares with the reference.
func checkModel(t *trial) {
	failed := true
	defer func() {
		if failed {
			t.Logf("to repeat it: -cheaptest.seed=%d", t.seed)
		}
	}()
	m := &model{trial: t, rng: rand.New(rand.NewPCG(t.seed, 0))}
	begin := m.now()
	for step := 0; m.more(step, begin); step++ {
		m.step()
	}
	m.verifyAll()
	for len(m.live.blocks) > 0 {
		m.freeAny()
	}
	t.finish()
	failed = false
}

func (m *model) step() {
	t := m.trial
	switch n := m.rng.IntN(1000); {
	case n < 2:
		m.verifyAll()
	case n < 3:
		runtime.GC()
	case len(m.live.blocks) >= modelBlocks || m.bytes > modelBytes:
		m.freeAny()
	case n < 450:
		size := m.size()
		m.add("Malloc", t.a.Malloc(size), size)
	case n < 500:
		m.aligned()
	case n < 550:
		m.calloc()
	case n < 600:
		m.realloc()
	default:
		m.freeAny()
	}
}

// size draws a size. Small sizes are likelier.
func (m *model) size() int {
	top := 14.0
	if m.rng.IntN(100) == 0 {
		top = 18
	}
	return min(int(math.Exp2(m.rng.Float64()*top))-1, m.maxSize)
}

func (m *model) add(method string, p pointer, size int) {
	m.mark++
	m.live.add(m.trial, m.take(method, p, size, m.mark))
	m.bytes += size
	m.asked += size
}

// remove removes a random block from the live ones.
func (m *model) remove() block {
	i := m.rng.IntN(len(m.live.blocks))
	b := m.live.blocks[i]
	m.live.blocks = slices.Delete(m.live.blocks, i, i+1)
	m.bytes -= b.size
	return b
}

func (m *model) freeAny() {
	if len(m.live.blocks) > 0 {
		m.free(m.remove())
	}
}

func (m *model) verifyAll() {
	for _, b := range m.live.blocks {
		m.verify(b)
	}
}

// aligned, calloc and realloc do nothing if the allocator has no such method.

func (m *model) aligned() {
	a, ok := m.a.(cheap.AlignedAllocator)
	if !ok {
		return
	}
	size, align := m.size(), 1<<m.rng.IntN(13)
	p := a.AlignedMalloc(size, align)
	if p == nil {
		return // allowed for some alignments
	}
	if uintptr(p)%uintptr(align) != 0 {
		m.Fatalf("AlignedMalloc(%d, %d) returned %#x", size, align, uintptr(p))
	}
	m.add("AlignedMalloc", p, size)
}

func (m *model) calloc() {
	a, ok := m.a.(cheap.CallocAllocator)
	if !ok {
		return
	}
	size := m.size()
	p := a.Calloc(1, size)
	b := m.look("Calloc", p, size, 0)
	if err := b.pieces(func(p pointer, n int, _ uint64) error { return shadow.Zero(p, n) }); err != nil {
		m.Fatalf("from Calloc: %v", err)
	}
	m.add("Calloc", p, size)
}

func (m *model) realloc() {
	a, ok := m.a.(cheap.ReallocAllocator)
	if !ok || len(m.live.blocks) == 0 {
		return
	}
	b := m.resize(a, m.remove(), m.size())
	m.live.add(m.trial, b)
	m.bytes += b.size
}

// checkHammer has goroutines that allocate, pass blocks to each other, and free the
// blocks that they get, all at the same time.
func checkHammer(t *trial) {
	const goroutines = 6
	var (
		exchange = make(chan block, 100)
		wg       sync.WaitGroup
		begin    = t.now()
		failures atomic.Int32
	)
	fail := func(format string, args ...any) {
		if failures.Add(1) <= 10 {
			t.Errorf(format, args...)
		}
	}
	end := func(b block) {
		if damage := b.damage(b.size); damage != "" {
			fail("%s", damage)
		}
		t.a.Free(b.ptr)
	}
	for g := range goroutines {
		wg.Go(func() {
			m := &model{trial: t, rng: rand.New(rand.NewPCG(t.seed, uint64(g)))}
			var own []block
			for i := 0; (i < 5000 || t.now().Sub(begin) < t.time) && failures.Load() == 0; i++ {
				size := min(m.size(), 1<<13)
				b := block{t.a.Malloc(size), size, g + goroutines*i}
				if b.ptr == nil {
					fail("Malloc of %d bytes returned nil", size)
					break
				}
				if align := uintptr(t.guarantees.Align); align != 0 && uintptr(b.ptr)%align != 0 {
					fail("Malloc of %d bytes returned %#x, which is not aligned to %d", size, uintptr(b.ptr), align)
				}
				b.fill()
				switch i % 3 {
				case 0:
					own = append(own, b)
				case 1:
					select {
					case exchange <- b:
					default:
						own = append(own, b)
					}
				default:
					end(b)
				}
				select {
				case other := <-exchange:
					end(other)
				default:
				}
				if len(own) > 50 {
					for _, b := range own {
						end(b)
					}
					own = own[:0]
				}
				if i%100 == 0 {
					runtime.Gosched()
				}
			}
			for _, b := range own {
				end(b)
			}
		})
	}
	wg.Wait()
	close(exchange)
	for b := range exchange {
		end(b)
	}
	t.finish()
}
