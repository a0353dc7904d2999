package cheaptest_test

import (
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cheaptest"
	"github.com/cheapgo/cheap/own"
)

type pointer = unsafe.Pointer

// The tests here are of the allocators that need no cgo. Those of libc and cgoalloc
// are in these packages.

// newHeap returns a heap that must have no live block when the test ends.
func newHeap(t *testing.T) *cheap.Heap {
	t.Helper()
	heap, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := heap.Destroy(); err != nil {
			t.Error("below the allocator:", err)
		}
	})
	return heap
}

func TestHeap(t *testing.T) {
	cheaptest.TestAllocator(t, func(t testing.TB) (cheap.Allocator, func() error) {
		heap, err := cheap.NewHeap(cheap.HeapOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { heap.DestroyAll() })
		return heap, heap.Destroy
	}, cheaptest.Guarantees{Concurrent: true, Reuses: true, CountsLive: true, DetectsMisuse: true, Align: 16})
}

func TestHeapWithLimit(t *testing.T) {
	cheaptest.TestAllocator(t, func(t testing.TB) (cheap.Allocator, func() error) {
		heap, err := cheap.NewHeap(cheap.HeapOptions{Limit: 256 << 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { heap.DestroyAll() })
		return heap, heap.Destroy
	}, cheaptest.Guarantees{Concurrent: true, Reuses: true, CountsLive: true, DetectsMisuse: true, Align: 16})
}

// The blocks of a Local belong to its heap, so the Local does not count them.
func TestLocal(t *testing.T) {
	cheaptest.TestAllocator(t, func(t testing.TB) (cheap.Allocator, func() error) {
		heap, err := cheap.NewHeap(cheap.HeapOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { heap.DestroyAll() })
		local := heap.NewLocal()
		return local, local.Destroy
	}, cheaptest.Guarantees{Reuses: true, DetectsMisuse: true, Align: 16})
}

func TestFixedBlock(t *testing.T) {
	for name, sizes := range map[string][2]int{"16": {16, 0}, "100": {100, 8}, "64KiB": {64 << 10, 4096}} {
		t.Run(name, func(t *testing.T) {
			heap := newHeap(t)
			cheaptest.TestAllocator(t, func(t testing.TB) (cheap.Allocator, func() error) {
				f := cheap.NewFixedBlock(heap, cheap.FixedBlockOptions{BlockSize: sizes[0], Align: sizes[1]})
				return f, f.Destroy
			}, cheaptest.Guarantees{Reuses: true, CountsLive: true, DetectsMisuse: true, Align: max(sizes[1], 8)})
		})
	}
}

func TestFallback(t *testing.T) {
	cheaptest.TestAllocator(t, func(t testing.TB) (cheap.Allocator, func() error) {
		heap, err := cheap.NewHeap(cheap.HeapOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { heap.DestroyAll() })
		// The chunks of the other tiers are blocks of the heap, so it is destroyed
		// after them.
		small := cheap.NewFixedBlock(heap, cheap.FixedBlockOptions{BlockSize: 64, Align: 16})
		large := cheap.NewFixedBlock(heap, cheap.FixedBlockOptions{BlockSize: 1024, Align: 16})
		return cheap.NewFallback(small, cheap.NewFallback(large, heap)), func() error {
			if err := small.Destroy(); err != nil {
				return err
			}
			if err := large.Destroy(); err != nil {
				return err
			}
			return heap.Destroy()
		}
	}, cheaptest.Guarantees{Reuses: true, CountsLive: true, DetectsMisuse: true, Align: 16})
}

// An Arena frees blocks only when it is reset, and need not know them.
func TestArena(t *testing.T) {
	for name, chunk := range map[string]int{"256": 256, "64KiB": 0} {
		t.Run(name, func(t *testing.T) {
			heap := newHeap(t)
			cheaptest.TestAllocator(t, func(t testing.TB) (cheap.Allocator, func() error) {
				a := cheap.NewArena(heap, chunk)
				return a, a.Destroy
			}, cheaptest.Guarantees{Align: 16})
		})
	}
}

// scopes uses an arena as programs do: blocks that end together are released
// together.
type scopes struct {
	*cheap.Arena
	live int
	mark cheap.Mark
}

func (s *scopes) Malloc(size int) pointer {
	if s.live == 0 {
		s.mark = s.Mark()
	}
	p := s.Arena.Malloc(size)
	if p != nil {
		s.live++
	}
	return p
}

func (s *scopes) AlignedMalloc(size, align int) pointer {
	if s.live == 0 {
		s.mark = s.Mark()
	}
	p := s.Arena.AlignedMalloc(size, align)
	if p != nil {
		s.live++
	}
	return p
}

func (s *scopes) Free(ptr pointer) {
	s.Arena.Free(ptr)
	if ptr == nil {
		return
	}
	if s.live--; s.live == 0 {
		s.Release(s.mark)
	}
}

func TestArenaWithMarks(t *testing.T) {
	heap := newHeap(t)
	cheaptest.TestAllocator(t, func(t testing.TB) (cheap.Allocator, func() error) {
		s := &scopes{Arena: cheap.NewArena(heap, 4096)}
		return s, s.Destroy
	}, cheaptest.Guarantees{Reuses: true, Align: 16})
}

// The end of a pooled arena is its return to the pool.
func TestPooledArena(t *testing.T) {
	cheaptest.TestAllocator(t, func(testing.TB) (cheap.Allocator, func() error) {
		a := cheap.GetArena()
		return a, func() error { a.Put(); return nil }
	}, cheaptest.Guarantees{Align: 16})
}

func TestGroup(t *testing.T) {
	memory := own.NewMemory(newHeap(t), own.MemoryOptions{Name: "cheaptest"})
	defer func() {
		if err := memory.CloseWait(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	cheaptest.TestAllocator(t, func(t testing.TB) (cheap.Allocator, func() error) {
		group, err := memory.NewGroup()
		if err != nil {
			t.Fatal(err)
		}
		return group, group.Close
	}, cheaptest.Guarantees{Align: 16})
}
