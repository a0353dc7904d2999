//go:build !cheap_gomem

package cheap

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
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
	h := newHeap(t, HeapOptions{})
	l := h.NewLocal()
	defer l.Destroy()
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
			mustAccuse(t, op, uintptr(p), func() { f(p) }, "(64 bytes) was written to behind its end: 1 bytes from byte 70 on", "allocated by", "freed by", "heap_guard_damage_test.go:")
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
		h, other := newHeap(t, HeapOptions{}), newHeap(t, HeapOptions{})
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
		mustAccuse(t, op, uintptr(p), func() { _ = destroy(h) }, "(64 bytes) was written to behind its end: 1 bytes from byte 64 on", "allocated by", "heap_guard_damage_test.go:")
		if !h.Owns(p) || !h.Owns(sound) || h.Stats().Blocks != 2 {
			t.Errorf("after the panic of %s: %+v", op, h.Stats())
		}
		if err := h.DestroyAll(); err != nil {
			t.Error(err)
		}
		if isGuarded(p) || !isGuarded(foreign) {
			t.Error("DestroyAll leaves a block, or frees that of another heap")
		}
		mustAccuse(t, "Heap.Free", uintptr(foreign), func() { other.Free(foreign) }, "behind its end")
	}
}
