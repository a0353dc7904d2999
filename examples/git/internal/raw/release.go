//go:build cgo && libgit2

package raw

// #include "raw.h"
import "C"

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
	"unsafe"
)

// released is the time that was spent on freeing, in nanoseconds. All bindings
// add to it, from any goroutine.
var released atomic.Int64

// To look at the clock twice takes as long as it takes to free something small.
// So of calls that free fewer objects than this, one in so many is timed, and
// counts that often. Which one is left to chance, because what is freed comes
// in patterns.
const sample = 16

// TimeRelease calls release, which frees n objects of a kind, and takes its time.
func TimeRelease(k Kind, n int, release func()) {
	weight := time.Duration(1)
	// A repository is rare and large: what libgit2 has cached goes with it.
	if n < sample && k != Repository {
		if rand.Uint32()%sample != 0 {
			release()
			return
		}
		weight = sample
	}
	start := time.Now()
	release()
	released.Add(int64(weight * time.Since(start)))
}

// Free frees one object.
func Free(k Kind, object unsafe.Pointer) {
	TimeRelease(k, 1, func() { C.raw_free(C.int(k), object) })
}

// Released returns how long this process has been freeing objects so far, with
// the calls from Go to C. It is time on the clock, also of what happens in other
// threads, and an estimate where objects are not freed many at a time.
func Released() time.Duration { return time.Duration(released.Load()) }
