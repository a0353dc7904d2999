// Package trap has a queue of values in a heap with a limit. The queue evicts the
// oldest value in one of two ways: before it allocates, by a budget of bytes, or
// when Malloc returns nil. The second way is the trap. The package is there to
// measure what it costs.
package trap

import (
	"unsafe"

	"github.com/cheapgo/cheap"
)

// A Queue keeps the values that were put last. Only one goroutine at a time may use
// it.
type Queue struct {
	Failed int // Mallocs that returned nil

	heap   *cheap.Heap
	budget int64 // usable bytes; 0 leaves the decision to Malloc
	used   int64
	values []value // the oldest first, from head on
	head   int
}

type value struct {
	addr   uintptr
	usable int64
}

// New returns a queue that evicts by budget, or, if budget is 0, when Malloc
// returns nil.
func New(heap *cheap.Heap, budget int64) *Queue {
	return &Queue{heap: heap, budget: budget}
}

// Put copies data into the queue, and reports whether there was room.
func (q *Queue) Put(data []byte) bool {
	usable := int64(cheap.GoodSize(len(data)))
	for q.budget > 0 && q.used+usable > q.budget && q.Len() > 0 {
		q.evict()
	}
	p := q.heap.Malloc(len(data))
	for ; p == nil; p = q.heap.Malloc(len(data)) {
		q.Failed++
		if q.Len() == 0 {
			return false
		}
		q.evict() // frees a block, but maybe of another size
	}
	copy(unsafe.Slice((*byte)(p), len(data)), data) // p is a block of that size
	q.values = append(q.values, value{uintptr(p), usable})
	q.used += usable
	return true
}

// Len returns the number of values.
func (q *Queue) Len() int { return len(q.values) - q.head }

// evict frees the oldest value.
func (q *Queue) evict() {
	v := q.values[q.head]
	q.head++
	q.used -= v.usable
	q.heap.Free(cheap.Pointer(v.addr))
	if q.head > len(q.values)/2 {
		q.values = q.values[:copy(q.values, q.values[q.head:])]
		q.head = 0
	}
}

// Clear frees all values.
func (q *Queue) Clear() {
	for q.Len() > 0 {
		q.evict()
	}
}
