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

// released is the time spent on freeing, in nanoseconds. All bindings add to it, from
// any goroutine.
var released atomic.Int64

// Reading the clock twice takes as long as freeing a small object. So of the calls
// that free fewer than sample objects, one in sample is timed, and counts sample
// times. It is chosen at random, because objects are freed in patterns.
const sample = 16

// TimeRelease calls release, which frees n objects of a kind, and measures its time.
func TimeRelease(k Kind, n int, release func()) {
	weight := time.Duration(1)
	// A repository is rare, and expensive to free: libgit2's cache is freed with it.
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

// Released returns the time that this process has spent on freeing objects, including
// the calls from Go to C. It is time on the clock, in which other threads may run, and
// an estimate if objects are freed one by one.
func Released() time.Duration { return time.Duration(released.Load()) }
