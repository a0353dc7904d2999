package pace

import (
	"context"
	"runtime"
	"time"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/gcwatch"
)

// A patience says how long goroutines wait for others.
type patience struct {
	// bound is the longest wait at the bound.
	bound time.Duration

	// loose is the longest wait at the bound after a drain without progress: a goroutine
	// that waits may hold the lock that the releases need.
	loose time.Duration

	// limit is how long a request at a limit waits after its collection, and how long
	// MaxGCShare may delay that.
	limit time.Duration

	// drain is how long a collection waits for its releases, and stuck for one that
	// makes no progress.
	drain, stuck time.Duration
}

// longest is everyone's patience. Tests change it before Start.
var longest = patience{
	bound: 100 * time.Millisecond,
	loose: time.Millisecond,
	limit: 100 * time.Millisecond,
	drain: 200 * time.Millisecond,
	stuck: 20 * time.Millisecond,
}

// longestMetered is everyone's patience where the kernel says what is used, and would kill. On a
// busy machine no release ends for a while, though none is stuck.
var longestMetered = patience{
	bound: time.Second,
	loose: time.Millisecond,
	limit: time.Second,
	drain: time.Second,
	stuck: 200 * time.Millisecond,
}

// patience returns everyone's patience.
func (p *pacer) patience() patience {
	if p.metered.Load() {
		return longestMetered
	}
	return longest
}

// tick is how often a goroutine that waits looks by itself, in case that no goroutine
// has told it.
const tick = time.Millisecond

// Pressure is called by a goroutine that has charged memory, after a bound was reached.
func (p *pacer) Pressure() {
	if n := p.admitted.Load(); n > 0 {
		p.admitted.CompareAndSwap(n, n-1)
	}
	p.Check()
	p.giveWay()
}

// Check finds out whether a collection is due, and starts it.
func (p *pacer) Check() {
	gcwatch.Poll() // the runtime may not have told of the last collection
	if p.mustLook() && p.lock() {
		if p.mustLook() {
			p.look(p.reader.read())
			p.launch(false)
		}
		p.mu.Unlock()
		p.watch()
	}
}

// lock locks p.mu to look. If it is locked, another goroutine is looking already, so lock
// returns false. At the bound it waits: that goroutine may have lost its processor, and
// until it goes on it is not known whether a collection is due.
func (p *pacer) lock() bool {
	if p.mu.TryLock() {
		return true
	}
	reclaimable, _ := account.Process.Reclaimable()
	if reclaimable < p.bound.Load() || !mayWait() {
		return false
	}
	p.mu.Lock()
	return true
}

// mayWait reports whether the goroutine may wait for others. In a release function it
// would wait for itself. In a bubble of testing/synctest time stands still.
func mayWait() bool { return !gcwatch.InBubble() && !gcwatch.InSection() }

// mustLook reports whether the bounds may be wrong.
func (p *pacer) mustLook() bool {
	switch p.state() {
	case idle, refused:
		return true
	case due:
		return time.Now().UnixNano() >= p.from() || account.Process.Held() >= p.heldAt.Load()
	default: // only the limit needs a check
		return account.Process.Held() >= p.heldAt.Load()
	}
}

// giveWay lets the collection run that is due or under way. The goroutine yields. It
// waits for releases if there are as many bytes as may come until they have run.
func (p *pacer) giveWay() {
	if !p.busy() {
		return
	}
	if p.full() && mayWait() {
		p.waitAtBound()
		return
	}
	p.stats.yields.Add(1)
	runtime.Gosched()
}

// busy reports whether a collection is due, or it or its releases are under way.
func (p *pacer) busy() bool {
	s := p.state()
	return s == due || s == collecting || s == draining
}

// full reports whether those who take have to wait.
func (p *pacer) full() bool {
	reclaimable, _ := account.Process.Reclaimable()
	return p.busy() && reclaimable+p.admitted.Load()*account.Process.MeanCharge() >= p.bound.Load()
}

// waitAtBound waits until releases have made room, first come first served, or no
// collection is under way, but not longer than longest.bound, and not when a collection that has begun
// meanwhile finds nothing to release.
func (p *pacer) waitAtBound() {
	start := time.Now()
	account.Process.AddWaiters(1)
	defer account.Process.AddWaiters(-1)
	t := p.atBound.enter()
	defer p.atBound.leave(t)
	timer := time.NewTimer(tick)
	defer timer.Stop()
	most := p.patience().bound
	if start.UnixNano() < p.loose.Load() {
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
	if p.state() != due || time.Now().UnixNano() < p.from() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.launch(false)
}

// look finds out whether a collection is due, and sets the bounds at which pressure
// is called again. The caller holds p.mu.
func (p *pacer) look(r reading) {
	if p.state() == stopped {
		return
	}
	account.Process.Refresh()
	p.startGiver()
	reclaimable, ever := account.Process.Reclaimable()
	p.baseline.heap = r.live // of the last collection, whatever started it
	p.baseline.reclaimable = min(p.baseline.reclaimable, reclaimable)
	heldAt, ceiling := p.keep(r)
	bound := p.baseline.bound(r.heap, r.gogc, p.backoff)
	if ceiling != noBound {
		// What may be held under the limit, less what is not reclaimable.
		least := p.baseline.least(r.gogc, p.backoff) / 2
		if p.metered.Load() {
			least = p.gauge.declared(p.most() / 64)
		}
		if p.scarce.Load() {
			least = 0
		}
		bound = min(bound, max(reclaimable+ceiling-account.Process.Held(), p.baseline.reclaimable+least))
	}
	at := p.baseline.due(bound, p.lead())
	switch {
	case reclaimable >= at && reclaimable > 0:
		p.to(reached)
	case ever != p.futileEver || time.Now().After(p.vainUntil):
		p.to(resumed)
	}
	p.bound.Store(bound)
	p.heldAt.Store(heldAt)
	reclaimableAt := next(reclaimable, at)
	if p.busy() {
		reclaimableAt = 0 // each allocation yields
	}
	// If half of what lives is closed by hand, the bound is too high.
	below := int64(0)
	if p.baseline.reclaimable > 2*floor {
		below = p.baseline.reclaimable / 2
	}
	account.Process.SetBounds(account.Bounds{HeldAt: heldAt, ReclaimableAt: reclaimableAt, ReclaimableBelow: below, Ceiling: ceiling})
}

// lead returns how many bytes come during a collection, as far as is known. Where the kernel
// would kill, nothing is known before the first one, which so begins early. The caller holds p.mu.
func (p *pacer) lead() int64 {
	most := int64(0)
	if p.metered.Load() && p.stats.cycles.Load() == 0 {
		most = noBound
	}
	for _, n := range p.leads {
		most = max(most, n)
	}
	return most
}

// inVain reports whether a collection at a limit would free nothing: the last
// ones freed nothing, and no reclaimable bytes were added since, for a bounded time. A
// program that meets a heap's limit all the time, and makes room by itself, must
// not collect each time.
func (p *pacer) inVain() bool {
	if p.state() != refused {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ever := account.Process.Reclaimable(); ever == p.futileEver && time.Now().Before(p.vainUntil) {
		return true
	}
	p.to(resumed)
	return false
}

// Reclaim is called when a request of n bytes has met a limit; try counts the
// calls for one request, from 0. It waits for a collection that begins after the
// call, or for room, so that the request can be tried again, or returns the error.
func (p *pacer) Reclaim(n int64, try int, own bool) error {
	const collections, tries = 2, 8
	if try == 0 && p.state() == stopped {
		return nil // Stop has removed the limit
	}
	fits := func() bool { return n <= account.Process.Headroom() }
	switch {
	case !own && p.beyond(n):
	case try == 0, own && try < collections:
		return p.Wait(context.Background(), n, false, nil)
	case !own && try < tries: // also if another has taken the room, and there is some by now
		return p.Wait(context.Background(), n, true, fits)
	}
	return p.refusal(n, 0)
}

// beyond reports whether n bytes are more than the whole limit. No collection makes room for
// them, so nobody waits for one.
func (p *pacer) beyond(n int64) bool {
	limit := p.most()
	return limit != 0 && n > limit
}

// Wait is called when a request of n bytes has met a limit. It waits until take reports
// true. With inLine set, the limit is that of all, and the first in line is served first. One
// whose time is up takes what there is, whatever its place. Wait returns an error if take
// did not by the time that a collection that has begun after the call, and its releases,
// have ended, and longest.limit has passed. If take is nil, Wait returns when the releases
// have ended.
func (p *pacer) Wait(ctx context.Context, n int64, inLine bool, take func() bool) error {
	if p.state() == stopped || inLine && p.beyond(n) || p.inVain() || !mayWait() {
		return p.last(n, 0, take)
	}
	asked := time.Now()
	account.Process.AddWaiters(1)
	defer account.Process.AddWaiters(-1)
	var t *waiter
	if inLine && n <= account.Process.Headroom()+account.Process.Held() { // else it cannot be served, and is in the way of no other
		t = p.atLimit.enter()
		defer p.atLimit.leave(t)
	}
	before, _ := p.counts()
	want := before + 1
	most := want + 1 // a second one is for what was in a batch that was open when the first began
	var (
		over   time.Time // when the wait ends
		still  time.Time // since when no release has ended
		queued int64     // releases, those that wait for a Drain included
	)
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for {
		if take != nil && t.isFirst() && take() {
			p.served()
			return nil
		}
		begun, ended := p.counts()
		switch {
		case ended >= want && take == nil:
			return nil
		case p.state() == stopped, p.inVain(): // in vain for others, maybe
			return p.last(n, 0, take)
		case over.IsZero() && ended >= want:
			over = time.Now().Add(p.patience().limit)
			still, queued = time.Now(), account.Process.Queued.Load()+account.Process.ToDrain.Load()
		}
		if !over.IsZero() {
			if is := account.Process.Queued.Load() + account.Process.ToDrain.Load(); is != queued || is == 0 {
				still, queued = time.Now(), is
			}
			stuck := queued > 0 && time.Since(still) > p.patience().stuck
			late := time.Now().After(over)
			switch {
			case stuck && (p.stuck.Load() > 0 || account.Process.ToDrain.Load() > 0): // the program may not call Drain
				return p.refusal(n, account.Process.Queued.Load())
			case stuck && late: // a machine that is busy has kept the drain from seeing it
				return p.last(n, account.Process.Queued.Load(), take)
			case late:
				return p.last(n, 0, take)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if begun < most {
			p.request(begun < want && time.Since(asked) > longest.limit)
		}
		next := account.Process.Wakeups()
		if !t.isFirst() {
			next = t.first
		}
		timer.Reset(tick)
		select {
		case <-next:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// last is the end of a wait: take is called once more. stuck is the number of releases that
// are queued while none ends.
func (p *pacer) last(n, stuck int64, take func() bool) error {
	switch {
	case take == nil && p.state() == stopped:
		return nil // Stop has removed the limit
	case take != nil && take():
		p.served()
		return nil
	}
	return p.refusal(n, stuck)
}

// served notes that a request at a limit was served.
func (p *pacer) served() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.vainCount = 0
}

// request has a collection begin for a request at a limit. MaxGCShare may delay it,
// unless regardless is set.
func (p *pacer) request(regardless bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to(limitHit)
	if p.state() == due {
		p.wanted = true
		p.launch(regardless)
	}
}
