package own

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/testcall"
	"github.com/cheapgo/cheap/internal/testchild"
)

// newHeap returns a heap in which nothing is left when the test ends.
func newHeap(t testing.TB) *cheap.Heap {
	t.Helper()
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return heapUntilEnd(t, h)
}

func heapUntilEnd(t testing.TB, h *cheap.Heap) *cheap.Heap {
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		mustBeEmpty(t, h)
		if err := h.Destroy(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// mustBeEmpty collects until all blocks of the heap are back.
func mustBeEmpty(t testing.TB, h *cheap.Heap) {
	t.Helper()
	collect(t, "the blocks of the heap", func() bool { return h.Stats().Blocks == 0 })
}

func newBytes(t testing.TB, m *Memory, n int) *Bytes {
	t.Helper()
	b, err := m.NewBytes(n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newMem[T any](t testing.TB, m *Memory) *Mem[T] {
	t.Helper()
	x, err := NewMem[T](m)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// address is where a block lies.
func (o *Owner) address() uintptr { return uintptr(o.Resource()) }

func TestNewMemoryRefuses(t *testing.T) {
	for option, o := range map[string]MemoryOptions{
		"Options.Batch":  {Batch: -1},
		"Options.Batch ": {Batch: mostBatch + 1},
		"Options.Pinned": {Pinned: -1},
	} {
		mustMisuse(t, "own.NewMemory", func() { NewMemory(nil, o) }, strings.TrimSpace(option))
	}
}

func TestMem(t *testing.T) {
	type point struct {
		X, Y int64
		Name [5]byte
	}
	m := NewMemory(newHeap(t), MemoryOptions{})
	x := newMem[point](t, m)
	if x.Closed() || *x.Get() != (point{}) {
		t.Errorf("a new Mem is %+v, closed: %v", *x.Get(), x.Closed())
	}
	x.Use(func(p *point) { p.X, p.Y = 1, 2 })
	y := *x // a copy is the same block
	y.Use(func(p *point) {
		if *p != (point{X: 1, Y: 2}) || p != x.Get() || x.owner.Resource() != unsafe.Pointer(p) {
			t.Errorf("the copy has %+v", *p)
		}
	})
	y.Close()
	if !x.Closed() || x.Get() != nil || x.owner.Resource() != nil {
		t.Error("open after Close of a copy")
	}
	mustMisuse(t, "own.Memory.Use", func() { x.Use(func(*point) {}) }, "closed")
	mustMisuse(t, "own.Owner.Use", func() { new(Mem[int]).Use(func(*int) {}) }, "owns nothing")
	if new(Mem[int]).Get() != nil {
		t.Error("the zero Mem has something")
	}
	runtime.KeepAlive(x)
}

//cheapvet:ignore gopointer each of these types is refused
func TestMemRefusesGoPointers(t *testing.T) {
	type inner struct{ Names []string }
	type outer struct {
		N int
		I inner
	}
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{})
	for range 2 {
		mustMisuse(t, "own.NewMem", func() { NewMem[outer](m) }, "own.outer.I.Names is a slice")
		mustMisuse(t, "own.NewMem", func() { NewMem[*int](m) }, "pointer")
		mustMisuse(t, "own.NewMem", func() { NewMem[string](m) }, "string")
	}
	if n := h.Stats().Mallocs; n != 0 {
		t.Errorf("%d blocks for refused types", n)
	}
}

// TestBytesOfAllSizes makes blocks that fill chunks, exceed them, and are exact,
// writes to all of each, and finds that in the end.
func TestBytesOfAllSizes(t *testing.T) {
	h := newHeap(t)
	for _, o := range []MemoryOptions{{}, {Batch: 1}, {Batch: 7}, {Pinned: 1}, {Pinned: 100}, {Pinned: 5000}, {Trace: true}, {Unshared: true},
		{OnCollect: func(Collected) {}}} {
		t.Run(fmt.Sprintf("batch=%d/pinned=%d/trace=%v/told=%v", o.Batch, o.Pinned, o.Trace, o.OnCollect != nil), func(t *testing.T) {
			m := NewMemory(h, o)
			sizes := []int{0, 1, 15, 16, 17, 31, 100, 1000, 4096, 16383, 16384, 16385, 20_000, 40_000, 65_535, 65_536, 65_537, 1 << 20}
			var all []*Bytes
			seen := map[uintptr]bool{}
			total := 0
			for round := range times(60) {
				for i := range sizes {
					n := sizes[i]
					if round%2 == 0 {
						n = sizes[rand.IntN(len(sizes)-5)]
					} else if n > 1000 && round > 3 {
						continue
					}
					b := newBytes(t, m, n)
					a := b.owner.address()
					if a%16 != 0 || seen[a] {
						t.Fatalf("%d bytes are at %#x, seen: %v", n, a, seen[a])
					}
					seen[a] = true
					if b.Len() != n || len(b.Get()) != n || cap(b.Get()) != n {
						t.Fatalf("%d bytes have length %d, %d", n, b.Len(), len(b.Get()))
					}
					b.Use(func(s []byte) {
						if bytes.Count(s, []byte{0}) != n {
							t.Fatalf("%d bytes are not zero", n)
						}
						for j := range s {
							s[j] = byte(len(all))
						}
					})
					all = append(all, b)
					total += n
				}
			}
			if st := m.Stats(); st.Live != int64(len(all)) || st.Bytes != int64(total) {
				t.Errorf("%+v, want %d with %d bytes", st, len(all), total)
			}
			rand.Shuffle(len(all), func(i, j int) {
				if i%256 == j%256 { // or the mark would not fit
					all[i], all[j] = all[j], all[i]
				}
			})
			for i, b := range all {
				if s := b.Get(); bytes.Count(s, []byte{byte(i)}) != len(s) {
					t.Fatalf("%d bytes have changed", len(s))
				}
				b.Close()
				if b.Get() != nil || b.Len() != 0 {
					t.Fatal("closed bytes are there")
				}
			}
			if st := m.Stats(); st.Live != 0 || st.Bytes != 0 {
				t.Errorf("%+v after everything was closed", st)
			}
			if err := m.Destroy(waiting(0)); err != nil {
				t.Error(err)
			}
			if n := h.Stats().Blocks; n != 0 {
				t.Errorf("%d blocks of the heap are left", n)
			}
		})
	}
}

func TestMemoryMistakes(t *testing.T) {
	m := NewMemory(newHeap(t), MemoryOptions{Name: "Cache"})
	mustMisuse(t, "Cache.NewBytes", func() { m.NewBytes(-1) }, "negative")
	mustMisuse(t, "Cache.NewBytes", func() { m.NewBytes(math.MinInt) }, "negative")
	for _, n := range []int{math.MaxInt, math.MaxInt - 15, math.MaxInt - 1<<20} {
		if _, err := m.NewBytes(n); !errors.Is(err, cheap.ErrNoMemory) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	b := newBytes(t, m, 10)
	mustMisuse(t, "Cache.Resize", func() { b.owner.Resize(20) }, "size")
	if b.Len() != 10 {
		t.Errorf("Len is %d", b.Len())
	}
	if st := m.Stats(); st.Live != 1 {
		t.Errorf("%+v", st)
	}
}

func TestString(t *testing.T) {
	m := NewMemory(newHeap(t), MemoryOptions{})
	for _, want := range []string{"", "a", "hello, world", strings.Repeat("x", 100_000), "\x00\xff"} {
		s, err := m.NewString(want)
		if err != nil {
			t.Fatal(err)
		}
		got := s.String()
		s.Use(func(v string) {
			if v != want || s.Len() != len(want) {
				t.Errorf("%q is %q", want, v)
			}
		})
		if fmt.Sprint(s) != want {
			t.Errorf("%q prints as %q", want, fmt.Sprint(s))
		}
		s.Close()
		if got != want || s.Len() != 0 {
			t.Errorf("the copy of %q is %q", want, got)
		}
		if text := fmt.Sprint(s); text != "" {
			t.Errorf("a closed one prints as %q", text)
		}
		if err := s.TryUse(func(string) error { t.Error("called"); return nil }); err != ErrClosed {
			t.Errorf("TryUse: %v", err)
		}
		mustMisuse(t, "own.Memory.Use", func() { s.Use(func(string) {}) }, "closed")
	}
	if text := new(String).String(); text != "" {
		t.Errorf("the zero String is %q", text)
	}
}

// TestMemoryErrors meets the limit of the heap.
func TestMemoryErrors(t *testing.T) {
	h, err := cheap.NewHeap(cheap.HeapOptions{Limit: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	heapUntilEnd(t, h)
	m := NewMemory(h, MemoryOptions{})
	for _, n := range []int{100, 10_000, 100_000} {
		var all []*Bytes
		for {
			b, err := m.NewBytes(n)
			if err != nil {
				if !errors.Is(err, cheap.ErrLimit) || !strings.Contains(err.Error(), "own.Memory.NewBytes") {
					t.Errorf("%d bytes: %v", n, err)
				}
				break
			}
			all = append(all, b)
		}
		if len(all)*n < 1<<20 {
			t.Errorf("the limit of 2 MiB is met by %d blocks of %d bytes", len(all), n)
		}
		for _, b := range all {
			b.Close()
		}
		mustBeEmpty(t, h)
	}
}

// TestChunkComesBack closes the blocks of batches one by one. The chunk goes back
// with the last.
func TestChunkComesBack(t *testing.T) {
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{})
	var all []*Bytes
	for range 5000 {
		all = append(all, newBytes(t, m, 100))
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, b := range all {
		b.Close()
		b.Close()
	}
	// Only open batches need a collection.
	if n, shards := h.Stats().Blocks, int64(runtime.GOMAXPROCS(0)+1); n > shards {
		t.Errorf("%d chunks are there, with %d shards", n, shards)
	}
	mustBeEmpty(t, h)
	runtime.KeepAlive(all)
}

// TestForgottenMemoryComesBack forgets all sorts of blocks, of which some were
// closed.
func TestForgottenMemoryComesBack(t *testing.T) {
	for _, o := range []MemoryOptions{{}, {Batch: 1}, {Trace: true}, {OnCollect: func(Collected) {}}} {
		h := newHeap(t)
		m := NewMemory(h, o)
		testcall.Aside(func() {
			for i := range times(20_000) {
				x := newMem[[100]byte](t, m)
				b := newBytes(t, m, i%2000)
				if i%5000 == 0 {
					newBytes(t, m, 100_000)
				}
				s, err := m.NewString("hello")
				if err != nil {
					t.Error(err)
				}
				switch i % 4 {
				case 0:
					x.Close()
				case 1:
					b.Close()
				case 2:
					s.Close()
				}
			}
		})
		collectAtMost(t, few, "forgotten blocks", func() bool { return h.Stats().Blocks == 0 })
		wait(t, "the account has none", func() bool { return m.Stats().Live == 0 })
		if st := m.Stats(); st.Bytes != 0 || st.Collected == 0 {
			t.Errorf("%+v", st)
		}
		if err := m.Destroy(waiting(0)); err != nil {
			t.Error(err)
		}
	}
}

// TestMemoryPins keeps one block alive in a row of many, and finds no more than
// what the bound allows.
func TestMemoryPins(t *testing.T) {
	for _, pinned := range []int{0, 1000, 4096} {
		for _, size := range []int{16, 100, 900, 10_000, 100_000} {
			h := newHeap(t)
			m := NewMemory(h, MemoryOptions{Pinned: pinned})
			var kept []*Bytes
			total := times(30 << 20)
			testcall.Aside(func() {
				for i := range total / max(size, 200) {
					b := newBytes(t, m, size)
					if i%300 == 0 {
						kept = append(kept, b)
					}
				}
			})
			bound := int64(len(kept)) * int64(max(pinned, size+16, map[bool]int{true: defaultPinned}[pinned == 0]))
			bound += bound / 4 // blocks of the heap are larger than requested by up to that much
			collectAtMost(t, few, fmt.Sprintf("blocks of %d with Pinned %d beyond %d bytes", size, pinned, bound), func() bool {
				return h.Stats().Bytes <= bound && h.Stats().Blocks <= int64(len(kept))
			})
			for _, b := range kept {
				if b.Len() != size {
					t.Fatal("a kept block is gone")
				}
			}
			runtime.KeepAlive(kept)
		}
	}
}

// TestFewBlocksHoldLittle: a chunk is as large as its Memory is busy.
func TestFewBlocksHoldLittle(t *testing.T) {
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{})
	var all []*Bytes
	for range 3 {
		all = append(all, newBytes(t, m, 100))
	}
	if st := h.Stats(); st.Bytes > 3*(2<<10) { // the goroutine may have been on three Ps
		t.Errorf("three blocks of 100 bytes hold %d", st.Bytes)
	}
	runtime.KeepAlive(all)
}

// onProcs sets GOMAXPROCS and returns the old value. It collects before, because
// the runtime forgets cleanups that the sweeper has just found on a P that is
// removed, until there is such a P again.
func onProcs(n int) (was int) {
	runtime.GC()
	return runtime.GOMAXPROCS(n)
}

// quietly runs f on one P and without collections, so that it stays in one shard
// and its batch is not sealed.
func quietly(t *testing.T, f func()) {
	t.Helper()
	defer onProcs(onProcs(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	gc(t) // none is under way
	gc(t)
	f()
}

// inLargeBatch has the next block of m on this P begin a batch of more than a
// hundred, with a chunk of about 16 bytes for each. It returns the size of the
// chunk.
func inLargeBatch(t *testing.T, m *Memory) (chunk int) {
	for {
		b := newBytes(t, m, 0)
		if n := int(b.owner.ref.Sentinel().Batch.Size()); n > 100 && int(b.owner.ref.Index) == n-1 {
			return (2*n + 1) * 16 // its batch is full, and the next one has twice as many
		}
	}
}

// TestUncarve makes and closes blocks one after the other, all at the same
// address.
func TestUncarve(t *testing.T) {
	m := NewMemory(newHeap(t), MemoryOptions{})
	quietly(t, func() {
		inLargeBatch(t, m)
		first := newBytes(t, m, 0)
		where := first.owner.address()
		for range 20 {
			b := newBytes(t, m, 50)
			c := newBytes(t, m, 500)
			if b.owner.address() != where+16 || c.owner.address() != where+16+64 {
				t.Errorf("blocks are at %#x and %#x, behind one at %#x", b.owner.address(), c.owner.address(), where)
			}
			c.Close()
			b.Close()
			b.Close()
		}
		// A block that is closed out of order makes no room.
		b, c := newBytes(t, m, 50), newBytes(t, m, 50)
		b.Close()
		d := newBytes(t, m, 50)
		if d.owner.address() == where+16 {
			t.Error("the first of two was used again before the second was closed")
		}
		// In Use, nothing makes room.
		d.Use(func([]byte) {
			d.Close()
			if e := newBytes(t, m, 50); e.owner.address() <= where+16+128 {
				t.Error("a block in Use was used again")
			} else {
				e.Close()
			}
		})
		c.Close()
		first.Close()
	})
}

// TestChunkBeginsAnew: where all blocks of an open batch are closed, whatever the
// order, the next one that finds no place begins at the front.
func TestChunkBeginsAnew(t *testing.T) {
	m := NewMemory(newHeap(t), MemoryOptions{})
	quietly(t, func() {
		chunk := inLargeBatch(t, m)
		where := uintptr(0)
		for range 20 {
			a := newBytes(t, m, chunk/2)
			if where == 0 {
				where = a.owner.address()
			} else if a.owner.address() != where {
				t.Errorf("a block is at %#x, the first was at %#x", a.owner.address(), where)
			}
			b, c := newBytes(t, m, chunk/5), newBytes(t, m, chunk/5)
			a.Close()
			b.Close()
			c.Close()
		}
	})
}

func TestDisownMemory(t *testing.T) {
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{Pinned: 1000})
	b := newBytes(t, m, 100)
	if p, err := b.Disown(); p != nil || err != ErrShared {
		t.Errorf("Disown of a carved block: %v, %v", p, err)
	}
	b.Close()
	if _, err := b.Disown(); err != ErrClosed {
		t.Errorf("Disown of a closed block: %v", err)
	}
	b = newBytes(t, m, 1000)
	b.Use(func(s []byte) {
		if _, err := b.Disown(); err != ErrInUse {
			t.Errorf("Disown in Use: %v", err)
		}
		s[999] = 5
	})
	p, err := b.Disown()
	if err != nil || !b.Closed() || !h.Owns(unsafe.Pointer(&p[0])) {
		t.Fatalf("Disown of an exact block: %v, %v", p, err)
	}
	b.Close()
	gc(t)
	gc(t)
	if p[999] != 5 || !h.Owns(unsafe.Pointer(&p[0])) {
		t.Error("a disowned block is gone")
	}
	h.Free(unsafe.Pointer(&p[0]))
	if st := m.Stats(); st.Live != 0 || st.Bytes != 0 {
		t.Errorf("%+v", st)
	}
}

func TestDestroyMemory(t *testing.T) {
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{Name: "Cache"})
	var all []*Bytes
	for i := range 1000 {
		all = append(all, newBytes(t, m, 10*i))
	}
	g, err := m.NewGroup()
	if err != nil {
		t.Fatal(err)
	}
	all[0].Close()
	all[1].Use(func([]byte) {
		err = m.Destroy(doneAfter(1))
	})
	var e *DestroyError
	if !errors.As(err, &e) || e.NeverClosed != 1000 || e.InUse != 1 || e.Pool != "Cache" {
		t.Errorf("Destroy: %+v", err)
	}
	for _, b := range all {
		if !b.Closed() {
			t.Fatal("open after Destroy")
		}
		b.Close()
	}
	if !g.Closed() {
		t.Error("a group is open after Destroy")
	}
	if n := h.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks are left", n)
	}
	if _, err := m.NewBytes(10); err != ErrDestroyed {
		t.Errorf("Bytes: %v", err)
	}
	if _, err := m.NewBytes(1 << 20); err != ErrDestroyed {
		t.Errorf("Bytes: %v", err)
	}
	if _, err := m.NewString("x"); err != ErrDestroyed {
		t.Errorf("String: %v", err)
	}
	if _, err := NewMem[int](m); err != ErrDestroyed {
		t.Errorf("NewMem: %v", err)
	}
	if _, err := m.NewGroup(); err != ErrDestroyed {
		t.Errorf("Group: %v", err)
	}
	if err := m.Destroy(waiting(0)); err != ErrDestroyed {
		t.Errorf("Destroy: %v", err)
	}
	if n := h.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks are left", n)
	}
}

// TestCloseInUseMemory: the block stays until the last Use has returned, and its
// chunk with it.
func TestCloseInUseMemory(t *testing.T) {
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{})
	x := newMem[[1000]byte](t, m)
	x.Use(func(p *[1000]byte) {
		x.Close()
		p[0], p[999] = 1, 2
		for range 3 { // seals
			gc(t)
		}
		for range 100 {
			newMem[[1000]byte](t, m)
		}
		if p[0] != 1 || p[999] != 2 {
			t.Error("the block was used again")
		}
	})
	mustBeEmpty(t, h)
}

// TestBlockWithChildren: a block may be a parent like any other resource.
func TestBlockWithChildren(t *testing.T) {
	h := newHeap(t)
	w := newWorld(t, 300)
	m := NewMemory(h, MemoryOptions{})
	p := w.pool(Options{})
	for _, forget := range []bool{false, true} {
		testcall.Aside(func() {
			for i := range 100 {
				b := newBytes(t, m, 100)
				child := &thing{cell: w.create(10)}
				if err := p.OwnUnder(&child.Owner, b.Owner(), child.cell.pointer(), 10); err != nil {
					t.Error(err)
				}
				if i%2 == 0 && !forget {
					b.Close()
					if !b.Closed() || !child.cell.alive() {
						t.Error("a block with a child was closed wrongly")
					}
					child.Close()
				}
			}
		})
		collect(t, "blocks with children", func() bool { return h.Stats().Blocks == 0 && w.alive() == 0 })
	}
}

// TestDroppedMemory drops a Memory with all that it has made. Nothing stays but
// the heap.
func TestDroppedMemory(t *testing.T) {
	h := newHeap(t)
	var gone atomic.Bool
	testcall.Aside(func() {
		m := NewMemory(h, MemoryOptions{})
		for i := range 1000 {
			newBytes(t, m, i)
			newGroup(t, m).Malloc(i)
		}
		runtime.AddCleanup(m, func(b *atomic.Bool) { b.Store(true) }, &gone)
	})
	collect(t, "the blocks and the Memory", func() bool { return h.Stats().Blocks == 0 && gone.Load() })
}

func TestMemoryTells(t *testing.T) {
	h := newHeap(t)
	var mu sync.Mutex
	count, stack := 0, ""
	m := NewMemory(h, MemoryOptions{Name: "Cache", Trace: true, OnCollect: func(c Collected) {
		mu.Lock()
		defer mu.Unlock()
		count += c.Count
		stack = c.Stack
	}})
	testcall.Aside(func() {
		for range 100 {
			newBytes(t, m, 100)
		}
	})
	collect(t, "told of all", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return count == 100
	})
	if !strings.Contains(stack, "TestMemoryTells") || strings.Contains(stack, "carve") {
		t.Errorf("the stack is\n%s", stack)
	}
	if err := m.Destroy(waiting(0)); err != nil {
		t.Error(err)
	}
}

// heldByPools returns the bytes in the account of all pools.
func heldByPools() int64 {
	all := account.List()
	return all[slices.IndexFunc(all, func(u account.Usage) bool { return u.Name == "own" })].Held
}

// TestMemoryIsCountedOnce: the heap has the bytes in its account.
func TestMemoryIsCountedOnce(t *testing.T) {
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{})
	before := heldByPools()
	var all []*Bytes
	for range 2000 {
		all = append(all, newBytes(t, m, 1000))
	}
	all = append(all, newBytes(t, m, 1<<20))
	if n := heldByPools() - before; n != 0 {
		t.Errorf("the pools' account has %d bytes of a heap", n)
	}
	if st := h.Stats(); st.Held < 3_000_000 || account.Held() < st.Held {
		t.Errorf("the heap holds %d, all accounts %d", st.Held, account.Held())
	}
	for _, b := range all {
		b.Close()
	}
	if n := heldByPools() - before; n != 0 {
		t.Errorf("the pools' account has %d bytes of a heap", n)
	}
}

// TestMemoryAllocs: what a block costs in Go is its share of the batch.
func TestMemoryAllocs(t *testing.T) {
	m := NewMemory(newHeap(t), MemoryOptions{})
	var before, after runtime.MemStats
	const n = 20_000
	f := func() {
		for range n {
			if _, err := NewMem[[100]byte](m); err != nil {
				t.Error(err)
			}
		}
	}
	f()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if got := float64(after.Mallocs-before.Mallocs) / n; got > 0.1 && !race.Build {
		t.Errorf("%v Go allocations a block", got)
	}
	if got := float64(after.TotalAlloc-before.TotalAlloc) / n; got > 41 && !race.Build {
		t.Errorf("%v Go bytes a block", got)
	}
}

// TestHammerMemory has goroutines make blocks, write to them, hand them to each
// other, verify, close and forget them, while others collect.
func TestHammerMemory(t *testing.T) {
	for _, o := range []MemoryOptions{{}, {Batch: 3}, {Pinned: 2000}, {Unshared: true}} {
		h := newHeap(t)
		m := NewMemory(h, o)
		const goroutines = 8
		stop := make(chan struct{})
		var collector, workers sync.WaitGroup
		collector.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					runtime.GC()
					m.Stats()
				}
			}
		})
		handed := make(chan *Bytes, 100)
		for w := range goroutines {
			workers.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), 1))
				var mine [50]*Bytes
				verify := func(b *Bytes) {
					b.Use(func(s []byte) {
						if len(s) == 0 {
							return
						}
						if want := s[0]; bytes.Count(s, []byte{want}) != len(s) {
							t.Error("a block has changed")
						}
						for i := range s {
							s[i] = byte(w)
						}
					})
				}
				for i := range times(20_000) {
					j := r.IntN(len(mine))
					if b := mine[j]; b != nil {
						mine[j] = nil
						verify(b)
						switch r.IntN(4) {
						case 0: // forget
						case 1:
							select {
							case handed <- b:
							default:
							}
						default:
							b.Close()
						}
					}
					select {
					case b := <-handed:
						verify(b)
						mine[j] = b
					default:
						n := r.IntN(200)
						if i%100 == 0 {
							n = r.IntN(100_000)
						}
						b, err := m.NewBytes(n)
						if err != nil {
							t.Error(err)
							return
						}
						s := b.Get()
						if bytes.Count(s, []byte{0}) != n {
							t.Error("a block is not zero")
						}
						for k := range s {
							s[k] = byte(i)
						}
						runtime.KeepAlive(b)
						mine[j] = b
					}
				}
			})
		}
		workers.Wait()
		close(stop)
		collector.Wait()
		close(handed)
		for range handed {
		}
		mustBeEmpty(t, h)
		if st := m.Stats(); st.Live != 0 || st.Bytes != 0 {
			t.Errorf("%+v", st)
		}
	}
}

// TestHammerDestroyMemory destroys a Memory while goroutines use it, close what
// they have and forget it, with collections all the time.
func TestHammerDestroyMemory(t *testing.T) {
	for round := range times(50) {
		h := newHeap(t)
		m := NewMemory(h, MemoryOptions{Batch: 20})
		var all sync.WaitGroup
		var made atomic.Int64
		for w := range 4 {
			all.Go(func() {
				var last [10]*Mem[[64]byte]
				for i := 0; ; i++ {
					made.Add(1)
					x, err := NewMem[[64]byte](m)
					if err == ErrDestroyed {
						return
					} else if err != nil {
						t.Error(err)
						return
					}
					if old := last[i%10]; old != nil && i%3 == 0 {
						old.Close()
					}
					last[i%10] = x
					if w == 0 && i%500 == 0 {
						runtime.GC()
					}
					if g, err := m.NewGroup(); err == nil && i%2 == 0 {
						g.Close()
					}
				}
			})
		}
		for made.Load() < int64(round*100) {
			runtime.Gosched()
		}
		m.Destroy(patient(t))
		all.Wait()
		wait(t, "the blocks are free", func() bool { return h.Stats().Blocks == 0 })
		if st := m.Stats(); st.Live != 0 || st.Bytes != 0 {
			t.Errorf("%+v", st)
		}
	}
}

// TestMemoryChecked lets the runtime look for mistakes with cleanups.
func TestMemoryChecked(t *testing.T) {
	out, status := testchild.Run(t, func() {
		h, _ := cheap.NewHeap(cheap.HeapOptions{})
		var kept []any
		for _, batch := range []int{1, 5, 20, 256} {
			m := NewMemory(h, MemoryOptions{Batch: batch})
			for i := range 400 {
				b, _ := m.NewBytes(i)
				g, _ := m.NewGroup()
				g.Malloc(10)
				if i%100 == 0 {
					kept = append(kept, b, g)
				}
			}
		}
		for range 5 {
			runtime.GC()
		}
		runtime.KeepAlive(kept)
	}, "GODEBUG=checkfinalizers=1")
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "checkfinalizers: queue:") { // it says how many it has
			t.Errorf("reported: %s", line)
		}
	}
	if status != 0 {
		t.Errorf("status %d", status)
	}
}

// TestLeakedMemory: with CHEAPOWN=leak nothing comes back by itself, but by Close
// and Destroy.
func TestLeakedMemory(t *testing.T) {
	out, status := testchild.Run(t, func() {
		h, _ := cheap.NewHeap(cheap.HeapOptions{})
		m := NewMemory(h, MemoryOptions{})
		testcall.Aside(func() {
			for range 1000 {
				m.NewBytes(100)
			}
			b, _ := m.NewBytes(1 << 20)
			b.Close()
		})
		for range 5 {
			gc(t)
		}
		before := m.Stats().Live
		err := m.Destroy(waiting(0))
		fmt.Println(before, err, h.Stats().Blocks)
	}, "CHEAPOWN=leak")
	if want := "1000 cheap: own.Memory: Pool.Destroy: 1000 were never closed 0"; status != 0 || strings.TrimSpace(out) != want {
		t.Errorf("status %d:\n%s", status, out)
	}
}

// TestMemoryProcs changes the number of Ps while blocks are made on all of them.
// Blocks that were carved on a P that is gone are freed as well.
func TestMemoryProcs(t *testing.T) {
	defer onProcs(onProcs(1))
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{})
	for _, procs := range []int{1, 8, 2, 16, 1} {
		onProcs(procs)
		var all sync.WaitGroup
		for range 2 * procs {
			all.Go(func() {
				for i := range times(2000) {
					b := newBytes(t, m, i%300)
					if i%3 == 0 {
						b.Close()
					}
					if i%100 == 0 {
						newGroup(t, m).Malloc(i)
						runtime.Gosched()
					}
				}
			})
		}
		all.Wait()
	}
	collectAtMost(t, few, "blocks of all Ps", func() bool { return h.Stats().Blocks == 0 })
	if st := m.Stats(); st.Live != 0 || st.Bytes != 0 {
		t.Errorf("%+v", st)
	}
}
