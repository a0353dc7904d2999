package own

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own/internal/batch"
)

func newGroup(t testing.TB, m *Memory) *Group {
	t.Helper()
	g, err := m.NewGroup()
	testcall.Must(t, err)
	return g
}

// TestGroupOfAllSizes allocates blocks that fill chunks and exceed them, writes
// to all of each, and finds that in the end.
func TestGroupOfAllSizes(t *testing.T) {
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{})
	sizes := []int{0, 1, 15, 16, 17, 100, 500, 1000, 1008, 1009, 1024, 2000, 2048, 5000, 10_000, 16_384, 40_000, 65_536, 200_000}
	for turn := range 4 {
		g := newGroup(t, m)
		var blocks [][]byte
		seen := map[uintptr]bool{}
		for i := range times(1000) {
			var n int
			align := 1
			switch turn {
			case 0:
				n = 64
			case 1:
				n = sizes[i%len(sizes)]
			case 2:
				n = rand.IntN(300)
			case 3:
				n, align = rand.IntN(3000), 1<<rand.IntN(13)
			}
			var p unsafe.Pointer
			var err error
			switch {
			case align > 1:
				p = g.AlignedMalloc(n, align)
			case i%2 == 0:
				p = g.Malloc(n)
			default:
				p, err = g.TryMalloc(n)
			}
			if p == nil || err != nil {
				t.Fatalf("%d bytes: %v, %v", n, p, err)
			}
			if a := uintptr(p); a%uintptr(max(align, 16)) != 0 || seen[a] {
				t.Fatalf("%d bytes are at %#x, for an alignment of %d, seen: %v", n, a, align, seen[a])
			}
			seen[uintptr(p)] = true
			b := unsafe.Slice((*byte)(p), n)
			for j := range b {
				b[j] = byte(i)
			}
			blocks = append(blocks, b)
			g.Free(p)
		}
		total := 0
		for i, b := range blocks {
			if bytes.Count(b, []byte{byte(i)}) != len(b) {
				t.Fatalf("a block of %d bytes has changed", len(b))
			}
			total += len(b)
		}
		if n := g.Size(); n < int64(total) || turn != 3 && n > int64(2*total+mostGrow) {
			t.Errorf("a group has %d bytes for blocks of %d", n, total)
		}
		if st := m.Stats(); st.Live != 1 || st.Bytes != g.Size() {
			t.Errorf("%+v, with one group of %d", st, g.Size())
		}
		if st := h.Stats(); st.Bytes < g.Size() {
			t.Errorf("the heap has given %d bytes to a group of %d", st.Bytes, g.Size())
		}
		g.Close()
		// Only chunks of open batches are left.
		if st := h.Stats(); st.Blocks > int64(runtime.GOMAXPROCS(0)) || m.groups.grown.Load() != 0 {
			t.Errorf("%d blocks of the heap are left, %d bytes beyond those of batches", st.Blocks, m.groups.grown.Load())
		}
		if g.Size() != 0 {
			t.Errorf("a closed group has %d bytes", g.Size())
		}
	}
	testcall.Want(t, m.CloseWait(waiting(0)))
	if n := h.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks of the heap are left", n)
	}
}

// TestGroupGrown has a group grow beyond what a batch may keep: the next group has another batch.
func TestGroupGrown(t *testing.T) {
	m := NewMemory(newHeap(t), MemoryOptions{})
	batchOf := func(g *Group) *batch.Batch { return g.owner.ref.Sentinel().Batch }
	g := newGroup(t, m)
	for range 10 { // the first batches have one or two
		g = newGroup(t, m)
	}
	g.Malloc(2 * defaultPinned)
	if batchOf(newGroup(t, m)) == batchOf(g) {
		t.Error("a group shares a batch with one that has grown")
	}
}

// TestGroupIsAnAllocator uses it where package cheap takes one.
func TestGroupIsAnAllocator(t *testing.T) {
	g := newGroup(t, NewMemory(newHeap(t), MemoryOptions{}))
	type point struct{ X, Y int }
	p := cheap.New[point](g)
	p.X = 1
	s := cheap.MakeSlice[int64](g, 10, 1000)
	s, err := cheap.Append(g, s, make([]int64, 2000)...)
	testcall.Must(t, err)
	c := cheap.CString(g, "hello")
	if got := cheap.GoString(c); got != "hello" || p.X != 1 || len(s) != 2010 || s[2009] != 0 {
		t.Errorf("%q, %+v, %d", got, *p, len(s))
	}
	cheap.FreeSlice(g, s)
	for range 2 {
		if err := g.Close(); err != nil || !g.Closed() {
			t.Errorf("Close: %v", err)
		}
	}
}

func TestGroupMistakes(t *testing.T) {
	m := NewMemory(newHeap(t), MemoryOptions{Name: "Cache"})
	g := newGroup(t, m)
	g.Free(nil)
	mustMisuse(t, "Cache.Group.Malloc", func() { g.Malloc(-1) }, "negative")
	mustMisuse(t, "Cache.Group.AlignedMalloc", func() { g.AlignedMalloc(-1, 16) }, "negative")
	for _, align := range []int{0, 3, -16, math.MinInt} {
		mustMisuse(t, "own.Group.AlignedMalloc", func() { g.AlignedMalloc(1, align) }, "power of two")
	}
	for _, n := range []int{math.MaxInt, math.MaxInt - 16, math.MaxInt/2 + 1} {
		if p := g.Malloc(n); p != nil {
			t.Errorf("%d bytes: %v", n, p)
		}
		if _, err := g.TryMalloc(n); !errors.Is(err, cheap.ErrNoMemory) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if p := g.AlignedMalloc(1, 1<<(unsafe.Sizeof(uintptr(0))*8-2)); p != nil {
		t.Errorf("a huge alignment: %v", p)
	}
	mustMisuse(t, "Cache.Resize", func() { g.owner.Resize(20) }, "size")
	if p, err := g.owner.disownPointer(); p != nil || err != ErrShared {
		t.Errorf("Disown: %v, %v", p, err)
	}
	var zero Group
	mustMisuse(t, "own.Group.Malloc", func() { zero.Malloc(1) }, "Memory.NewGroup")
	mustMisuse(t, "own.Group.Use", func() { zero.Use(func() {}) }, "owns nothing")
	if zero.Size() != 0 || zero.Close() != nil {
		t.Error("the zero group has something")
	}

	g.Malloc(100)
	g.Close()
	for _, n := range []int{0, 1, 64, 100_000} {
		mustMisuse(t, "Cache.Group.Malloc", func() { g.Malloc(n) }, "closed")
	}
	mustMisuse(t, "Cache.Group.TryMalloc", func() { g.TryMalloc(1) }, "closed")
	mustMisuse(t, "Cache.Group.AlignedMalloc", func() { g.AlignedMalloc(1, 16) }, "closed")
	mustMisuse(t, "Cache.Group.Use", func() { g.Use(func() {}) }, "closed")
}

// TestGroupErrors meets the limit of the heap: what a group has stays as it is.
func TestGroupErrors(t *testing.T) {
	h, err := cheap.NewHeap(cheap.HeapOptions{Limit: 2 << 20})
	testcall.Must(t, err)
	heapUntilEnd(t, h)
	m := NewMemory(h, MemoryOptions{})
	for _, n := range []int{64, 5000, 100_000} {
		g := newGroup(t, m)
		total := 0
		for {
			p, err := g.TryMalloc(n)
			if err != nil {
				if !errors.Is(err, cheap.ErrLimit) {
					t.Errorf("%d bytes: %v", n, err)
				}
				break
			}
			clear(unsafe.Slice((*byte)(p), n))
			total += n
		}
		if total < 1<<20 {
			t.Errorf("the limit of 2 MiB is met by blocks of %d with %d bytes", n, total)
		}
		if p := g.Malloc(n); p != nil {
			t.Errorf("Malloc returns %v where TryMalloc had an error", p)
		}
		g.Close()
	}
	var all []*Group
	for {
		g, err := m.NewGroup()
		if err != nil {
			if !errors.Is(err, cheap.ErrLimit) {
				t.Error(err)
			}
			break
		}
		all = append(all, g)
	}
	if len(all) < 500 {
		t.Errorf("the limit of 2 MiB is met by %d groups", len(all))
	}
	runtime.KeepAlive(all)
}

// TestForgottenGroupsComeBack forgets groups, and keeps those of which a copy of
// the Owner is kept.
func TestForgottenGroupsComeBack(t *testing.T) {
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{})
	var kept []Owner
	var texts []unsafe.Pointer
	n := times(5000)
	testcall.Aside(func() {
		for i := range n {
			g := newGroup(t, m)
			for range rand.IntN(200) {
				g.Malloc(rand.IntN(500))
			}
			if i%1000 == 0 {
				kept = append(kept, g.Owner())
				texts = append(texts, cheap.CString(g, fmt.Sprint("group ", i)))
			}
		}
	})
	bound := int64(len(kept)) * 3 * defaultPinned // a group of this test has less than twice that
	collectAtMost(t, few, "forgotten groups", func() bool { return h.Stats().Bytes <= bound })
	for i, p := range texts {
		if got := cheap.GoString(p); got != fmt.Sprint("group ", i*1000) {
			t.Errorf("a kept group has %q", got)
		}
	}
	runtime.KeepAlive(kept)
	kept = nil
	collectAtMost(t, few, "all groups", func() bool { return h.Stats().Blocks == 0 })
	if st := m.Stats(); st.Live != 0 || st.Bytes != 0 || st.Collected != int64(n) {
		t.Errorf("%+v", st)
	}
}

// TestGroupInUse: the blocks stay until the last Use has returned, and in Use
// nothing can be allocated from a closed group.
func TestGroupInUse(t *testing.T) {
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{})
	g := newGroup(t, m)
	g.Use(func() {
		b := cheap.MakeSlice[byte](g, 5000, 5000)
		g.Close()
		clear(b)
		mustMisuse(t, "own.Memory.Group.Malloc", func() { g.Malloc(1) }, "closed")
		if err := m.CloseWait(waiting(0)); err == nil {
			t.Error("CloseWait found nothing in use")
		}
		clear(b)
		if h.Stats().Blocks != 2 {
			t.Errorf("%d chunks in Use", h.Stats().Blocks)
		}
	})
	if n := h.Stats().Blocks; n != 0 {
		t.Errorf("%d chunks after Use", n)
	}
}

// TestHammerGroups allocates from groups that others close, in Use and not, with
// collections all the time.
func TestHammerGroups(t *testing.T) {
	for _, o := range []MemoryOptions{{}, {Unshared: true}, {Batch: 2}} {
		h := newHeap(t)
		m := NewMemory(h, o)
		stop := testwait.Loop(1, runtime.GC)
		var workers sync.WaitGroup
		for w := range 8 {
			workers.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), 2))
				for i := range times(1000) {
					g, err := m.NewGroup()
					if err != nil {
						t.Error(err)
						return
					}
					if !o.Unshared && i%3 == 0 {
						// Another one closes it, somewhere in the middle.
						var closer sync.WaitGroup
						closer.Go(func() { g.Close() })
						if v := testcall.Catch(func() {
							for range 10 {
								g.Use(func() { g.Malloc(r.IntN(3000)) })
							}
						}); v != nil {
							if _, ok := v.(*cheap.MisuseError); !ok {
								panic(v)
							}
						}
						closer.Wait()
						continue
					}
					var blocks [][]byte
					for range r.IntN(100) {
						b := cheap.MakeSlice[byte](g, r.IntN(1000), 1000)
						for j := range b {
							b[j] = byte(i)
						}
						blocks = append(blocks, b)
					}
					for _, b := range blocks {
						if bytes.Count(b, []byte{byte(i)}) != len(b) {
							t.Error("a block has changed")
						}
					}
					runtime.KeepAlive(g)
					if i%2 == 0 {
						g.Close()
					}
				}
			})
		}
		workers.Wait()
		stop()
		mustBeEmpty(t, h)
		if st := m.Stats(); st.Live != 0 || st.Bytes != 0 {
			t.Errorf("%+v", st)
		}
	}
}

// TestGroupAllocs: a group is one Go object, and its share of a batch.
func TestGroupAllocs(t *testing.T) {
	m := NewMemory(newHeap(t), MemoryOptions{})
	g := newGroup(t, m)
	if n := testing.AllocsPerRun(100, func() { g.Malloc(64) }); n != 0 {
		t.Errorf("%v Go allocations for a block", n)
	}
	if n := testing.AllocsPerRun(1000, func() { newGroup(t, m).Malloc(64) }); n > 1.5 && !race.Build {
		t.Errorf("%v Go allocations for a group", n)
	}
}
