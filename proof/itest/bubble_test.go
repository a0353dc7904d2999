package itest

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// useInBubble uses everything in a bubble of its own, as the test of a
// program would. A timer that was left in the bubble would never run, and a
// goroutine there would keep it from ending.
func useInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		useAll(t)
		time.Sleep(time.Hour) // of the bubble's time: what waits there runs now
		synctest.Wait()
		useAll(t)
	})
}

// mustDecay looks whether what is idle goes back by itself, if the collector
// runs now and then: it does the work of a timer where there cannot be one.
func mustDecay(t *testing.T) {
	t.Helper()
	testwait.Until(t, "nothing is idle", func() bool {
		runtime.GC()
		return span.Idle() == 0
	})
}

// TestFirstUseInBubble uses a heap inside of a bubble before anywhere else.
func TestFirstUseInBubble(t *testing.T) {
	inChild(t, func(t *testing.T) {
		useInBubble(t)
		if span.Idle() == 0 {
			t.Error("nothing is idle after the bubble")
		}
		mustDecay(t)
		useAll(t)
		mustDecay(t)
		goleak.VerifyNone(t)
	})
}

// TestDecayAfterBubble looks whether timers are used again, and not only
// collections, once what a bubble left is gone.
func TestDecayAfterBubble(t *testing.T) {
	inChild(t, func(t *testing.T) {
		testheap.SetDecay(t, 50*time.Millisecond)
		useInBubble(t)
		mustDecay(t)
		for range 3 {
			useAll(t)
			testwait.Until(t, "nothing is idle without a collection", func() bool { return span.Idle() == 0 })
		}
	})
}

// TestDecayBesideTinyObjects keeps small Go objects that were made just before and
// after the heap needed the collector to notice that one of its own is dropped.
// The runtime puts several into one slot if they are smaller than 16 bytes and
// have no pointers, and one that lives keeps the rest.
func TestDecayBesideTinyObjects(t *testing.T) {
	inChild(t, func(t *testing.T) {
		testheap.SetDecay(t, 10*time.Millisecond)
		for range 10 {
			var keep []*[4]byte
			synctest.Test(t, func(t *testing.T) {
				for range 8 {
					keep = append(keep, new([4]byte))
					cheap.Free(cheap.Malloc(100_000))
					keep = append(keep, new([4]byte))
				}
			})
			mustDecay(t)
			runtime.KeepAlive(keep)
		}
	})
}

// TestSetDecayAfterBubble changes the decay while the collector has yet to find
// what a bubble left: the new one holds at once, in the bubble and outside.
func TestSetDecayAfterBubble(t *testing.T) {
	inChild(t, func(t *testing.T) {
		testheap.SetDecay(t, time.Hour)
		for range 3 {
			useAll(t) // arms a timer
			synctest.Test(t, func(t *testing.T) {
				cheap.SetDecay(20 * time.Millisecond)
				useAll(t)
				cheap.SetDecay(0)
				mustNotBeIdle(t)
				useAll(t)
				mustNotBeIdle(t)
				cheap.SetDecay(time.Hour)
				useAll(t)
			})
			cheap.SetDecay(0)
			useAll(t)
			mustNotBeIdle(t)
			useInBubble(t)
			cheap.SetDecay(10 * time.Millisecond)
			useAll(t)
			testwait.Until(t, "nothing is idle without a collection", func() bool { return span.Idle() == 0 })
			cheap.SetDecay(time.Hour)
		}
	})
}

func mustNotBeIdle(t *testing.T) {
	t.Helper()
	if n := span.Idle(); n != 0 {
		t.Errorf("%d bytes are idle, and the decay is 0", n)
	}
}

// TestBubbleAfterUse uses a heap inside of a bubble after, and while, it is used
// outside.
func TestBubbleAfterUse(t *testing.T) {
	inChild(t, func(t *testing.T) {
		testheap.SetDecay(t, 20*time.Millisecond)
		p := cheap.Malloc(1000) // freed in the bubble
		q := cheap.Malloc(70_000)
		useAll(t) // a timer is armed now
		l := cheap.Default().NewLocal()
		synctest.Test(t, func(t *testing.T) {
			cheap.Free(p)
			cheap.Free(q)
			p = cheap.Malloc(100_000) // and this one outside
			l.Free(l.Malloc(100))
			useAll(t)
			time.Sleep(time.Minute)
			cheap.Trim()
		})
		useInBubble(t)
		cheap.Free(p)
		l.Destroy()
		mustDecay(t)
		goleak.VerifyNone(t)
	})
}
