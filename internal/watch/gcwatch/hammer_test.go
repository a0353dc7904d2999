package gcwatch

import (
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestHammer adds, drops, keeps and stops from several goroutines, while collections
// run and GOMAXPROCS changes. Each function is called at most once, never for an
// object that is kept nor after Stop, and all others are called in the end.
func TestHammer(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			testchild.MustPass(t, func(t *testing.T) {
				m.set()
				hammer(t)
			})
		})
	}
}

// A fate is what becomes of a function.
type fate struct {
	state atomic.Uint32
	calls *atomic.Int64
}

const (
	waits   = iota
	kept    // must not be called
	stopped // must not be called, unless it was called before
	called
)

func hammer(t *testing.T) {
	debug.SetGCPercent(20)
	runtime.GOMAXPROCS(4)
	const goroutines, each = 6, 3_000
	var calls, want, adds atomic.Int64
	f := func(f *fate) {
		if old := f.state.Swap(called); old != waits {
			t.Errorf("called in state %d", old)
		}
		f.calls.Add(1)
	}
	var disturb, users sync.WaitGroup
	disturb.Go(func() {
		rnd := rand.New(rand.NewPCG(1, 2))
		for n := adds.Load(); n < goroutines*each; n = adds.Load() {
			runtime.GC()
			if rnd.IntN(4) == 0 {
				runtime.GOMAXPROCS(1 + rnd.IntN(8))
			}
			for next := min(n+rnd.Int64N(200), goroutines*each); adds.Load() < next; {
				runtime.Gosched()
			}
		}
	})
	for g := range goroutines {
		users.Go(func() {
			type mine struct {
				o *object
				h Cleanup
				f *fate
			}
			rnd := rand.New(rand.NewPCG(uint64(g), 3))
			var keep [64]mine
			for i := range each {
				x := mine{o: new(object), f: &fate{calls: &calls}}
				keeps := rnd.IntN(2) == 0
				if keeps {
					x.f.state.Store(kept)
				}
				x.h = AddCleanup(x.o, f, x.f)
				adds.Add(1)
				if !keeps {
					want.Add(1)
					continue
				}
				slot := &keep[i%len(keep)]
				if old := *slot; old.o != nil {
					if rnd.IntN(2) == 0 {
						old.f.state.Store(stopped)
						old.h.Stop()
						runtime.KeepAlive(old.o)
						if s := old.f.state.Load(); s != stopped {
							t.Errorf("state %d after Stop", s)
						}
					} else {
						old.f.state.Store(waits)
						runtime.KeepAlive(old.o)
						want.Add(1)
					}
				}
				*slot = x
			}
			for _, old := range keep {
				old.f.state.Store(waits)
				runtime.KeepAlive(old.o)
				want.Add(1)
			}
		})
	}
	users.Wait()
	disturb.Wait()
	// With fewer Ps than before the runtime may have lost cleanups, so collect would wait for them.
	testwait.Until(t, "all are called", func() bool { runtime.GC(); return calls.Load() >= want.Load() })
	testwait.Until(t, "the blocks are gone", func() bool { runtime.GC(); return blocks(t) <= len(registry) && !Walking() })
	if got := calls.Load(); got != want.Load() || count() != 0 {
		t.Errorf("%d calls, want %d; %d functions wait", got, want.Load(), count())
	}
}
