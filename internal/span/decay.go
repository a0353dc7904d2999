package span

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Idle units give their memory back after a while. While there are some, a
// timer is armed, and no goroutine waits; when there are none, there is no
// timer either: a parked goroutine is what leak checks report, and an armed
// timer keeps Go from noticing that all goroutines are blocked for good.
//
// A timer that is made inside a bubble of testing/synctest belongs to it: it
// runs on the bubble's time, and never if the test ends before. Nothing tells a
// goroutine that it is in a bubble, but time there starts in the year 2000. In
// one, the timer is left to a cleanup, which the runtime calls outside of all
// bubbles after the next collection.

// DefaultDecay is how long units stay idle before their memory is given back,
// unless SetDecay says otherwise.
const DefaultDecay = time.Second

var decay = struct {
	armed atomic.Bool // a timer or a cleanup is under way, or none is wanted

	mu     sync.Mutex
	d      time.Duration
	timer  *time.Timer // the last one
	serial uint64      // what armed is about; a tick with another one is stale
	onTick func()
}{d: DefaultDecay}

// sentinel is dropped so that its cleanup runs. It is large enough not to share
// a slot with other objects, which might live on.
type sentinel struct{ _ [16]byte }

// SetDecay sets how long units stay idle before their memory is given back, at
// least half of it and at most all, and returns what it was. 0 means at once, a
// negative d never.
//
//go:norace
func SetDecay(d time.Duration) time.Duration {
	decay.mu.Lock()
	old := decay.d
	decay.d = d
	if decay.timer != nil {
		decay.timer.Stop()
	}
	decay.serial++ // so a tick that cannot be stopped any more arms nothing
	decay.armed.Store(false)
	decay.mu.Unlock()
	if d == 0 {
		TrimAll()
	}
	Decay()
	return old
}

// OnTick has f called, outside of all locks, before memory of idle units is
// looked through.
//
//go:norace
func OnTick(f func()) {
	decay.mu.Lock()
	defer decay.mu.Unlock()
	decay.onTick = f
}

// Decay is called, with no lock held, when there may be idle units. It arms the
// timer if none is.
//
//go:norace
func Decay() {
	if decay.armed.Load() || Warm() == 0 {
		return
	}
	decay.mu.Lock()
	defer decay.mu.Unlock()
	switch {
	case decay.armed.Load() || decay.d < 0:
	case decay.d == 0:
		TrimAll()
	case inBubble():
		decay.armed.Store(true)
		runtime.AddCleanup(&sentinel{}, tick, decay.serial)
	default:
		arm()
	}
}

// arm arms the timer. The caller holds decay.mu, and is in no bubble.
//
//go:norace
func arm() {
	decay.armed.Store(true)
	serial := decay.serial
	decay.timer = time.AfterFunc(decay.d/2, func() { tick(serial) })
}

// inBubble reports whether the goroutine's clock is that of a bubble.
func inBubble() bool {
	const realClock = 2020
	return time.Now().UTC().Year() < realClock
}

// tick gives back what has been idle since the tick before.
//
//go:norace
func tick(serial uint64) {
	decay.mu.Lock()
	f := decay.onTick
	decay.mu.Unlock()
	if f != nil {
		f()
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
	Decay() // something may have become idle meanwhile
}
