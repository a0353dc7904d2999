package gcwatch

import (
	"runtime"
	"sync/atomic"
)

// lasts has two objects that the runtime sweeps late: when the sweeper comes to the one that was
// dropped, nearly all spans are swept. The sweeper goes through the size classes from small objects
// to large ones, and through spans without pointers after those with pointers of one class. Objects
// above 32 KiB have spans of their own, which are swept first. So the objects have the sizes of the
// two last classes whose spans hold one object each.
//
// A span may be swept earlier than in this order, in two cases:
//
//   - A P allocates an object of the class, and sweeps the spans of the class until it finds room.
//     That is what addLast does for the next object. So two classes alternate: while an object of
//     one class waits for the sweeper, addLast allocates in the other.
//   - A P sweeps the span from which it allocates before all others. addLast allocates
//     the object that follows before it drops one, so the one that is dropped is no longer in
//     that span.
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
