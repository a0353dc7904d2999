package cheaptest_test

import (
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cheaptest"
	"github.com/cheapgo/cheap/own"
)

type pointer = unsafe.Pointer

// The allocators of the packages that need no cgo. Those of others are beside
// them.

// newHeap returns a heap which must have nothing left when the test ends.
func newHeap(t *testing.T) *cheap.Heap {
	t.Helper()
	heap, err := cheap.NewHeap(cheap.Options{})
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
	cheaptest.TestPromises(t, func() cheap.Allocator {
		heap, err := cheap.NewHeap(cheap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(heap.DestroyAll)
		return heap
	}, cheaptest.Promises{Concurrent: true, Reuses: true, CountsLive: true, TellsMisuse: true, Align: 16})
}

func TestHeapWithLimit(t *testing.T) {
	cheaptest.TestPromises(t, func() cheap.Allocator {
		heap, err := cheap.NewHeap(cheap.Options{Limit: 256 << 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(heap.DestroyAll)
		return heap
	}, cheaptest.Promises{Concurrent: true, Reuses: true, CountsLive: true, TellsMisuse: true, Align: 16})
}

// Blocks of a Local are the heap's, so it does not count them.
func TestLocal(t *testing.T) {
	cheaptest.TestPromises(t, func() cheap.Allocator {
		heap, err := cheap.NewHeap(cheap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(heap.DestroyAll)
		return heap.NewLocal()
	}, cheaptest.Promises{Reuses: true, TellsMisuse: true, Align: 16})
}

func TestFixedBlock(t *testing.T) {
	for name, sizes := range map[string][2]int{"16": {16, 0}, "100": {100, 8}, "64KiB": {64 << 10, 4096}} {
		t.Run(name, func(t *testing.T) {
			heap := newHeap(t)
			cheaptest.TestPromises(t, func() cheap.Allocator {
				return newFixedBlock(t, heap, sizes[0], sizes[1])
			}, cheaptest.Promises{Reuses: true, CountsLive: true, TellsMisuse: true, Align: max(sizes[1], 8)})
		})
	}
}

func newFixedBlock(t *testing.T, inner cheap.Allocator, size, align int) *cheap.FixedBlock {
	fixed, err := cheap.NewFixedBlock(inner, size, align, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fixed
}

func TestFallback(t *testing.T) {
	cheaptest.TestPromises(t, func() cheap.Allocator {
		heap, err := cheap.NewHeap(cheap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(heap.DestroyAll)
		// The heap has the chunks of the other tiers, and is destroyed after them.
		large := cheap.NewFallback(newFixedBlock(t, heap, 1024, 16), heap)
		return cheap.NewFallback(newFixedBlock(t, heap, 64, 16), large)
	}, cheaptest.Promises{Reuses: true, CountsLive: true, TellsMisuse: true, Align: 16})
}

// An Arena frees when it is reset, and is not asked to know its blocks.
func TestArena(t *testing.T) {
	for name, chunk := range map[string]int{"256": 256, "64KiB": 0} {
		t.Run(name, func(t *testing.T) {
			heap := newHeap(t)
			cheaptest.TestPromises(t, func() cheap.Allocator {
				return cheap.NewArena(heap, chunk)
			}, cheaptest.Promises{Align: 16})
		})
	}
}

// scopes is an arena that is used as one is: what ends together is released
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
	cheaptest.TestPromises(t, func() cheap.Allocator {
		return &scopes{Arena: cheap.NewArena(heap, 4096)}
	}, cheaptest.Promises{Reuses: true, Align: 16})
}

// pooled is an arena that goes back to the pool.
type pooled struct{ *cheap.Arena }

func (p pooled) Destroy() error {
	p.Put()
	return nil
}

func TestPooledArena(t *testing.T) {
	cheaptest.TestPromises(t, func() cheap.Allocator { return pooled{cheap.GetArena()} }, cheaptest.Promises{Align: 16})
}

func TestGroup(t *testing.T) {
	memory := own.NewMemory(newHeap(t), own.Options{Name: "cheaptest"})
	defer func() {
		if err := memory.Destroy(0); err != nil {
			t.Error(err)
		}
	}()
	cheaptest.TestPromises(t, func() cheap.Allocator {
		group, err := memory.Group()
		if err != nil {
			t.Fatal(err)
		}
		return group
	}, cheaptest.Promises{Align: 16})
}
