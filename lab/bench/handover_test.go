//go:build cgo

package bench

import (
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
)

// A crate is the blocks that a producer hands to a consumer together, by address.
type crate [4096]uintptr

// put and take write and read the first byte of a block, so that it is used.
func (c *crate) put(i int, ptr unsafe.Pointer) {
	c[i] = uintptr(ptr)
	*(*byte)(ptr) = byte(i)
}

func (c *crate) take(i int) (ptr unsafe.Pointer, ok bool) {
	// The blocks are not in the Go heap, or their heap keeps them alive.
	ptr = cheap.Pointer(c[i])
	return ptr, *(*byte)(ptr) == byte(i)
}

// handover does n hand-overs: fill allocates the blocks of a crate on one
// goroutine, empty frees them on another and returns how many were intact.
func handover(tb testing.TB, n int, fill func(*crate), empty func(*crate) int) {
	full, free := make(chan *crate), make(chan *crate, 2)
	free <- new(crate)
	free <- new(crate)
	// Not on the caller's goroutine, which a comparison locks to its thread.
	go func() {
		for range n {
			c := <-free
			fill(c)
			full <- c
		}
		close(full)
	}()
	intact := make(chan int)
	go func() {
		sum := 0
		for c := range full {
			sum += empty(c)
			free <- c
		}
		intact <- sum
	}()
	if sum := <-intact; sum != n*len(crate{}) {
		tb.Errorf("%d blocks of %d arrived intact", sum, n*len(crate{}))
	}
}

// handoverSize is the size of each block.
const handoverSize = 64

func heapHandover(tb testing.TB) work {
	h := newHeap(tb)
	fill := func(c *crate) {
		for i := range c {
			c.put(i, h.Malloc(handoverSize))
		}
	}
	empty := func(c *crate) (intact int) {
		for i := range c {
			ptr, ok := c.take(i)
			if ok {
				intact++
			}
			h.Free(ptr)
		}
		return intact
	}
	return func(n int) { handover(tb, n, fill, empty) }
}

func libcHandover(tb testing.TB) work {
	var a libc.Allocator
	fill := func(c *crate) {
		for i := range c {
			c.put(i, a.Malloc(handoverSize))
		}
	}
	empty := func(c *crate) (intact int) {
		for i := range c {
			ptr, ok := c.take(i)
			if ok {
				intact++
			}
			a.Free(ptr)
		}
		return intact
	}
	return func(n int) { handover(tb, n, fill, empty) }
}

// BenchmarkHandover allocates blocks on one goroutine and frees them on
// another. An operation is a block.
func BenchmarkHandover(b *testing.B) {
	for _, c := range []struct {
		allocator string
		open      contender
	}{
		{"heap", heapHandover},
		{"libc", libcHandover},
	} {
		b.Run("allocator="+c.allocator, func(b *testing.B) {
			run := c.open(b)
			run(4)
			crates := max(1, b.N/len(crate{}))
			b.ResetTimer()
			run(crates)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(crates*len(crate{})), "ns/op")
		})
	}
}
