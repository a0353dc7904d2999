package span

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// The memory of idle units is released after a while. While there are idle units or spare
// memory, a timer is armed. When there are none, no timer is armed, because with an armed
// timer Go does not notice that all goroutines are blocked forever. No goroutine waits,
// because leak checks report parked goroutines.
//
// Spare memory is free blocks that a holder keeps for reuse, in spans that would be idle
// otherwise. Holder.Tick releases it.
//
// A timer must not be started in a bubble of testing/synctest. There the next
// collection does the timer's work.

// DefaultDecay is the time that units stay idle before their memory is released, unless
// SetDecay changes it.
const DefaultDecay = time.Second

var decay = struct {
	armed atomic.Bool // a tick is under way, by a timer or by gcwatch

	mu     sync.Mutex
	d      time.Duration
	timer  *time.Timer // the last one
	serial uint64      // counts calls of SetDecay; a tick with an older one is stale
	holder Holder      // nil until SetHolder
}{d: DefaultDecay}

// Spares counts bytes that are spare, up to a bound.
type Spares struct {
	bytes atomic.Int64
	most  int64
}

// What heaps keep in magazines, and in spans of one block each.
var (
	Magazines = Spares{most: 4 << 20}
	Blocks    = Spares{most: 1 << 20}
)

var unspared atomic.Bool // no bytes may be spare, because the decay is 0

// Keep counts n more bytes, unless that would exceed the bound. It reports whether it did. The
// caller calls Decay some time later.
//
//go:norace
func (s *Spares) Keep(n int64) bool {
	if unspared.Load() {
		return false
	}
	if s.bytes.Add(n) > s.most {
		s.bytes.Add(-n)
		return false
	}
	return true
}

// Bytes returns the sum.
//
//go:norace
func (s *Spares) Bytes() int64 { return s.bytes.Load() }

// Drop takes back what Keep has counted.
//
//go:norace
func (s *Spares) Drop(n int64) { s.bytes.Add(-n) }

// watched counts what each tick must examine, though no unit is idle.
var watched atomic.Int64

// Watch adds n to a sum. While the sum is not 0, the timer is armed. The caller calls Decay some
// time after it has added to the sum.
//
//go:norace
func Watch(n int64) { watched.Add(n) }

// Watched returns the sum.
func Watched() int64 { return watched.Load() }

// Spare returns how many bytes are spare.
//
//go:norace
func Spare() int64 { return Magazines.Bytes() + Blocks.Bytes() }

// SetDecay sets the time that units stay idle before their memory is released, and
// returns what it was before. The memory is released after d/2 to d, and what heaps keep for reuse up to d/2 later. With 0 it is
// released at once, with a negative d never.
//
//go:norace
func SetDecay(d time.Duration) time.Duration {
	decay.mu.Lock()
	old := decay.d
	decay.d = d
	if decay.timer != nil {
		decay.timer.Stop()
	}
	decay.serial++ // a tick that cannot be stopped any more does nothing, or arms nothing if it has begun
	decay.armed.Store(false)
	unspared.Store(d == 0)
	h := decay.holder
	decay.mu.Unlock()
	if d == 0 {
		if h != nil && (Spare() > 0 || watched.Load() > 0) {
			h.Tick() // as if two ticks had passed
			h.Tick()
		}
		TrimAll()
	}
	Decay()
	return old
}

// A Holder holds spans: the heaps of the program.
type Holder interface {
	// Tick is called by each tick of the decay, with no lock held, before the decay releases
	// idle units. Tick releases what was spare at the previous call, and has been since.
	Tick()
}

// SetHolder sets the holder of spans. Package cheap calls it while it is initialized,
// before it takes a span.
//
//go:norace
func SetHolder(h Holder) {
	decay.mu.Lock()
	defer decay.mu.Unlock()
	decay.holder = h
}

// Decay is called, with no lock held, when units may have become idle, or memory spare. It
// arms the timer if none is armed.
//
//go:norace
func Decay() {
	if decay.armed.Load() || Spare() == 0 && (watched.Load() == 0 || unspared.Load()) && Idle() == 0 {
		return
	}
	decay.mu.Lock()
	defer decay.mu.Unlock()
	switch {
	case decay.armed.Load() || decay.d < 0:
	case decay.d == 0:
		TrimAll()
	case gcwatch.InBubble():
		decay.armed.Store(true)
		serial := decay.serial
		gcwatch.Next(func() { tick(serial) })
	default:
		arm()
	}
}

// arm arms the timer. The caller holds decay.mu, and is not in a bubble.
//
//go:norace
func arm() {
	decay.armed.Store(true)
	serial := decay.serial
	decay.timer = time.AfterFunc(decay.d/2, func() { tick(serial) })
}

// tick releases the memory of units that have been idle since the tick before.
//
//go:norace
func tick(serial uint64) {
	decay.mu.Lock()
	h, stale := decay.holder, serial != decay.serial
	decay.mu.Unlock()
	if stale {
		return
	}
	if h != nil {
		h.Tick()
	}
	decay.mu.Lock()
	switch {
	case serial != decay.serial:
	case decay.d >= 0 && Age() > 0:
		arm()
	default:
		decay.armed.Store(false)
	}
	decay.mu.Unlock()
	Decay() // units may have become idle meanwhile
}
