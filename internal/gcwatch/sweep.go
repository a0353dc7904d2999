package gcwatch

import (
	"runtime"
	"sync/atomic"
)

// lasts has objects that the sweeper comes to last. The sweeper goes from small objects
// to large ones. Objects without pointers are behind the others of their size. Still
// larger ones have spans of their own, and are swept first.
//
// There are two exceptions. A P that needs a span for objects of a size sweeps those of
// that size first. So the next watch, which begins while this one's object waits for
// the sweeper, takes the other size. And the span from which a P allocates is swept at
// once. Objects of these two sizes have a span each. So an object is used when the next
// one has been allocated.
var lasts struct {
	n atomic.Uint32 // calls of afterSweep
	a atomic.Pointer[[32<<10 - 8]byte]
	b atomic.Pointer[[24 << 10]byte]
}

// afterSweep calls f after the next collection, when all objects that died in it are swept,
// with few exceptions. Next calls its functions earlier, mostly. since is a number of
// collections that have ended, and f gets it.
//
// This is one cleanup of the runtime, for an object that is swept last; see lasts. It
// may be lost. It is early if the program itself allocates objects of that size, or the
// runtime sweeps in another order. So f is for what had better be done then, and can be
// done later. It runs where the functions of Next run, and must return soon.
func afterSweep(f func(since uint64), since uint64) {
	if lasts.n.Add(1)%2 == 0 {
		addLast(&lasts.a, f, since)
	} else {
		addLast(&lasts.b, f, since)
	}
}

// addLast drops the object in last, after whose death f is called, and puts another one
// there.
func addLast[T any](last *atomic.Pointer[T], f func(since uint64), since uint64) {
	if last.Load() == nil {
		last.Store(new(T))
	}
	runtime.AddCleanup(last.Swap(new(T)), f, since)
}
