package pace

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/cleanup"
)

// TestDrainWaitsForWalk drops objects whose functions take long, so that the walk goes on
// elsewhere than on the runtime's goroutine. A drain is not over before all functions have
// returned.
func TestDrainWaitsForWalk(t *testing.T) {
	const tries, n = 10, 200
	for range tries {
		calls := new(atomic.Int64)
		over := make(chan struct{})
		go func() {
			defer close(over)
			for range n {
				cleanup.Add(new([16]byte), func(calls *atomic.Int64) {
					if calls.Load()%64 == 0 {
						time.Sleep(stuckDrain)
					}
					calls.Add(1)
				}, calls)
			}
		}()
		<-over
		runtime.GC()
		var r reader
		_, whole := drain(&r, true)
		if got := calls.Load(); whole {
			if got != n {
				t.Errorf("the drain is over after %d calls of %d", got, n)
			}
			return
		}
		wait(t, "the functions", func() bool { runtime.GC(); return calls.Load() == n })
	} // a busy machine
	t.Errorf("none of %d drains has ended before longestDrain", tries)
}

// TestNotInVain ends collections for requests at a limit. Those that have freed bytes are
// not in vain, even if others have taken as many meanwhile, and those that have freed none
// are, in the end.
func TestNotInVain(t *testing.T) {
	p := new(pacer)
	held := account.Held()
	for _, row := range []struct {
		freed, held int64
		vain        bool
	}{
		{mib, held, false},
		{0, held + 1, false},
		{0, held, true},
	} {
		last := drained
		for range 2 * mostVain {
			last = p.endOf(true, row.freed, row.held, time.Now())
		}
		if (last == vain) != row.vain {
			t.Errorf("%d bytes freed, %d more held before: %s", row.freed, row.held-held, eventNames[last])
		}
	}
	for range 2 * mostVain {
		if e := p.endOf(false, 0, held, time.Now()); e != drained {
			t.Errorf("a collection that no request wanted: %s", eventNames[e])
		}
	}
}
