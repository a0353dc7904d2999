package cheap

import (
	"errors"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testheap"
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
	wantMisuse(t, "UsableSize", func() { UsableSize(unsafe.Pointer(&boxesOf)) }, "not from a heap")
}

// TestHugeSizes asks what is over a heap for sizes near the largest, under a limit and without one.
func TestHugeSizes(t *testing.T) {
	for _, limit := range []int64{64 << 20, 0} {
		h := newHeap(t, HeapOptions{Limit: limit})
		a := NewArena(h, 0)
		for size := math.MaxInt; size > math.MaxInt-1000; size -= 7 {
			for name, p := range map[string]unsafe.Pointer{
				"Arena.Malloc":        a.Malloc(size),
				"Arena.AlignedMalloc": a.AlignedMalloc(size, 64),
				"MakeSlice":           unsafe.Pointer(unsafe.SliceData(MakeSlice[[7]byte](h, 0, size/7))),
			} {
				if p != nil {
					t.Errorf("limit %d: %s(%#x) = %p", limit, name, size, p)
				}
			}
		}
		if limit == 0 && bits.UintSize < 64 {
			t.Log("half a GiB, the largest block of a FixedBlock, is there")
		} else if p := newFixed(h, 1<<(bits.UintSize-3), 0, 0).Malloc(1); p != nil {
			t.Errorf("limit %d: a huge block of a FixedBlock: %p", limit, p)
		}
		if err := a.Destroy(); err != nil {
			t.Error(err)
		}
	}
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

// TestNumberOnAnyStack frees numbers that the caller has in a pointer variable, in
// goroutines whose stack ends, and is copied, in each part of Free. The runtime accepts
// any number from 4,096 on. By default each depth has one of the numbers, and with the flag
// it has all: the heap reads what the system knows of the process to name each.
func TestNumberOnAnyStack(t *testing.T) {
	h := newHeap(t, HeapOptions{})
	l := h.NewLocal()
	defer l.Destroy()
	f := newFixed(h, 64, 0, 0)
	f.Free(f.Malloc(1))
	defer f.Destroy()
	numbers := []uint64{4096, 4097, 65_535, 1<<31 + 1, 1<<47 - 8, 1 << 47, math.MaxUint}
	numbers = slices.DeleteFunc(numbers, func(n uint64) bool { return n > math.MaxUint }) // on 32-bit systems
	for i, n := range numbers {
		for op, free := range map[string]func(unsafe.Pointer){"Heap.Free": h.Free, "Local.Free": l.Free, "FixedBlock.Free": f.Free} {
			for depth := range 60 {
				if !*testheap.Long && depth%len(numbers) != i {
					continue
				}
				panicked := make(chan any)
				go func() { panicked <- freeAtDepth(depth, free, testheap.AnyPointer(uintptr(n))) }()
				mustAccuse(t, op, uintptr(n), func() { panic(<-panicked) })
			}
		}
	}
}

// freeAtDepth calls freeInFrame behind so many frames.
//
//go:noinline
func freeAtDepth(depth int, free func(unsafe.Pointer), p unsafe.Pointer) (v any) {
	var frame [40]byte
	if depth > 0 {
		v = freeAtDepth(depth-1, free, p)
	} else {
		v = freeInFrame(free, p)
	}
	runtime.KeepAlive(&frame)
	return v
}

// freeInFrame calls free for p, which is in a variable of its frame, and returns what
// free panics with.
//
//go:noinline
func freeInFrame(free func(unsafe.Pointer), p unsafe.Pointer) (v any) {
	defer func() { v = recover() }()
	for _, q := range []unsafe.Pointer{nil, p, p} {
		free(q)
	}
	return nil
}
