// The program that tools/misses traces. It allocates and frees blocks of one size, in lists that are
// longer than a magazine, so that some calls leave the fast path.
package main

import (
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"github.com/cheapgo/cheap"
)

func main() {
	runtime.LockOSThread()
	size, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	cheap.SetDecay(-1) // nothing in the background
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		panic(err)
	}
	var blocks [1500]unsafe.Pointer
	run := func() {
		for i := range blocks {
			blocks[i] = h.Malloc(size)
		}
		for _, p := range blocks {
			h.Free(p)
		}
	}
	run()
	begin()
	run()
	run()
	end()
}

// begin and end enclose what is traced.
//
//go:noinline
func begin() { runtime.KeepAlive(os.Args) }

//go:noinline
func end() { runtime.KeepAlive(os.Args) }
