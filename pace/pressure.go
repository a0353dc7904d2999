package pace

import (
	"runtime"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// A patience says how long goroutines wait for others.
type patience struct {
	// bound is the longest wait at the bound.
	bound time.Duration

	// loose is the longest wait at the bound after a drain without progress: a goroutine
	// that waits may hold the lock that the releases need.
	loose time.Duration

	// limit is how long a request at a limit waits after its collection. longest.limit is
	// also how long MaxGCShare may delay that collection.
	limit time.Duration

	// drain is how long a collection waits for its releases at most, and stuck for how long
	// while none of them ends.
	drain, stuck time.Duration
}

// longest is the patience where the limit is about what is counted, and without a limit. Tests
// change it before Start.
var longest = patience{
	bound: 100 * time.Millisecond,
	loose: time.Millisecond,
	limit: 100 * time.Millisecond,
	drain: 200 * time.Millisecond,
	stuck: 20 * time.Millisecond,
}

// longestMetered is the patience where the kernel says what is used, and would kill. On a
// busy machine no release ends for a while, though none is stuck.
var longestMetered = patience{
	bound: time.Second,
	loose: time.Millisecond,
	limit: time.Second,
	drain: time.Second,
	stuck: 200 * time.Millisecond,
}

// patience returns the patience of all goroutines.
func (p *pacer) patience() patience {
	if p.metered.Load() {
		return longestMetered
	}
	return longest
}

// tick is the time after which a goroutine that waits checks by itself, in case that no
// goroutine has woken it.
const tick = time.Millisecond

// Pressure is called by a goroutine that has charged memory, after a bound was reached.
func (p *pacer) Pressure() {
	if n := p.admitted.Load(); n > 0 {
		p.admitted.CompareAndSwap(n, n-1)
	}
	p.awaitMalloc()
	p.Check()
	p.giveWay()
}

// Check finds out whether a collection is due, and starts it.
func (p *pacer) Check() {
	gcwatch.Poll() // calls collected, if the runtime has lost its report of the last collection
	if p.stale() && p.lock() {
		if p.stale() {
			p.adjust()
			p.launch(false)
		}
		p.mu.Unlock()
		p.tend()
		p.awaitCollection()
	}
}

// lock locks p.mu for adjust. If another goroutine holds p.mu, it sets the bounds already, so lock
// returns false. At the bound, and when all was taken that was left at the last look, lock waits for that
// goroutine, which may have lost its processor: until it goes on it is not known whether a collection is due,
// nor what is left. On a busy machine that may take 200 ms.
func (p *pacer) lock() bool {
	if p.mu.TryLock() {
		return true
	}
	reclaimable, ever := account.Process.Reclaimable()
	if reclaimable < p.bound.Load() && ever < p.takenMost.Load() || !mayWait() {
		return false
	}
	p.mu.Lock()
	return true
}

// mayWait reports whether the goroutine may wait for releases. In a release function, and in one of OnPressure, it
// would wait for itself, and in a bubble of testing/synctest time stands still.
func mayWait() bool { return !gcwatch.InBubble() && !gcwatch.InSection() && !inFree() }

// stale reports whether the bounds may be wrong.
func (p *pacer) stale() bool {
	switch p.state() {
	case idle, refused:
		return true
	case due:
		return gcwatch.Clock(time.Now()) >= p.from() || p.limitStale()
	default: // only the limit needs a check
		return p.limitStale()
	}
}

// limitStale reports whether the limit needs a check. While releases run, others may take as much as these
// give back, so Held stays, and malloc may still take fresh memory: so what was ever taken counts as well.
func (p *pacer) limitStale() bool {
	if account.Process.Held() >= p.heldAt.Load() {
		return true
	}
	_, ever := account.Process.Reclaimable()
	return ever >= p.takenAt.Load()
}

// giveWay is called after memory was taken. While a collection or its releases are due or under
// way, the goroutine waits for releases if the bound is reached, and else yields, if no goroutine
// has yielded within yieldEach.
func (p *pacer) giveWay() {
	if !p.busy() {
		return
	}
	if p.full() && mayWait() {
		p.waitAtBound()
		return
	}
	if reclaimable, _ := account.Process.Reclaimable(); reclaimable < p.yieldAt.Load() {
		return // there is room
	}
	now, last := gcwatch.Clock(time.Now()), p.yielded.Load()
	if now-last >= int64(yieldEach) && p.yielded.CompareAndSwap(last, now) {
		p.stats.yields.Add(1)
		begin := time.Now()
		runtime.Gosched()
		p.stats.yielded.Add(int64(time.Since(begin)))
	}
}

// yieldEach is the least time from one yield of any goroutine to the next. It is short enough for a
// collection to begin in a program that never blocks. A yield costs some microseconds: with one for each
// allocation, a program with many small resources spent a quarter of its time on them. Tests change it
// before Start.
var yieldEach = 200 * time.Microsecond

// busy reports whether a collection is due, or it or its releases are under way.
func (p *pacer) busy() bool {
	s := p.state()
	return s == due || s == collecting || s == draining
}

// full reports whether a goroutine that takes memory has to wait.
func (p *pacer) full() bool {
	reclaimable, _ := account.Process.Reclaimable()
	return p.busy() && reclaimable+p.admitted.Load()*account.Process.MeanCharge() >= p.bound.Load()
}

// waitAtBound waits, first come first served, until
//
//   - releases have made room,
//   - no collection is due or under way,
//   - a collection that began after the call has found nothing to release, or
//   - patience.bound has passed.
func (p *pacer) waitAtBound() {
	start := time.Now()
	account.Process.AddWaiters(1)
	defer account.Process.AddWaiters(-1)
	t := p.atBound.enter()
	defer p.atBound.leave(t)
	timer := time.NewTimer(tick)
	defer timer.Stop()
	most := p.patience().bound
	if gcwatch.Clock(start) < p.loose.Load() {
		most = p.patience().loose
	}
	before, _ := p.counts()
	for time.Since(start) < most && p.busy() {
		if _, ended := p.counts(); ended > before && p.barren.Load() {
			break
		}
		if t.isFirst() {
			if !p.full() {
				break
			}
			p.nudge()
			timer.Reset(tick)
			select {
			case <-account.Process.Wakeups():
			case <-timer.C:
			}
			continue
		}
		timer.Reset(most)
		select {
		case <-t.first:
		case <-timer.C:
		}
	}
	p.admitted.Add(1)
	p.stats.waits.Add(1)
	p.stats.waited.Add(int64(time.Since(start)))
}

// nudge starts the collection that is due, if MaxGCShare allows it by now.
func (p *pacer) nudge() {
	if p.state() != due || gcwatch.Clock(time.Now()) < p.from() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.launch(false)
}
