package sample

import (
	"math/rand/v2"
	"sync/atomic"
)

// guardRate is the mean number of blocks per guarded block; 0 is off.
var guardRate atomic.Int64

// GuardRate returns the mean number of blocks that are handed out per guarded block. 0
// means that none is guarded.
func GuardRate() int64 { return guardRate.Load() }

// SetGuardRate sets the rate, and returns the old one. A rate below 0 is 0.
func SetGuardRate(n int64) int64 { return set(&guardRate, n) }

// set sets one of the two rates, tells the heaps, and returns the old rate.
func set(rate *atomic.Int64, n int64) (old int64) {
	old = rate.Swap(max(0, n))
	if h := heaps.Load(); h != nil {
		(*h).RatesChanged()
	}
	return old
}

// Rates are the two rates by which a cache picks blocks: for the profiles by bytes, and to be
// guarded by number. A block is picked for each independently. The cache counts down to the
// nearer of the two picks. As the distributions have no memory, the cache need not keep which
// of the two it is.
type Rates struct{ Bytes, Guard int64 }

// A Pick says what a block was picked for.
type Pick struct{ Profile, Guard bool }

// CurrentRates returns both rates.
func CurrentRates() Rates { return Rates{rate.Load(), guardRate.Load()} }

// Distance is [Distance] to the nearest pick.
func (r Rates) Distance(size uintptr) int64 {
	return min(Distance(size, r.Bytes), Distance(1, r.Guard))
}

// Draw returns what a block of size bytes is picked for, if anything.
func (r Rates) Draw(size uintptr) Pick {
	return Pick{hit(r.Bytes, size), hit(r.Guard, 1)}
}

// Due is Draw of a block that is known to be picked for one thing or both, unless both
// rates are 0.
func (r Rates) Due(size uintptr) Pick {
	profile, guard := 0.0, 0.0
	if r.Bytes != 0 {
		profile = probability(size, r.Bytes)
	}
	if r.Guard != 0 {
		guard = probability(1, r.Guard)
	}
	switch x := rand.Float64() * (profile + guard - profile*guard); {
	case profile == 0 || guard == 0:
		return Pick{profile != 0, guard != 0}
	case x < profile*guard:
		return Pick{true, true}
	case x < profile:
		return Pick{Profile: true}
	}
	return Pick{Guard: true}
}

// hit draws whether a point lies in a stretch of size bytes, at a rate that may be 0.
func hit(rate int64, size uintptr) bool {
	return rate != 0 && (rate == 1 || rand.Float64() < probability(size, rate))
}
