package heap_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	. "github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// mustBeFree frees the block at addr a second time, in every way.
func mustBeFree(t *testing.T, h *Heap, l *Local, addr uintptr) {
	t.Helper()
	for op, f := range testheap.Accusers(h, l) {
		e, ok := testcall.Catch(func() { f(osmem.Pointer(addr)) }).(*MisuseError)
		if !ok || e.Op != op || e.Addr != addr {
			t.Fatalf("%s of %#x, which is free: %v", op, addr, e)
		}
	}
	if h.Owns(osmem.Pointer(addr)) {
		t.Fatalf("Owns(%#x), which is free", addr)
	}
}

// TestDoubleFreeEverywhere frees many blocks of a class, so that they lie in
// lists, in spare batches, in batches that are kept whole and in spans, and
// then frees each again.
func TestDoubleFreeEverywhere(t *testing.T) {
	for _, size := range testheap.SomeSizes {
		h := NewHeap(t, Options{})
		l := h.NewLocal()
		class := &sizeclass.Classes[sizeclass.Of(size)]
		blocks := make([]unsafe.Pointer, 12*int(class.Magazine)+int(class.Blocks)+7)
		for i := range blocks {
			blocks[i] = h.Malloc(size)
		}
		kept := blocks[len(blocks)-1] // holds its span
		blocks = blocks[:len(blocks)-1]
		for i, p := range blocks {
			switch i % 3 {
			case 0:
				l.Free(p)
			default:
				h.Free(p)
			}
			mustBeFree(t, h, l, uintptr(p))
		}
		again := func() {
			t.Helper()
			for i, p := range blocks {
				if i < 100 || i%37 == 0 {
					mustBeFree(t, h, l, uintptr(p))
				}
			}
		}
		again()
		h.Trim() // to the spans, some of which go back; the Local keeps its own
		again()
		l.Destroy()
		l = h.NewLocal()
		again()
		if s := h.Stats(); s.Blocks != 1 || s.Mallocs != int64(len(blocks)+1) {
			t.Errorf("size %d: %+v", size, s)
		}
		h.Free(kept)
		h.Trim() // now all of them
		again()
		mustBeFree(t, h, l, uintptr(kept))
		l.Destroy()
	}
}

// TestDoubleFreeElsewhere frees a block again from another goroutine, which
// runs on another P at the time.
func TestDoubleFreeElsewhere(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	h := NewHeap(t, Options{})
	for _, size := range testheap.SomeSizes {
		for range 10 {
			p := h.Malloc(size)
			var freed atomic.Bool
			done := make(chan any)
			go func() {
				for !freed.Load() { // keep this P
				}
				done <- testcall.Catch(func() { h.Free(p) })
			}()
			h.Free(p)
			freed.Store(true)
			if e, ok := (<-done).(*MisuseError); !ok || e.Addr != uintptr(p) {
				t.Fatalf("size %d: second free: %v", size, e)
			}
		}
	}
}

// TestDoubleFreeAfterReuse frees a block of a span that went back and is now a
// span of another class, or a large block.
func TestDoubleFreeAfterReuse(t *testing.T) {
	h, l := NewHeapAndLocal(t, Options{})
	var old []unsafe.Pointer
	for range 3000 {
		old = append(old, h.Malloc(48))
	}
	testheap.FreeAll(h, old)
	h.Trim()
	var reused []unsafe.Pointer
	for i := range 4 {
		reused = append(reused, h.Malloc(1<<17), h.Malloc(20_000), h.Malloc(80*i))
	}
	for _, p := range old {
		if !h.Owns(p) { // at the start of a block that is handed out now, there is nothing to tell
			mustBeFree(t, h, l, uintptr(p))
		}
	}
	testheap.FreeAll(h, reused)
	if s := h.Stats(); s.Blocks != 0 || s.Bytes != 0 {
		t.Errorf("%+v", s)
	}
}

// TestWriteAfterFree writes to a block that is free. The next Malloc must not
// trust it, and nothing that is live may be handed out.
func TestWriteAfterFree(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	for _, size := range []int{16, 64, 1024, 16384} {
		h, err := New(Options{})
		testcall.Must(t, err)
		kept, p := h.Malloc(size), h.Malloc(size)
		h.Free(p)
		*(*uintptr)(p) = uintptr(kept) // the link
		var got []unsafe.Pointer
		var found *MisuseError
		for range 200 {
			if v := testcall.Catch(func() { got = append(got, h.Malloc(size)) }); v != nil {
				found, _ = v.(*MisuseError)
			}
		}
		if found == nil || found.Addr != uintptr(p) {
			t.Errorf("size %d: not noticed: %v", size, found)
		}
		for _, q := range got {
			if q == kept || q == nil {
				t.Errorf("size %d: Malloc = %p; %p is live", size, q, kept)
			}
		}
		h.DestroyAll()
	}
}
