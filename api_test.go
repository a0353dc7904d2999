package cheap

import (
	"errors"
	"math"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/shadow"
)

// TestDefaultHeapStays asks the default heap to end. It refuses, and works on.
func TestDefaultHeapStays(t *testing.T) {
	wantMisuse(t, "Heap.Destroy", func() { _ = Default().Destroy() }, "default heap")
	wantMisuse(t, "Heap.DestroyAll", func() { _ = Default().DestroyAll() }, "default heap")
	Free(Malloc(100))
}

// TestDestroyTwice destroys in both ways, in both orders.
func TestDestroyTwice(t *testing.T) {
	h, f := newHeap(t, HeapOptions{}), newFixed(Default(), 64, 0, 0)
	for _, a := range []interface{ Destroy() error }{h, f} {
		all := a.(interface{ DestroyAll() error })
		if err := all.DestroyAll(); err != nil {
			t.Errorf("%T: DestroyAll: %v", a, err)
		}
		if err := errors.Join(all.DestroyAll(), a.Destroy()); !errors.Is(err, ErrDestroyed) || all.DestroyAll() != ErrDestroyed || a.Destroy() != ErrDestroyed {
			t.Errorf("%T: again: %v", a, err)
		}
	}
}

// TestUsableSizeOfAnyHeap asks about blocks of several heaps, and about others.
func TestUsableSizeOfAnyHeap(t *testing.T) {
	h := newHeap(t, HeapOptions{})
	l := h.NewLocal()
	defer l.Destroy()
	for _, size := range []int{0, 100, 5000, 100_000} {
		for _, a := range []Allocator{Default(), h, l} {
			p := a.Malloc(size)
			if got := UsableSize(p); got != GoodSize(size) {
				t.Errorf("%d bytes: UsableSize is %d, want %d", size, got, GoodSize(size))
			}
			if size == 5000 {
				wantMisuse(t, "UsableSize", func() { UsableSize(unsafe.Add(p, 8)) }, "inside")
			}
			a.Free(p)
			if size < 10_000 {
				wantMisuse(t, "UsableSize", func() { UsableSize(p) })
			}
		}
	}
	if UsableSize(nil) != 0 {
		t.Error("nil has a size")
	}
	wantMisuse(t, "UsableSize", func() { UsableSize(unsafe.Pointer(&global)) }, "not from a heap")
}

// TestTry calls the methods that return errors, where there is memory, where the
// limit is reached, and for sizes that overflow.
func TestTry(t *testing.T) {
	h := newHeap(t, HeapOptions{Limit: 1 << 20})
	l := h.NewLocal()
	defer l.Destroy()
	for _, a := range []interface {
		TryAllocator
		TryCalloc(count, size int) (unsafe.Pointer, error)
		TryRealloc(ptr unsafe.Pointer, size int) (unsafe.Pointer, error)
	}{h, l} {
		p, err := a.TryCalloc(10, 10)
		if err != nil || shadow.Zero(p, 100) != nil {
			t.Fatalf("%T: TryCalloc: %p, %v", a, p, err)
		}
		*(*byte)(p) = 7
		if p, err = a.TryRealloc(p, 5000); err != nil || *(*byte)(p) != 7 {
			t.Fatalf("%T: TryRealloc: %p, %v", a, p, err)
		}
		q, err := a.TryRealloc(p, 4<<20)
		if q != nil || !errors.Is(err, ErrLimit) || *(*byte)(p) != 7 {
			t.Errorf("%T: TryRealloc beyond the limit: %p, %v", a, q, err)
		}
		if q, err := a.TryCalloc(4, 1<<20); q != nil || !errors.Is(err, ErrLimit) {
			t.Errorf("%T: TryCalloc beyond the limit: %p, %v", a, q, err)
		}
		if q, err := a.TryMalloc(4 << 20); q != nil || !errors.Is(err, ErrLimit) {
			t.Errorf("%T: TryMalloc beyond the limit: %p, %v", a, q, err)
		}
		if q, err := a.TryCalloc(math.MaxInt, 2); q != nil || !errors.Is(err, ErrNoMemory) {
			t.Errorf("%T: TryCalloc that overflows: %p, %v", a, q, err)
		}
		a.Free(p)
	}
}

// TestSmallHelpers tries Delete, GoBytes and Pointer.
func TestSmallHelpers(t *testing.T) {
	h := newHeap(t, HeapOptions{}) // it fails the test if a block is left
	Delete(h, New[[4]int](h))
	Delete[int](h, nil)
	p := CBytes(h, []byte("a\x00b"))
	if got := GoBytes(Pointer(uintptr(p)), 3); string(got) != "a\x00b" {
		t.Errorf("%q", got)
	}
	if GoBytes(nil, 3) != nil || GoBytes(p, 0) != nil {
		t.Error("bytes of nothing")
	}
	wantMisuse(t, "GoBytes", func() { GoBytes(p, -1) }, "negative")
	h.Free(p)
	wantMisuse(t, "NewFallback", func() { NewFallback(nil, h) }, "nil")
	wantMisuse(t, "NewArena", func() { NewArena(nil, 0) }, "nil")
}
