package heap

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// TestDestroyLive destroys a heap that has live blocks, some of which were
// allocated by a Local, and goes on using it.
func TestDestroyLive(t *testing.T) {
	h := NewHeap(t, Options{})
	l := h.NewLocal()
	var live shadow.Set
	var blocks []unsafe.Pointer
	for i, size := range []int{0, 1, 100, 100, 5000, 20_000, 40_000, span.OwnMapping} {
		var p unsafe.Pointer
		if i%2 == 0 {
			p = h.Malloc(size)
		} else {
			p = l.Malloc(size)
		}
		testcall.Must(t, live.Add(p, size, h.UsableSize(p), sizeclass.Quantum))
		blocks = append(blocks, p)
	}
	for _, p := range blocks {
		err := h.Destroy()
		var e *LiveError
		if !errors.As(err, &e) || e.Op != "Heap.Destroy" || e.Blocks != int64(live.Len()) || e.Bytes != live.Bytes() {
			t.Fatalf("Destroy with %d blocks of %d bytes: %v", live.Len(), live.Bytes(), err)
		}
		h.Free(h.Malloc(64))
		l.Free(l.Malloc(64))
		if err := live.Remove(p); err != nil { // looks at the contents
			t.Fatal(err)
		}
		h.Free(p)
	}
	testcall.Want(t, h.Destroy())
	if err := h.Destroy(); err != ErrDestroyed {
		t.Errorf("second Destroy: %v", err)
	}
}

// TestDestroyed calls everything on a heap that is no more, and on a Local of
// it.
func TestDestroyed(t *testing.T) {
	for _, all := range []bool{false, true} {
		h, err := New(Options{})
		testcall.Must(t, err)
		other := NewHeap(t, Options{})
		l := h.NewLocal()
		var old []unsafe.Pointer
		for _, size := range []int{16, 1000, 20_000, 100_000, span.OwnMapping} {
			old = append(old, h.Malloc(size))
		}
		l.Free(l.Malloc(16))
		if all {
			h.DestroyAll()
		} else {
			testheap.FreeAll(h, old)
			testcall.Must(t, h.Destroy())
		}
		h.DestroyAll() // nothing
		for name, f := range map[string]func(){
			"Malloc":              func() { h.Malloc(16) },
			"Malloc large":        func() { h.Malloc(1 << 20) },
			"TryMalloc":           func() { _, _ = h.TryMalloc(16) },
			"Calloc":              func() { h.Calloc(1, 16) },
			"Calloc overflow":     func() { h.Calloc(1<<30, 1<<30) },
			"Realloc":             func() { h.Realloc(nil, 16) },
			"AlignedMalloc":       func() { h.AlignedMalloc(16, 16) },
			"Owns":                func() { h.Owns(old[0]) },
			"Trim":                h.Trim,
			"NewLocal":            func() { h.NewLocal() },
			"Local.Malloc":        func() { l.Malloc(16) },
			"Local.Malloc large":  func() { l.Malloc(1 << 20) },
			"Local.Calloc":        func() { l.Calloc(1, 16) },
			"Local.Realloc":       func() { l.Realloc(nil, 16) },
			"Local.AlignedMalloc": func() { l.AlignedMalloc(16, 16) },
		} {
			e, ok := testcall.Catch(f).(*MisuseError)
			if !ok || e.Reason != "the heap is destroyed" {
				t.Errorf("%s: %v", name, e)
			}
		}
		for _, p := range old {
			for op, f := range testheap.Accusers(h, l) {
				if e, ok := testcall.Catch(func() { f(p) }).(*MisuseError); !ok || e.Op != op {
					t.Errorf("%s of a block: %v", op, e)
				}
			}
			if e, ok := testcall.Catch(func() { other.Free(p) }).(*MisuseError); !ok || e.Addr != uintptr(p) {
				t.Errorf("another heap frees a block of it: %v", e)
			}
		}
		l.Destroy()
	}
}

// TestDestroyGivesBack looks whether another heap gets the memory that a heap
// had, with live blocks or without.
func TestDestroyGivesBack(t *testing.T) {
	const rounds, bytes = 40, 8 << 20
	for _, withLocal := range []bool{false, true} {
		spans := map[uintptr]bool{}
		for range rounds {
			h, err := New(Options{})
			testcall.Must(t, err)
			if withLocal {
				defer h.NewLocal().Destroy()
			}
			for range bytes / 100_000 {
				spans[uintptr(h.Malloc(100_000))&^(span.UnitSize-1)] = true
			}
			h.DestroyAll()
		}
		if len(spans) > 3*bytes/100_000 {
			t.Errorf("%d heaps, one after the other, took %d spans", rounds, len(spans))
		}
	}
}

// TestOvertaken calls what is left of slow paths when another goroutine has
// destroyed the heap meanwhile, and another heap has its memory. They leave that
// alone.
func TestOvertaken(t *testing.T) {
	const size, n = 512, 100 // most of a span
	class := sizeclass.Of(size)
	h, err := New(Options{})
	testcall.Must(t, err)
	var blocks []unsafe.Pointer
	for range n {
		blocks = append(blocks, h.Malloc(size))
	}
	large := h.Malloc(100_000)

	// A list of blocks that was taken out of a cache, and is on its way.
	list, length := uintptr(0), n/2
	for _, p := range blocks[n-length:] {
		block.At(uintptr(p)).SetCached(uintptr(p), list, 0, h.classes[class].factor)
		list = uintptr(p)
	}
	h.DestroyAll()

	other := NewHeap(t, Options{})
	otherBlock := other.Malloc(size)
	otherLarge := other.Malloc(100_000)
	if otherLarge != large || otherBlock != blocks[0] {
		t.Logf("memory was not used again: %p, %p, then %p, %p", blocks[0], large, otherBlock, otherLarge)
	}
	before := other.Stats()

	h.classes[class].sort(h, magazine{list, length})
	h.classes[class].put(h, class, magazine{list, length})
	if h.classes[class].numFull != 0 {
		t.Error("a heap that was destroyed keeps blocks")
	}
	if h.classes[class].putOne(h, span.Find(uintptr(blocks[1])), uintptr(blocks[1])) {
		t.Error("a block of a heap that was destroyed came back")
	}
	if h.freeLarge(span.Find(uintptr(large)), uintptr(large)) {
		t.Error("a large block of a heap that was destroyed was freed")
	}
	if to := h.resizeLarge(span.Find(uintptr(large)), uintptr(large), 1<<20, true); to != 0 {
		t.Errorf("a large block of a heap that was destroyed has moved to %#x", to)
	}
	if p, _, err := h.allocLarge(100_000, 1); !errors.Is(err, ErrDestroyed) {
		t.Errorf("a heap that was destroyed allocated at %#x: %v", p, err)
	}

	if after := other.Stats(); after != before || !other.Owns(otherLarge) || !other.Owns(otherBlock) {
		t.Errorf("the other heap: %+v, before %+v", after, before)
	}
	var live shadow.Set
	for range 3 * n {
		p := other.Malloc(size)
		if !other.Owns(p) {
			t.Fatalf("Owns(%p) is false", p)
		}
		testcall.Must(t, live.Add(p, size, other.UsableSize(p), sizeclass.Quantum))
	}
	for live.Len() > 0 {
		p := osmem.Pointer(live.At(0).Addr)
		testcall.Must(t, live.Remove(p))
		other.Free(p)
	}
	other.Free(otherLarge)
	other.Free(otherBlock)
	MustHoldNothing(t, other)
}
