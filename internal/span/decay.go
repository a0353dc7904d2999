package span

import (
	"runtime"
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

var decay struct {
	nanos  atomic.Int64 // negative: never
	armed  atomic.Bool  // a timer or a cleanup is under way
	onTick atomic.Pointer[func()]
}

func init() { decay.nanos.Store(int64(DefaultDecay)) }

// sentinel is dropped so that its cleanup runs. It is large enough not to share
// a slot with other objects, which might live on.
type sentinel struct{ _ [2]uintptr }

// SetDecay sets how long units stay idle before their memory is given back, at
// least half of it and at most all, and returns what it was. 0 means at once, a
// negative d never.
func SetDecay(d time.Duration) time.Duration {
	old := decay.nanos.Swap(int64(d))
	if d >= 0 {
		idle()
	}
	return time.Duration(old)
}

// OnTick has f called, outside of all locks, whenever memory of idle units is
// looked through.
func OnTick(f func()) { decay.onTick.Store(&f) }

// idle is called when there may be idle units. It arms the timer.
func idle() {
	d := decay.nanos.Load()
	switch {
	case d < 0 || decay.armed.Load() || warmUnits() == 0:
		return
	case d == 0:
		TrimAll()
		return
	case !decay.armed.CompareAndSwap(false, true):
		return
	}
	if inBubble() {
		runtime.AddCleanup(&sentinel{}, func(int) { tick() }, 0)
		return
	}
	time.AfterFunc(time.Duration(d)/2, tick)
}

// inBubble reports whether the goroutine's clock is that of a bubble.
func inBubble() bool {
	const realClock = 2020
	return time.Now().UTC().Year() < realClock
}

// tick gives back what has been idle since the tick before.
func tick() {
	if f := decay.onTick.Load(); f != nil {
		(*f)()
	}
	d := decay.nanos.Load()
	if d >= 0 && Age() > 0 {
		time.AfterFunc(time.Duration(d)/2, tick)
		return
	}
	decay.armed.Store(false)
	idle() // something may have become idle meanwhile
}
