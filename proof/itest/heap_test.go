package itest

import (
	"errors"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/test/shadow"
)

// A heapModel uses a heap and some Locals of it from one goroutine, or from one
// after the other.
type heapModel struct {
	h       *cheap.Heap
	locals  []*cheap.Local
	live    shadow.Set
	mallocs int64
}

// general is what a Heap and a Local have in common.
type general interface {
	cheap.AlignedAllocator
	Calloc(count, size int) unsafe.Pointer
	Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer
}

// TestHeapModel is the model of [cheap.Heap] and [cheap.Local].
func TestHeapModel(t *testing.T) {
	setDecay(t, cheap.DefaultDecay)
	rapid.Check(t, func(t *rapid.T) {
		m := &heapModel{h: newHeap(t)}
		t.Repeat(rapid.StateMachineActions(m))
		m.finish(t)
	})
}

// who draws the heap or one of its Locals.
func (m *heapModel) who(t *rapid.T) general {
	if i := rapid.IntRange(0, len(m.locals)).Draw(t, "who"); i > 0 {
		return m.locals[i-1]
	}
	return m.h
}

// added enters a block that was asked for.
func (m *heapModel) added(t *rapid.T, p unsafe.Pointer, size, align int) {
	if p == nil {
		t.Fatalf("no block of %d bytes", size)
	}
	m.mallocs++
	usable := m.h.UsableSize(p)
	if err := m.live.Add(p, size, usable, max(align, sizeclass.Quantum)); err != nil {
		t.Fatal(err)
	}
	m.looks(t, p, size, align)
}

// looks compares what the heap says about the block at p, with size bytes.
func (m *heapModel) looks(t *rapid.T, p unsafe.Pointer, size, align int) {
	if !m.h.Owns(p) {
		t.Fatalf("Owns(%p) is false", p)
	}
	if usable, want := m.h.UsableSize(p), cheap.GoodSize(size); usable < want || align <= sizeclass.Quantum && usable != want {
		t.Fatalf("a block of %d bytes has %d, GoodSize says %d", size, usable, want)
	}
}

// removed forgets the block at p, which free is about to free.
func (m *heapModel) removed(t *rapid.T, p unsafe.Pointer, free func()) {
	if err := m.live.Remove(p); err != nil {
		t.Fatal(err)
	}
	free()
	if m.h.Owns(p) {
		t.Fatalf("Owns(%p) is true after it was freed", p)
	}
}

func (m *heapModel) Malloc(t *rapid.T) {
	size := sizes.Draw(t, "size")
	m.added(t, m.who(t).Malloc(size), size, 1)
}

func (m *heapModel) TryMalloc(t *rapid.T) {
	size := sizes.Draw(t, "size")
	p, err := m.h.TryMalloc(size)
	if err != nil {
		t.Fatal(err)
	}
	m.added(t, p, size, 1)
}

func (m *heapModel) Calloc(t *rapid.T) {
	count := rapid.IntRange(1, 9).Draw(t, "count")
	size := sizes.Draw(t, "size") / count
	p := m.who(t).Calloc(count, size)
	if p != nil {
		if err := shadow.Zero(p, count*size); err != nil {
			t.Fatal(err)
		}
	}
	m.added(t, p, count*size, 1)
}

func (m *heapModel) AlignedMalloc(t *rapid.T) {
	most := 4 << 20
	if scarce {
		most = 256 << 10
	}
	size, align := sizes.Draw(t, "size"), aligns(most).Draw(t, "align")
	m.added(t, m.who(t).AlignedMalloc(size, align), size, align)
}

// Burst allocates many blocks of one size.
func (m *heapModel) Burst(t *rapid.T) {
	n, size := drawBurst(t, classSizes)
	for who := m.who(t); n > 0; n-- {
		m.added(t, who.Malloc(size), size, 1)
	}
}

func (m *heapModel) Realloc(t *rapid.T) {
	from := drawBlock(t, &m.live)
	size := sizes.Draw(t, "size")
	to := m.who(t).Realloc(osmem.Pointer(from.Addr), size)
	usable := 0
	if to != nil {
		usable = m.h.UsableSize(to)
	}
	if uintptr(to) != from.Addr {
		m.mallocs++
		if _, again := m.live.Find(from.Addr); !again || m.h.Owns(osmem.Pointer(from.Addr)) {
			t.Fatalf("Owns(%#x) is true after the block was moved to %p", from.Addr, to)
		}
	}
	if err := m.live.Move(from.Addr, to, size, usable, sizeclass.Quantum); err != nil {
		t.Fatal(err)
	}
	if !m.h.Owns(to) || usable < size {
		t.Fatalf("realloc to %d bytes: %p has %d, Owns = %v", size, to, usable, m.h.Owns(to))
	}
}

func (m *heapModel) Free(t *rapid.T) {
	p := osmem.Pointer(drawBlock(t, &m.live).Addr)
	who := m.who(t)
	m.removed(t, p, func() { who.Free(p) })
}

// FreeElsewhere frees a block from another goroutine.
func (m *heapModel) FreeElsewhere(t *rapid.T) {
	p := osmem.Pointer(drawBlock(t, &m.live).Addr)
	m.removed(t, p, func() {
		done := make(chan bool)
		go func() { m.h.Free(p); close(done) }()
		<-done
	})
}

// FreeMany frees neighbours, or every other one, so that spans become empty.
func (m *heapModel) FreeMany(t *rapid.T) {
	if m.live.Len() == 0 {
		t.Skip("no block is live")
	}
	first := rapid.IntRange(0, m.live.Len()-1).Draw(t, "first")
	n := rapid.IntRange(1, m.live.Len()).Draw(t, "n")
	step := rapid.IntRange(0, 1).Draw(t, "step")
	who := m.who(t)
	for ; n > 0 && first < m.live.Len(); n, first = n-1, first+step {
		p := osmem.Pointer(m.live.At(first).Addr)
		m.removed(t, p, func() { who.Free(p) })
	}
}

// Ask asks about addresses in and near a block.
func (m *heapModel) Ask(t *rapid.T) {
	b := drawBlock(t, &m.live)
	off := rapid.IntRange(-100, b.Usable+100).Draw(t, "offset")
	addr := b.Addr + uintptr(off)
	at, ok := m.live.Find(addr)
	if owns, want := m.h.Owns(osmem.Pointer(addr)), ok && at.Addr == addr; owns != want {
		t.Fatalf("Owns(%#x) is %v; near it is %v", addr, owns, b)
	}
	if usable := m.h.UsableSize(osmem.Pointer(b.Addr)); usable != b.Usable {
		t.Fatalf("UsableSize of %v was %d and is %d", b, b.Usable, usable)
	}
}

func (m *heapModel) Trim(*rapid.T) { m.h.Trim() }

func (m *heapModel) OpenLocal(t *rapid.T) {
	if len(m.locals) == 4 {
		t.Skip("there are enough Locals")
	}
	m.locals = append(m.locals, m.h.NewLocal())
}

func (m *heapModel) CloseLocal(t *rapid.T) {
	if len(m.locals) == 0 {
		t.Skip("there is no Local")
	}
	i := rapid.IntRange(0, len(m.locals)-1).Draw(t, "local")
	m.locals[i].Destroy()
	m.locals = append(m.locals[:i], m.locals[i+1:]...)
}

func (m *heapModel) SetDecay(t *rapid.T) {
	cheap.SetDecay(rapid.SampledFrom([]time.Duration{-1, 0, time.Microsecond, time.Millisecond, time.Second}).Draw(t, "decay"))
}

// Check compares all contents and counts with the reference.
func (m *heapModel) Check(t *rapid.T) {
	if err := m.live.CheckAll(osmem.Pointer); err != nil {
		t.Fatal(err)
	}
	blocks, bytes := int64(m.live.Len()), m.live.Bytes()
	s := m.h.Stats()
	if s.Blocks != blocks || s.Bytes != bytes || s.Mallocs != m.mallocs || s.Frees != m.mallocs-blocks {
		t.Fatalf("%+v, but %d blocks of %d bytes are live after %d mallocs", s, blocks, bytes, m.mallocs)
	}
	if s.Cached < 0 || s.Cached > int64(s.Caches)*s.CacheMax || s.Held < s.Bytes+s.Cached {
		t.Fatalf("%+v: more is cached than may be, or less held than is live and cached", s)
	}
}

// finish destroys the heap, with live blocks if there are some and without.
func (m *heapModel) finish(t *rapid.T) {
	if n := m.live.Len(); n > 0 {
		var live *cheap.LiveError
		if err := m.h.Destroy(); !errors.As(err, &live) || live.Blocks != int64(n) || live.Bytes != m.live.Bytes() {
			t.Fatalf("Destroy with %d live blocks of %d bytes: %v", n, m.live.Bytes(), err)
		}
	}
	for m.live.Len() > 0 {
		p := osmem.Pointer(m.live.At(m.live.Len() / 2).Addr)
		m.removed(t, p, func() { m.h.Free(p) })
	}
	for _, l := range m.locals {
		l.Destroy()
	}
	m.Check(t)
	m.h.Trim()
	if s := m.h.Stats(); s.Cached != 0 {
		t.Fatalf("%+v after Trim", s)
	}
	if err := m.h.Destroy(); err != nil {
		t.Fatal(err)
	}
	if err := m.h.Destroy(); err != cheap.ErrDestroyed {
		t.Fatalf("a second Destroy returns %v", err)
	}
}
