//go:build !cgo

package manual

import (
	"math/bits"
	"sync"
	"unsafe"
)

// pools keep what is freed, by the power of two that it is large.
var pools [bits.UintSize]sync.Pool

// New returns n zeros in the Go heap.
func New(purpose Purpose, n uintptr) Buf {
	if n == 0 {
		return Buf{}
	}
	recordAlloc(purpose, n)
	log := bits.Len64(uint64(n - 1))
	if p, ok := pools[log].Get().(unsafe.Pointer); ok {
		clear(unsafe.Slice((*byte)(p), n))
		return Buf{data: p, n: n}
	}
	return Buf{data: unsafe.Pointer(unsafe.SliceData(make([]byte, 1<<log))), n: n}
}

// Free keeps a Buf for New.
func Free(purpose Purpose, b Buf) {
	if b.n != 0 {
		recordFree(purpose, b.n)
		pools[bits.Len64(uint64(b.n-1))].Put(b.data)
	}
}
