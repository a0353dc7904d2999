// Package cheaptest tests implementations of [cheap.Allocator]: those of this
// module, and those that others write.
//
//	func TestConformance(t *testing.T) {
//		cheaptest.TestAllocator(t, func() cheap.Allocator { return mine.New() })
//	}
//
// [TestAllocator] holds an allocator to what the interface says. What a type
// says beyond that, [TestPromises] is told. Methods that are not of the
// interface are tested where an allocator has them, with the meaning that they
// have for a [cheap.Heap]: AlignedMalloc, Calloc, Realloc, UsableSize,
// TryMalloc, and MaxSize with Owns.
//
// Two checks draw their steps at random: a model, which compares the allocator
// with what it must do after each step, and, for an allocator that several
// goroutines may use, a hammer. The flags of the test binary that concern them
// are -cheaptest.time, how long each of them goes on, and -cheaptest.seed, which
// repeats a model that failed.
package cheaptest

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cheapgo/cheap"
)

var (
	longer = flag.Duration("cheaptest.time", 0, "how long the model and the hammer of each allocator go on; 0 for a fraction of a second")
	seed   = flag.Uint64("cheaptest.seed", 0, "the seed of the models; 0 for another one each time")
)

// Promises are what an allocator's type may say beyond the interface. The zero
// value promises nothing.
type Promises struct {
	// Any goroutine may use the allocator, at the same time as others.
	Concurrent bool

	// Blocks that are freed are handed out again.
	Reuses bool

	// While there are live blocks, Destroy returns a [cheap.LiveError] that has
	// their number, and changes nothing. After it has returned nil it returns
	// [cheap.ErrDestroyed], and Malloc panics.
	CountsLive bool

	// Free panics for a block that is free already, as long as it has not been
	// handed out again, for the inside of a block and for memory of others, and
	// changes nothing.
	TellsMisuse bool

	// The address of each block is a multiple of this, where it is not 0.
	Align int
}

// TestAllocator tests that what newAllocator returns does what [cheap.Allocator]
// says, each check as a subtest with an allocator of its own, which is destroyed
// at its end. At most 64 MiB are asked for at a time, and Malloc may not return
// nil for them; an allocator whose Free frees nothing takes up to 256 MiB.
func TestAllocator(t *testing.T, newAllocator func() cheap.Allocator) {
	t.Helper()
	TestPromises(t, newAllocator, Promises{})
}

// TestPromises is [TestAllocator] of an allocator that promises more.
func TestPromises(t *testing.T, newAllocator func() cheap.Allocator, promises Promises) {
	t.Helper()
	first := newAllocator() // only to see what it has
	if err := first.Destroy(); err != nil {
		t.Errorf("Destroy, when nothing was done: %v", err)
	}
	for _, c := range checks {
		if c.applies != nil && !c.applies(first, promises) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			c.run(newTrial(t, newAllocator(), promises))
		})
	}
}

// A check is one subtest. It frees what it has allocated, and destroys the
// allocator by trial.finish.
type check struct {
	name    string
	applies func(cheap.Allocator, Promises) bool // nil: to all
	run     func(*trial)
}

// checks are in the order of what an implementation gets right first.
var checks = []check{
	{"Sizes", nil, checkSizes},
	{"Zero", nil, checkZero},
	{"Negative", nil, checkNegative},
	{"FreeNil", nil, checkFreeNil},
	{"TooLarge", nil, checkTooLarge},
	{"Destroy", nil, checkDestroy},
	{"Live", nil, checkLive},
	{"Helpers", nil, checkHelpers},
	{"Collector", nil, checkCollector},
	{"Goroutines", nil, checkGoroutines},
	{"Aligned", has[cheap.AlignedAllocator], checkAligned},
	{"Sized", has[cheap.SizedAllocator], checkSized},
	{"Calloc", has[callocer], checkCalloc},
	{"Realloc", has[reallocer], checkRealloc},
	{"UsableSize", has[usableSizer], checkUsableSize},
	{"TryMalloc", has[tryMallocer], checkTryMalloc},
	{"Model", nil, checkModel},
	{"Reuse", func(_ cheap.Allocator, p Promises) bool { return p.Reuses }, checkReuse},
	{"Misuse", func(_ cheap.Allocator, p Promises) bool { return p.TellsMisuse }, checkMisuse},
	{"Hammer", func(_ cheap.Allocator, p Promises) bool { return p.Concurrent }, checkHammer},
}

// Methods that an allocator may have.
type (
	callocer interface {
		Calloc(count, size int) pointer
	}
	reallocer interface {
		Realloc(ptr pointer, size int) pointer
	}
	usableSizer interface {
		UsableSize(ptr pointer) int
	}
	tryMallocer interface {
		TryMalloc(size int) (pointer, error)
	}
)

// has reports whether a has the methods of T.
func has[T any](a cheap.Allocator, _ Promises) bool {
	_, ok := a.(T)
	return ok
}

// A reporter is what a trial needs of a [testing.T].
type reporter interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// A trial is one allocator in one check. Goroutines other than the check's own
// use the reporter's Logf and Errorf alone.
type trial struct {
	reporter
	a        cheap.Allocator
	promises Promises
	maxSize  int // the largest size that Malloc takes
	time     time.Duration
	seed     uint64
}

func newTrial(r reporter, a cheap.Allocator, p Promises) *trial {
	t := &trial{reporter: r, a: a, promises: p, maxSize: math.MaxInt, time: *longer, seed: *seed}
	if s, ok := a.(cheap.SizedAllocator); ok {
		t.maxSize = s.MaxSize()
	}
	if t.seed == 0 {
		t.seed = rand.Uint64()
	}
	return t
}

// finish destroys the allocator, which has no live blocks.
func (t *trial) finish() {
	t.Helper()
	if err := t.a.Destroy(); err != nil {
		t.Errorf("Destroy, when all blocks are freed: %v", err)
	}
}

// panics reports whether f does.
func panics(f func()) (value any, panicked bool) {
	panicked = true
	defer func() { value = recover() }()
	f()
	panicked = false
	return
}
