//go:build !cgo

package manual

import "github.com/cheapgo/cheap"

// memory is what New takes blocks from. It has no limit: pebble bounds its cache and its memtables.
var memory = newHeap()

func newHeap() *cheap.Heap {
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: "pebble"})
	if err != nil {
		panic(err) // the program has no memory to begin with
	}
	return h
}

// New returns n zeros outside the Go heap, which stay until Free.
func New(purpose Purpose, n uintptr) Buf {
	if n == 0 {
		return Buf{}
	}
	p, err := memory.TryCalloc(1, int(n))
	if err != nil {
		panic(err)
	}
	recordAlloc(purpose, n)
	return Buf{data: p, n: n}
}

// Free frees a Buf that New returned for the same purpose.
func Free(purpose Purpose, b Buf) {
	if b.n != 0 {
		recordFree(purpose, b.n)
		memory.Free(b.data)
	}
}
