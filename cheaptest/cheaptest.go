// Package cheaptest tests an implementation of [cheap.Allocator]. It is for the author of an
// allocator, or of an adapter from an allocator of this module to another interface: the
// allocators of this module pass it.
//
//	func TestConformance(t *testing.T) {
//		cheaptest.TestAllocator(t, func(testing.TB) (cheap.Allocator, func() error) {
//			a := mine.New()
//			return a, a.Destroy
//		}, cheaptest.Guarantees{})
//	}
//
// [TestAllocator] tests what the interface says, and what [Guarantees] add. It tests the
// optional methods that an allocator has: those of [cheap.AlignedAllocator],
// [cheap.BoundedAllocator], [cheap.CallocAllocator], [cheap.ReallocAllocator],
// [cheap.TryAllocator] and [cheap.UsableSizeAllocator].
//
// Two checks draw their steps at random: a model, which compares the allocator with a
// reference after each step, and, for an allocator that several goroutines may use, a
// hammer. Two flags of the test binary concern them: -cheaptest.time says how long each
// of them runs, and -cheaptest.seed repeats a model that failed.
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

// Guarantees say what an allocator guarantees beyond the interface. The zero value
// guarantees nothing more.
type Guarantees struct {
	// Concurrent means that several goroutines may use the allocator at the same time.
	Concurrent bool

	// Reuses means that freed blocks are allocated again.
	Reuses bool

	// CountsLive means that the function that ends the allocator, while there are live
	// blocks, changes nothing and returns a [cheap.LiveError] with their number. After it
	// returned nil it returns [cheap.ErrDestroyed], and Malloc panics.
	CountsLive bool

	// DetectsMisuse means that Free panics, and changes nothing, for a block that is free
	// already and was not allocated again, for the inside of a block, and for memory from
	// elsewhere.
	DetectsMisuse bool

	// Align means that the address of each block is a multiple of this number of bytes. 0
	// guarantees no alignment.
	Align int
}

// TestAllocator tests that the allocators that newAllocator returns do what
// [cheap.Allocator] and g say. Each check is a subtest, gets an allocator of its own, with
// the subtest's t, and calls destroy at its end, which ends that allocator: it is nil if
// there is nothing to end, and returns an error, and releases nothing, if it finds blocks
// that were not freed. The checks allocate at most 64 MiB at a
// time, for which Malloc must not return nil; with an allocator whose Free frees nothing,
// at most 256 MiB.
func TestAllocator(t *testing.T, newAllocator func(t testing.TB) (a cheap.Allocator, destroy func() error), g Guarantees) {
	t.Helper()
	first, destroy := newAllocator(t) // only to see which methods it has
	if destroy != nil {
		if err := destroy(); err != nil {
			t.Errorf("Destroy of an unused allocator: %v", err)
		}
	}
	for _, c := range checks {
		if c.applies != nil && !c.applies(first, g) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			a, destroy := newAllocator(t)
			c.run(newTrial(t, a, destroy, g))
		})
	}
}

// A check is one subtest. It frees what it has allocated, and destroys the
// allocator by trial.finish.
type check struct {
	name    string
	applies func(cheap.Allocator, Guarantees) bool // nil: to all
	run     func(*trial)
}

// checks are all checks, in the order in which the author of an allocator gets them
// right.
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
	{"Bounded", has[cheap.BoundedAllocator], checkBounded},
	{"Calloc", has[cheap.CallocAllocator], checkCalloc},
	{"Realloc", has[cheap.ReallocAllocator], checkRealloc},
	{"UsableSize", has[cheap.UsableSizeAllocator], checkUsableSize},
	{"TryMalloc", has[cheap.TryAllocator], checkTryMalloc},
	{"Model", nil, checkModel},
	{"Reuse", func(_ cheap.Allocator, p Guarantees) bool { return p.Reuses }, checkReuse},
	{"Misuse", func(_ cheap.Allocator, p Guarantees) bool { return p.DetectsMisuse }, checkMisuse},
	{"Hammer", func(_ cheap.Allocator, p Guarantees) bool { return p.Concurrent }, checkHammer},
}

// has reports whether a has the methods of T.
func has[T any](a cheap.Allocator, _ Guarantees) bool {
	_, ok := a.(T)
	return ok
}

// A reporter has the methods of a [testing.T] that a trial needs.
type reporter interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// A trial is one allocator in one check. Goroutines other than that of the check use
// only Logf and Errorf of the reporter.
type trial struct {
	reporter
	a          cheap.Allocator
	destroy    func() error
	guarantees Guarantees
	maxSize    int // the largest size that Malloc accepts
	time       time.Duration
	now        func() time.Time
	seed       uint64
}

func newTrial(r reporter, a cheap.Allocator, destroy func() error, p Guarantees) *trial {
	if destroy == nil {
		destroy = func() error { return nil }
	}
	t := &trial{reporter: r, a: a, destroy: destroy, guarantees: p, maxSize: math.MaxInt, time: *longer, now: time.Now, seed: *seed}
	if s, ok := a.(cheap.BoundedAllocator); ok {
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
	if err := t.destroy(); err != nil {
		t.Errorf("Destroy, when all blocks are freed: %v", err)
	}
}

// panics calls f, and reports whether it panicked, and with which value.
func panics(f func()) (value any, panicked bool) {
	panicked = true
	defer func() { value = recover() }()
	f()
	panicked = false
	return
}
