package own

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
)

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

func TestClosePoolMemory(t *testing.T) {
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{Name: "Cache"})
	var all []*Bytes
	for i := range 1000 {
		all = append(all, newBytes(t, m, 10*i))
	}
	g, err := m.NewGroup()
	testcall.Must(t, err)
	all[0].Close()
	all[1].Use(func([]byte) {
		err = m.CloseWait(doneAfter(1))
	})
	var e *CloseError
	if !errors.As(err, &e) || e.NeverClosed != 1000 || e.InUse != 1 || e.Pool != "Cache" {
		t.Errorf("CloseWait: %+v", err)
	}
	for _, b := range all {
		if !b.Closed() {
			t.Fatal("open after CloseWait")
		}
		b.Close()
	}
	if !g.Closed() {
		t.Error("a group is open after CloseWait")
	}
	if n := h.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks are left", n)
	}
	if _, err := m.NewBytes(10); err != ErrPoolClosed {
		t.Errorf("Bytes: %v", err)
	}
	if _, err := m.NewBytes(1 << 20); err != ErrPoolClosed {
		t.Errorf("Bytes: %v", err)
	}
	if _, err := NewMem[int](m); err != ErrPoolClosed {
		t.Errorf("NewMem: %v", err)
	}
	if _, err := m.NewGroup(); err != ErrPoolClosed {
		t.Errorf("Group: %v", err)
	}
	if err := m.CloseWait(waiting(0)); err != ErrPoolClosed {
		t.Errorf("CloseWait: %v", err)
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
				testcall.Want(t, child.OwnWith(p, child.cell.pointer(), With{Size: 10, Parent: b.Owner()}))
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
		count += int(c.Count)
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
	testcall.Want(t, m.CloseWait(waiting(0)))
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
	if st := h.Stats(); st.Held < 3_000_000 || account.Process.Held() < st.Held {
		t.Errorf("the heap holds %d, all accounts %d", st.Held, account.Process.Held())
	}
	for _, b := range all {
		b.Close()
	}
	if n := heldByPools() - before; n != 0 {
		t.Errorf("the pools' account has %d bytes of a heap", n)
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

// TestLeakedMemory: with CHEAP_OWN=leak nothing comes back by itself, but by Close
// and CloseWait.
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
		err := m.CloseWait(waiting(0))
		fmt.Println(before, err, h.Stats().Blocks)
	}, "CHEAP_OWN=leak")
	if want := "1000 cheap: own.Memory: Pool.Close: 1000 were never closed 0"; status != 0 || strings.TrimSpace(out) != want {
		t.Errorf("status %d:\n%s", status, out)
	}
}
