package cheaparrow_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cheaptest"
	cheaparrow "github.com/cheapgo/cheap/x/arrow"
)

// asCheap makes an arrow allocator a cheap.Allocator. For a size of 0 arrow has no block
// and cheap has one. If there is no memory arrow panics and cheap returns nil.
type asCheap struct{ cheaparrow.Allocator }

func (a asCheap) Malloc(size int) (ptr unsafe.Pointer) {
	defer func() {
		if v := recover(); v != nil {
			if err, ok := v.(error); !ok || !errors.Is(err, cheap.ErrNoMemory) {
				panic(v)
			}
		}
	}()
	if size == 0 {
		size = 1
	}
	return unsafe.Pointer(unsafe.SliceData(a.Allocate(size)))
}

func (a asCheap) Free(ptr unsafe.Pointer) {
	if ptr != nil { // unsafe.Slice of nil panics
		a.Allocator.Free(unsafe.Slice((*byte)(ptr), 1))
	}
}

func TestConformance(t *testing.T) {
	cheaptest.TestAllocator(t, func(testing.TB) (cheap.Allocator, func() error) {
		heap, err := cheap.NewHeap(cheap.HeapOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return asCheap{cheaparrow.Allocator{Heap: heap}}, heap.Destroy
	}, cheaptest.Guarantees{Concurrent: true, Reuses: true, CountsLive: true, DetectsMisuse: true, Align: 64})
}
