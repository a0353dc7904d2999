package pace

import (
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/account"
)

// A pacer is what Start begins. There is one at a time.
//
// Whoever takes memory, and has reached a bound, calls pressure. It decides, and
// starts a goroutine for a collection; it never collects itself. There is no
// goroutine, and no timer, while nothing is to be done. After collections that
// others start, a sentinel's cleanup looks.
type pacer struct {
	duty float64

	limit   atomic.Int64 // 0 if there is none
	goLimit atomic.Int64 // what the runtime's was set to, 0 if it was not

	pending atomic.Bool  // a collection of ours is under way, or its releases
	trigger atomic.Int64 // at how many auto bytes one is due
	begun   atomic.Int64 // collections of ours
	ended   atomic.Int64
	done    atomic.Pointer[chan struct{}] // closed when the one that is pending is done

	vain      atomic.Int64 // collections at a limit, in a row, that gave nothing back
	vainUntil atomic.Int64 // see inVain; in Unix nanoseconds
	vainEver  atomic.Int64 // auto bytes that had ever been taken then

	watching atomic.Bool // a sentinel is out
	stopped  atomic.Bool // written under mu and claims

	claims sync.Mutex // held while somebody claims; taken after mu

	mu sync.Mutex
	// The rest is under mu.
	mark    mark
	backoff int64
	notYet  time.Time        // no collection before, for the sake of duty
	costs   [4]time.Duration // of the last collections
	reader  reader
	before  int64 // the runtime's memory limit before Start
	changed bool  // the program has set that itself since

	stats struct {
		cycles, freed, lastFreed, time, yields, waits, waited, refusals, moved atomic.Int64
	}
}

const (
	longestWait  = 10 * time.Millisecond  // of an allocation, for a collection
	longestDrain = 200 * time.Millisecond // of a collection, for its releases
	stuckDrain   = 20 * time.Millisecond  // without any progress
	mostVain     = 8                      // collections at a limit may give nothing back, in a row, then
	vainPause    = 10                     // times as long as the last one took there is none
)

// begin sets the first bounds.
func (p *pacer) begin() {
	p.before = debug.SetMemoryLimit(-1)
	if p.limit.Load() != 0 {
		runtime.GC() // to know what the Go heap needs
	}
	account.SetPace(&account.Pace{Pressure: p.pressure, Reclaim: p.reclaim})
	p.mu.Lock()
	r := p.reader.read()
	auto, _ := account.Auto()
	p.mark = mark{heap: r.live, auto: auto}
	p.look(r)
	p.mu.Unlock()
	p.watchLimit()
}

// watchLimit has the pacer look after each collection, if there is a limit: the
// runtime's follows what is given back, too.
func (p *pacer) watchLimit() {
	if p.limit.Load() != 0 {
		p.watch()
	}
}

// end puts things back.
func (p *pacer) end() {
	p.mu.Lock()
	p.claims.Lock()
	p.stopped.Store(true) // nobody sets bounds from now on, or claims
	account.SetPace(nil)
	p.claims.Unlock()
	p.restore()
	p.mu.Unlock()
	for p.pending.Load() {
		p.wait()
	}
}

// pressure is called by whoever takes memory, beyond a bound.
func (p *pacer) pressure() {
	// Where it cannot be locked somebody is looking. While a collection is pending
	// there is nothing to be seen but the limit.
	if (!p.pending.Load() || p.limit.Load() != 0) && p.mu.TryLock() {
		due := p.look(p.reader.read())
		rest := time.Until(p.notYet)
		p.mu.Unlock()
		p.watch()
		if rest > 0 && p.farBehind() {
			// One is due, and has to wait for the sake of duty. So do we.
			p.sleep(func() { time.Sleep(min(rest, longestWait)) })
			p.mu.Lock()
			due = p.look(p.reader.read())
			p.mu.Unlock()
		}
		p.start(due)
	}
	switch {
	case !p.pending.Load():
	case p.farBehind():
		p.sleep(p.wait)
	default:
		p.stats.yields.Add(1)
		runtime.Gosched()
	}
}

// farBehind reports whether there is twice as much as a collection is due for, and
// the goroutine may wait for it.
func (p *pacer) farBehind() bool {
	auto, _ := account.Auto()
	return auto/2 >= p.trigger.Load() && !inBubble() && !account.Releasing()
}

// sleep calls f, which waits, and counts that.
func (p *pacer) sleep(f func()) {
	start := time.Now()
	f()
	p.stats.waits.Add(1)
	p.stats.waited.Add(int64(time.Since(start)))
}

// look reports whether a collection is due, and sets the bounds at which to look
// again. The caller holds p.mu.
func (p *pacer) look(r reading) (due bool) {
	if p.stopped.Load() {
		return false
	}
	auto, _ := account.Auto()
	p.mark.heap = r.live // of the last collection, whoever has seen it
	trigger := p.mark.trigger(r.heap, r.gogc, p.backoff)
	p.trigger.Store(trigger)
	heldAt, ceiling := p.keep(r)
	p.claims.Lock()
	defer p.claims.Unlock()
	autoAt := next(auto, trigger)
	if p.pending.Load() {
		autoAt = 0 // each allocation yields
	}
	account.SetBounds(heldAt, autoAt, ceiling)
	return auto >= trigger && time.Now().After(p.notYet)
}

// start starts a collection that is due, in a goroutine of its own.
func (p *pacer) start(due bool) {
	if due && !inBubble() && p.claim() {
		go p.collect()
	}
}

// claim makes the caller the one who collects, unless somebody else does.
func (p *pacer) claim() bool {
	p.claims.Lock()
	defer p.claims.Unlock()
	if p.stopped.Load() || !p.pending.CompareAndSwap(false, true) {
		return false
	}
	done := make(chan struct{})
	p.done.Store(&done)
	p.begun.Add(1)
	account.SetAutoFrom(0) // from now on each allocation yields
	return true
}

// wait waits for the collection that is pending, but not for long.
func (p *pacer) wait() {
	done := p.done.Load()
	if done == nil {
		runtime.Gosched() // whoever has claimed is about to say where to wait
		return
	}
	timer := time.NewTimer(longestWait)
	defer timer.Stop()
	select {
	case <-*done:
	case <-timer.C:
	}
}

// collect does the collection that the caller has claimed, waits for what it
// leads to, and marks.
func (p *pacer) collect() {
	var r reader
	done := *p.done.Load()
	begin, before := time.Now(), r.read()
	auto, ever := account.Auto()
	runtime.GC()
	drain(&r)
	after := r.read()
	took := max(after.cpu-before.cpu, 0)

	p.mu.Lock()
	was := p.mark
	freed := p.settle(after, auto, ever)
	p.backoff = nextBackoff(p.backoff, freed, auto-was.auto)
	n := p.stats.cycles.Add(1)
	if n == 1 {
		p.costs = [4]time.Duration{took, took, took, took}
	}
	p.costs[n%int64(len(p.costs))] = took
	// What a collection takes more than the least of the last ones is somebody
	// else's: the processor was taken away from it.
	share := float64(slices.Min(p.costs[:])) / float64(runtime.GOMAXPROCS(0))
	p.notYet = begin.Add(time.Duration(share / p.duty))
	p.stats.freed.Add(freed)
	p.stats.lastFreed.Store(freed)
	p.stats.time.Add(int64(took))
	p.trim(after)
	p.ended.Add(1)
	p.pending.Store(false)
	close(done)
	due := p.look(after)
	p.mu.Unlock()
	p.start(due)
}

// trim gives idle memory back that is more than what may come until the next
// collection, and so would add to it: where sizes differ much, not everything
// fits where something was. The caller holds p.mu.
func (p *pacer) trim(r reading) {
	const least = 4 * floor
	auto, _ := account.Auto()
	if r.gogc < 0 {
		return
	}
	if keep := max(p.mark.goal(r.gogc)-r.heap-auto, least); account.Idle() > keep {
		account.Trim(keep)
	}
}

// settle takes the mark after a collection, when there were auto bytes and ever
// had been taken at its beginning. It returns how many have been given back. The
// caller holds p.mu.
func (p *pacer) settle(r reading, auto, ever int64) (freed int64) {
	now, everNow := account.Auto()
	since := everNow - ever
	p.mark = mark{heap: r.live, auto: max(min(now-since, now), 0)}
	return max(auto+since-now, 0)
}

// drain waits until the releases that follow a collection are done: the runtime
// has run the cleanups that it had queued, and own's workers have nothing left.
// It gives up when nothing moves.
func drain(r *reader) {
	first := r.read()
	start := time.Now()
	moved, last := start, int64(-1)
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		now := r.read()
		queued := account.Queued()
		if now.executed >= first.queued && queued == 0 {
			return
		}
		if left := first.queued - now.executed + queued; left != last {
			moved, last = time.Now(), left
		}
		if time.Since(start) > longestDrain || time.Since(moved) > stuckDrain {
			return
		}
		runtime.Gosched()
		time.Sleep(pause)
	}
}

// A sentinel is dropped so that its cleanup runs after the next collection.
type sentinel struct{ _ [16]byte }

// watch has the pacer look after the next collection, whoever starts it.
func (p *pacer) watch() {
	if p.stopped.Load() || p.watching.Swap(true) {
		return
	}
	runtime.AddCleanup(&sentinel{}, (*pacer).collected, p)
}

// collected runs after a collection.
func (p *pacer) collected() {
	p.watching.Store(false)
	if p.stopped.Load() {
		return
	}
	auto, ever := account.Auto()
	if auto < floor && p.limit.Load() == 0 {
		// Nothing to be paced: the next who takes much brings us back.
		p.mu.Lock()
		defer p.mu.Unlock()
		p.mark = mark{heap: p.mark.heap, auto: auto}
		p.look(p.reader.read())
		return
	}
	p.watch()
	if p.pending.Load() {
		return // collect marks
	}
	go func() {
		var r reader
		drain(&r)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.pending.Load() {
			return
		}
		now := r.read()
		p.settle(now, auto, ever)
		p.start(p.look(now))
	}()
}

// reclaim is what somebody does whose request of n bytes was refused for the
// time try says: it waits for a collection that begins from now on, or returns
// the error.
func (p *pacer) reclaim(n int64, try int) error {
	const collections = 2
	if try == 0 && p.stopped.Load() {
		return nil // and so is the limit gone
	}
	if try >= collections || p.stopped.Load() || p.inVain() || inBubble() || account.Releasing() {
		p.stats.refusals.Add(1)
		return p.refusal(n)
	}
	held, mine := account.Held(), false
	want := p.begun.Load() + 1
	begin := time.Now()
	deadline := begin.Add(2 * longestDrain)
	for p.ended.Load() < want && time.Now().Before(deadline) && !p.stopped.Load() {
		if p.claim() {
			p.collect()
			mine = true
		} else {
			p.wait()
			runtime.Gosched()
		}
	}
	account.Trim(0)
	p.mu.Lock()
	defer p.mu.Unlock()
	if account.Held() < held {
		p.vain.Store(0)
	} else if mine && p.vain.Add(1) >= mostVain {
		_, ever := account.Auto()
		p.vainEver.Store(ever)
		p.vainUntil.Store(time.Now().Add(vainPause * time.Since(begin)).UnixNano())
	}
	p.look(p.reader.read())
	return nil
}

// inVain reports whether a collection at a limit would be in vain: no owner has
// come since the last ones, not long ago, which gave nothing back. A
// program that meets a heap's limit all the time, and makes room by itself, is
// not to collect each time.
func (p *pacer) inVain() bool {
	_, ever := account.Auto()
	return ever == p.vainEver.Load() && time.Now().UnixNano() < p.vainUntil.Load()
}

// inBubble reports whether the goroutine's clock is that of a bubble of
// testing/synctest, which begins in the year 2000. What is started there belongs
// to the bubble, so nothing is.
func inBubble() bool {
	const realClock = 2020
	return time.Now().UTC().Year() < realClock
}
