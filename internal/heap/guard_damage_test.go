//go:build !cheap_gomem

package heap_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	. "github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/watch/guard"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// mallocWithSlack returns a guarded block of 64 bytes that lies at the start of its page, so that
// a write behind its end does not fault. The block is one of h that malloc returns.
func mallocWithSlack(t *testing.T, h *Heap, malloc func(int) unsafe.Pointer) unsafe.Pointer {
	t.Helper()
	for range 200 {
		p := malloc(64)
		if isGuarded(p) && uintptr(p)%osmem.PageSize == 0 {
			return p
		}
		h.Free(p)
	}
	t.Fatal("no block has slack behind it")
	return nil
}

// TestGuardedSlackOps frees and resizes blocks behind whose end a byte was written. The panic has
// the name of the call. Afterwards the block is free, and no other one is left.
func TestGuardedSlackOps(t *testing.T) {
	withGuard(t, 1)
	h, l := NewHeapAndLocal(t, Options{})
	for op, f := range map[string]func(p unsafe.Pointer){
		"Heap.Free":        h.Free,
		"Heap.Realloc":     func(p unsafe.Pointer) { h.Realloc(p, 5000) },
		"Heap.TryRealloc":  func(p unsafe.Pointer) { _, _ = h.TryRealloc(p, 100_000) },
		"Local.Free":       l.Free,
		"Local.Realloc":    func(p unsafe.Pointer) { l.Realloc(p, 5000) },
		"Local.TryRealloc": func(p unsafe.Pointer) { _, _ = l.TryRealloc(p, 100_000) },
	} {
		for _, malloc := range []func(int) unsafe.Pointer{h.Malloc, l.Malloc} {
			p := mallocWithSlack(t, h, malloc)
			writeByte(p, 70)
			MustAccuse(t, op, uintptr(p), func() { f(p) }, "(64 bytes) was written to behind its end: 1 bytes from byte 70 on", "allocated by", "freed by", "guard_damage_test.go:")
			if h.Owns(p) {
				t.Errorf("%s: the block is still in use", op)
			}
			if s := h.Stats(); s.Blocks != 0 || s.Bytes != 0 {
				t.Errorf("%s: %+v", op, s)
			}
		}
	}
}

// TestGuardedDestroyDamaged destroys heaps with guarded blocks in use, of which one or two were
// written to behind their ends. The first call reports that and releases nothing; a later one
// looks at nothing.
func TestGuardedDestroyDamaged(t *testing.T) {
	withGuard(t, 1)
	for op, destroy := range map[string]func(h *Heap) error{"Heap.Destroy": (*Heap).Destroy, "Heap.DestroyAll": (*Heap).DestroyAll} {
		h, other := NewHeap(t, Options{}), NewHeap(t, Options{})
		foreign := mallocWithSlack(t, other, other.Malloc)
		writeByte(foreign, 64) // no damage of h
		sound := h.Malloc(64)
		if op == "Heap.Destroy" {
			if err := h.Destroy(); err == nil || !strings.Contains(err.Error(), "live blocks: 1") {
				t.Errorf("with a block that is as it should be: %v", err)
			}
		}
		p := mallocWithSlack(t, h, h.Malloc)
		writeByte(p, 64)
		MustAccuse(t, op, uintptr(p), func() { _ = destroy(h) }, "(64 bytes) was written to behind its end: 1 bytes from byte 64 on", "allocated by", "guard_damage_test.go:")
		if !h.Owns(p) || !h.Owns(sound) || h.Stats().Blocks != 2 {
			t.Errorf("after the panic of %s: %+v", op, h.Stats())
		}
		testcall.Want(t, h.DestroyAll())
		if isGuarded(p) || !isGuarded(foreign) {
			t.Error("DestroyAll leaves a block, or frees that of another heap")
		}
		MustAccuse(t, "Heap.Free", uintptr(foreign), func() { other.Free(foreign) }, "behind its end")
	}
}

//go:noinline
func mallocEarlier(h *Heap) unsafe.Pointer { return h.Malloc(64) }

//go:noinline
func freeEarlier(h *Heap, p unsafe.Pointer) { h.Free(p) }

// reuse frees a block, and returns where it was, and a block of size bytes in the same slot that
// lies there, too, or elsewhere.
func reuse(t *testing.T, h *Heap, size int, same bool) (stale, now unsafe.Pointer) {
	t.Helper()
	unit := func(p unsafe.Pointer) uintptr { return uintptr(p) / span.UnitSize }
	for range 40 {
		stale = mallocEarlier(h)
		freeEarlier(h, stale)
		for range 2 * guard.MostSlots {
			if now = h.Malloc(size); unit(now) == unit(stale) {
				break
			}
			h.Free(now)
		}
		if unit(now) != unit(stale) {
			break
		}
		if (now == stale) == same {
			return stale, now
		}
		h.Free(now)
	}
	t.Fatal("the slot does not come again as it should")
	return nil, nil
}

// TestGuardedStale uses pointers to blocks whose slots have other blocks by now. The reports name
// both.
func TestGuardedStale(t *testing.T) {
	withGuard(t, 1)
	h := NewHeap(t, Options{})
	earlier := func(p unsafe.Pointer) string {
		return fmt.Sprintf("\nor look for a pointer to the block that was here before, at %p (64 bytes)\nallocated by\n\tgithub.com/cheapgo/cheap/internal/heap_test.mallocEarlier\n", p)
	}
	t.Run("free", func(t *testing.T) {
		p, q := reuse(t, h, 64, true)
		h.Free(p) // of the wrong block, and nothing can tell
		m := misuseOf(t, func() { h.Free(q) })
		if !strings.Contains(m, "is free already") || !strings.Contains(m, earlier(p)) || strings.Count(m, "\nfreed by\n") != 2 || !strings.Contains(m, "freeEarlier") {
			t.Errorf("a free after that of a stale pointer: %s", m)
		}
	})
	t.Run("free of another place", func(t *testing.T) {
		p, q := reuse(t, h, 64, false)
		m := misuseOf(t, func() { h.Free(p) })
		if !strings.Contains(m, "is beside the block") || !strings.Contains(m, earlier(p)) || !strings.Contains(m, "\nfreed by\n\tgithub.com/cheapgo/cheap/internal/heap_test.freeEarlier\n") {
			t.Errorf("a free of a stale pointer: %s", m)
		}
		if m := misuseOf(t, func() { h.Free(unsafe.Add(q, 8)) }); strings.Contains(m, "here before") {
			t.Errorf("where the earlier block had no byte: %s", m)
		}
		h.Free(q)
	})
	t.Run("write", func(t *testing.T) {
		p, q := reuse(t, h, 64, false) // on one page, as the sizes are equal
		writeByte(p, 5)
		m := misuseOf(t, func() { h.Free(q) })
		if !strings.Contains(m, fmt.Sprintf("1 bytes from byte %d on", int(uintptr(p)-uintptr(q))+5)) || !strings.Contains(m, earlier(p)) || !strings.Contains(m, "freeEarlier") {
			t.Errorf("a write by a stale pointer: %s", m)
		}
	})
	t.Run("slack of one block", func(t *testing.T) {
		p := mallocWithSlack(t, h, h.Malloc)
		writeByte(p, 100) // no block of 64 bytes was there
		if m := misuseOf(t, func() { h.Free(p) }); strings.Contains(m, "here before") {
			t.Errorf("where no earlier block had a byte: %s", m)
		}
	})
}

// stackOf calls f by the n-th of 1 << bits stacks.
func stackOf(n, bits int, f func()) {
	switch {
	case bits == 0:
		f()
	case n&1 == 0:
		stackOfEven(n>>1, bits-1, f)
	default:
		stackOfOdd(n>>1, bits-1, f)
	}
}

//go:noinline
func stackOfEven(n, bits int, f func()) { stackOf(n, bits, f) }

//go:noinline
func stackOfOdd(n, bits int, f func()) { stackOf(n, bits, f) }

// TestGuardedStacksBounded guards blocks of very many stacks. Those of blocks that are no longer
// known are forgotten.
func TestGuardedStacksBounded(t *testing.T) {
	testheap.WithRate(t, 0) // the stacks of samples stay
	withGuard(t, 1)
	h := NewHeap(t, Options{})
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	h.Free(h.Malloc(64)) // makes the slots
	before := inUse()
	for n := range 1 << 13 {
		stackOf(n, 13, func() { h.Free(h.Malloc(64)) })
	}
	if grown, most := int64(inUse()-before), int64(4*guard.MostSlots*1024); grown > most {
		t.Errorf("%d stacks took %d bytes of the Go heap, want at most %d", 2<<13, grown, most)
	}
	held := sample.Held()
	if held > 4*guard.MostSlots {
		t.Errorf("%d stacks are held by %d slots", held, guard.MostSlots)
	}
	var blocks []unsafe.Pointer // so that no slot is free
	for range guard.MostSlots {
		blocks = append(blocks, h.Malloc(64))
	}
	held = sample.Held()
	for n := range 128 {
		stackOf(n, 7, func() { h.Free(h.Malloc(64)) })
	}
	if more := sample.Held() - held; more != 0 {
		t.Errorf("%d stacks of blocks that are not guarded are held", more)
	}
	testheap.FreeAll(h, blocks)
}
