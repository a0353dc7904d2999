package cheaparrow_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cheaptest"
	cheaparrow "github.com/cheapgo/cheap/x/arrow"
)

// asCheap has an arrow allocator for a cheap.Allocator. A size of 0 has no block
// in arrow, and one in cheap; no memory is a panic in arrow, and nil in cheap.
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
	if ptr != nil { // of which there is no slice with a length
		a.Allocator.Free(unsafe.Slice((*byte)(ptr), 1))
	}
}

func (a asCheap) Destroy() error { return a.Heap.Destroy() }

func TestConformance(t *testing.T) {
	cheaptest.TestPromises(t, func() cheap.Allocator {
		heap, err := cheap.NewHeap(cheap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return asCheap{cheaparrow.Allocator{Heap: heap}}
	}, cheaptest.Promises{Concurrent: true, Reuses: true, CountsLive: true, TellsMisuse: true, Align: 64})
}
