package heap

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestLocalMixed allocates and frees through a Local, another one, and the
// heap, in all combinations.
func TestLocalMixed(t *testing.T) {
	h := NewHeap(t, Options{})
	n := int64(testheap.HammerRounds(300))
	ways := []Allocator{h, h.NewLocal(), h.NewLocal()}
	for _, size := range append(testheap.SomeSizes, 40_000) {
		for _, from := range ways {
			for _, to := range ways {
				var live shadow.Set
				for range n {
					p := from.Malloc(size)
					testcall.Must(t, live.Add(p, size, h.UsableSize(p), sizeclass.Quantum))
				}
				if s := h.Stats(); s.Blocks != n || s.Bytes != live.Bytes() {
					t.Fatalf("%+v, want %d blocks of %d bytes", s, n, live.Bytes())
				}
				for live.Len() > 0 {
					p := osmem.Pointer(live.At(live.Len() / 2).Addr)
					testcall.Must(t, live.Remove(p))
					to.Free(p)
				}
			}
		}
	}
	for _, l := range ways[1:] {
		testcall.Want(t, l.(*Local).Destroy())
	}
	MustHoldNothing(t, h)
}

// TestLocalDestroy looks at what Destroy gives back and what it leaves.
func TestLocalDestroy(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	h := NewHeap(t, Options{})
	l := h.NewLocal()
	p, q := l.Malloc(100), l.Malloc(100)
	l.Free(q)
	if s := h.Stats(); s.Cached == 0 || s.Caches == 0 {
		t.Errorf("%+v, a Local has blocks", s)
	}
	testcall.Want(t, l.Destroy())
	if err := l.Destroy(); err != ErrDestroyed {
		t.Errorf("a second Destroy: %v", err)
	}
	for op, f := range map[string]func(){
		"Local.Malloc":        func() { l.Malloc(1) },
		"Local.TryMalloc":     func() { _, _ = l.TryMalloc(1) },
		"Local.Calloc":        func() { l.Calloc(1, 1) },
		"Local.TryCalloc":     func() { _, _ = l.TryCalloc(1, 1) },
		"Local.TryRealloc":    func() { _, _ = l.TryRealloc(p, 1) },
		"Local.UsableSize":    func() { l.UsableSize(p) },
		"Local.AlignedMalloc": func() { l.AlignedMalloc(1, 16) },
		"Local.Realloc":       func() { l.Realloc(p, 1) },
		"Local.Free":          func() { l.Free(p) },
	} {
		e, ok := testcall.Catch(f).(*MisuseError)
		if !ok || e.Op != op || e.Reason != "the Local is destroyed" {
			t.Errorf("%s after Destroy: %v", op, e)
		}
	}
	if e, ok := testcall.Catch(func() { l.Malloc(100_000) }).(*MisuseError); !ok {
		t.Errorf("Malloc of a large block after Close: %v", e)
	}
	if e, ok := testcall.Catch(func() { l.Calloc(1<<40>>20, -1<<20) }).(*MisuseError); !ok {
		t.Errorf("Calloc of a negative size after Close: %v", e)
	}
	if s := h.Stats(); s.Blocks != 1 || s.Cached != 0 || !h.Owns(p) {
		t.Errorf("%+v: the block outlives the Local, and nothing is cached", s)
	}
	h.Free(p)
	MustHoldNothing(t, h)
}

// TestLocalZero uses a Local that no heap made.
func TestLocalZero(t *testing.T) {
	var l Local
	for _, f := range []func(){
		func() { l.Malloc(1) }, func() { l.Free(unsafe.Pointer(&global)) }, func() { l.Calloc(1, 1) }, func() { l.Destroy() },
	} {
		if v := testcall.Catch(f); v == nil {
			t.Error("a Local that was not made by NewLocal can be used")
		}
	}
}

// TestLocalBeforeMap uses a Local of the default heap, and one that no heap made, in a
// process where the system has refused the memory for the map of spans. So neither has a
// cache, and there is nothing to look addresses up in.
func TestLocalBeforeMap(t *testing.T) {
	out, status := testchild.Run(t, func() {
		refuse := func(osmem.Op, uintptr) error { return testheap.ErrRefused }
		osmem.Fault.Store(&refuse)
		l := Default().NewLocal()
		l.Free(nil)
		if l.Malloc(1) != nil || l.Calloc(1, 1) != nil || l.Realloc(nil, 1) != nil {
			fmt.Println("there is memory")
		}
		wrong := unsafe.Pointer(new([64]byte))
		var zero Local
		for i, f := range []func(){
			func() { l.Free(wrong) }, func() { l.Realloc(wrong, 1) }, func() { zero.Realloc(wrong, 1) }, func() { zero.Free(wrong) },
		} {
			v := testcall.Catch(f)
			if _, ok := v.(*MisuseError); !ok && (v == nil || !race.Told || i != 3) {
				fmt.Printf("call %d: %v\n", i, v)
			}
		}
		osmem.Fault.Store(nil)
		l.Free(l.Malloc(1))
	})
	if status != 0 || out != "" {
		t.Errorf("status %d, output:\n%s", status, out)
	}
}

// TestLocalDropped drops a Local that has blocks: the collector finds it, and
// they go back to the heap.
func TestLocalDropped(t *testing.T) {
	h := NewHeap(t, Options{})
	const n = 1000
	var kept unsafe.Pointer
	testcall.Aside(func() { // so that no stack holds the Local
		l := h.NewLocal()
		var blocks [n]unsafe.Pointer
		for i := range blocks {
			blocks[i] = l.Malloc(256)
		}
		testheap.FreeAll(l, blocks[1:])
		kept = blocks[0]
	})
	testwait.Until(t, "the Local's cache is gone", func() bool {
		runtime.GC()
		h.Trim()
		return h.Stats().Cached == 0
	})
	if s := h.Stats(); s.Mallocs != n || s.Blocks != 1 || s.Frees != n-1 {
		t.Errorf("%+v", s)
	}
	h.Free(kept)
	MustHoldNothing(t, h)
}

// TestLocalKeepsCounts opens and closes Locals, whose caches are used again by
// others: no malloc is counted twice or lost.
func TestLocalKeepsCounts(t *testing.T) {
	a, b := NewHeap(t, Options{}), NewHeap(t, Options{})
	for i := range int64(50) {
		for _, h := range []*Heap{a, b} {
			l := h.NewLocal()
			for range 100 {
				l.Free(l.Malloc(64))
			}
			if s := h.Stats(); s.Mallocs != 100*(i+1) || s.Blocks != 0 {
				t.Fatalf("%+v in round %d", s, i)
			}
			l.Destroy()
			if s := h.Stats(); s.Mallocs != 100*(i+1) || s.Blocks != 0 || s.Cached != 0 {
				t.Fatalf("%+v in round %d, after Close", s, i)
			}
		}
	}
}

// TestLocalFlush has a request that the heap cannot serve ask an open Local for its blocks. It
// gives them back when it next runs out of blocks, or of room, or a large block goes through it.
func TestLocalFlush(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	h, l := NewHeapAndLocal(t, Options{})
	for name, slow := range map[string]func(){
		"large":   func() { l.Free(l.Malloc(70_000)) },
		"realloc": func() { l.Free(l.Realloc(l.Realloc(nil, 70_000), 80_000)) },
	} {
		var blocks [100]unsafe.Pointer
		for i := range blocks {
			blocks[i] = l.Malloc(64)
		}
		testheap.FreeAll(l, blocks[:])
		h.reclaim()
		if s := h.Stats(); s.Cached == 0 || s.Blocks != 0 {
			t.Fatalf("%s: %+v; the Local has not been asked yet", name, s)
		}
		slow()
		h.reclaimLarge(false)
		if s := h.Stats(); s.Cached != 0 || s.Held != int64(s.Caches)*cacheBytes {
			t.Errorf("%s: %+v; the Local has been asked", name, s)
		}
	}
}

// TestFinalizerUses sets a finalizer on a Local, which collects, and uses it once more. Until then
// it has not lost its memory.
func TestFinalizerUses(t *testing.T) {
	testheap.SetDecay(t, -1) // the cache of a Local that rests would be taken
	h := NewHeap(t, Options{})
	done := make(chan bool, 1)
	func() {
		l := h.NewLocal()
		l.Free(l.Malloc(64))
		runtime.SetFinalizer(l, func(l *Local) {
			testheap.Collect()
			h.seize.Lock()
			has := l.c.slot != 0
			h.seize.Unlock()
			l.Free(l.Malloc(64))
			l.Destroy()
			done <- has
		})
	}()
	testwait.Until(t, "the finalizer has ended", func() bool {
		runtime.GC()
		return len(done) == 1
	})
	if !<-done {
		t.Error("its memory is gone before its finalizer has run")
	}
}
