// Package sample keeps samples of the blocks that heaps hand out: where in the program they
// were allocated, how many bytes are in use, and how long blocks live. Package inspect makes
// profiles of them.
//
// # Which blocks are sampled
//
// A block of s bytes is sampled with the probability 1 − exp(−s/rate). That is as if
// random points were drawn along the allocated bytes, rate bytes apart in the mean, and
// each block with a point in it were sampled. The runtime's heap profile does the same.
// The weight of a sample is the inverse of the probability. So the expected sum of the
// weights is the number of blocks, whatever the sizes are.
//
// The blocks of a size class have one size. So the caches of a heap count blocks instead of
// bytes: [Distance] draws how many blocks follow that are not sampled. The distribution has
// no memory, so every class of every cache draws its own distances. Where a heap does not
// count, [Chance] decides for one block.
//
// # Concurrency
//
// All functions may be called from any goroutine. The lock of the package is the last to be
// taken: nothing is called under it but the Go allocator.
package sample

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
)

const (
	// DefaultRate is the rate that costs next to nothing, in bytes between two samples in the mean:
	// that of the profile of the Go heap. Modules cmem and inspect have it for programs.
	DefaultRate = 512 << 10

	// Never is the distance to a sample that does not come. A cache never hands out so many
	// blocks, and with a count of blocks added to it Never does not overflow.
	Never = math.MaxInt64 / 2

	// Redraw is a count of blocks that every cache has reached. A cache whose next sample
	// is due then draws a distance, and samples nothing.
	Redraw = -1
)

var (
	rate  atomic.Int64          // 0 is off
	heaps atomic.Pointer[Heaps] // nil until SetHeaps
)

// Heaps are what hands out blocks, with caches that have drawn distances.
type Heaps interface {
	// RatesChanged is called after each change of a rate: the distances drawn before are of
	// the old rate.
	RatesChanged()
}

// SetHeaps sets what hands out blocks. Package cheap calls it while it is initialized, before it
// draws a distance.
func SetHeaps(h Heaps) { heaps.Store(&h) }

// Rate returns how many bytes lie between two samples in the mean. 0 means that nothing is
// sampled.
func Rate() int64 { return rate.Load() }

// SetRate sets the rate, and returns the old one. A rate below 0 is 0.
func SetRate(n int64) int64 { return set(&rate, n) }

// Distance returns how many blocks of size bytes are handed out before the next one that
// is to be sampled, with the given rate.
func Distance(size uintptr, rate int64) int64 {
	switch rate {
	case 0:
		return Never
	case 1:
		return 0
	}
	// The exponential distribution, rounded down, is the geometric one.
	n := rand.ExpFloat64() * float64(rate) / float64(size)
	if n >= Never {
		return Never
	}
	return int64(n)
}

// Chance reports whether a block of size bytes is to be sampled.
func Chance(size uintptr) bool {
	r := Rate()
	return r != 0 && (r == 1 || rand.Float64() < probability(size, r))
}

// probability returns the probability that a block is sampled. With a rate of 1 it is 1: a
// program that asks for every block gets exact numbers.
func probability(size uintptr, rate int64) float64 {
	if rate <= 1 {
		return 1
	}
	return -math.Expm1(-float64(size) / float64(rate))
}
