// Deadlock uses what its argument says, a heap or package own, and then blocks for good, so
// that Go ends it with its message for that.
//
// It is a program and not part of a test because the packages that tests import
// have goroutines, and cgo, of their own.
package main

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/span"
)

func main() {
	switch os.Args[1] {
	case "heap":
		useHeap()
	case "own":
		useOwn()
	}
	select {}
}

// useHeap uses a heap, and waits until nothing is idle any more. An armed timer or a
// goroutine of the heap would keep Go from noticing.
func useHeap() {
	cheap.SetDecay(20 * time.Millisecond)
	var blocks []unsafe.Pointer
	for i := range 1000 {
		blocks = append(blocks, cheap.Malloc(100*i))
	}
	a := cheap.GetArena()
	a.Malloc(10_000)
	a.Put()
	for _, p := range blocks {
		cheap.Free(p)
	}
	l := cheap.Default().NewLocal()
	l.Free(l.Malloc(1000))
	_ = l.Destroy()
	fmt.Println("idle before:", span.Idle() > 0)
	for span.Idle() > 0 {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("idle after:", span.Idle() > 0)
}
