package pace

import (
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/aftergc"
)

// A pacer exists from Start to Stop. There is one at a time.
//
// A goroutine that takes memory and reaches a bound calls pressure. pressure
// decides whether a collection is due, and starts a goroutine for it; it never
// collects itself. There is no goroutine and no timer while no collection is due
// or under way. After a collection that the program or the runtime has started,
// the function that watch has registered calls collected.
type pacer struct {
	maxShare float64 // Options.MaxGCShare, or the default

	limit   atomic.Int64 // 0 if there is none
	goLimit atomic.Int64 // the runtime's memory limit as set here, 0 if it was not set

	pending atomic.Bool  // a collection started here is under way, or its releases are
	trigger atomic.Int64 // number of auto bytes at which a collection is due
	begun   atomic.Int64 // collections started here
	ended   atomic.Int64
	done    atomic.Pointer[chan struct{}] // closed when the pending collection is done

	vain      atomic.Int64 // collections at a limit, in a row, that freed nothing
	vainUntil atomic.Int64 // see inVain; in Unix nanoseconds
	vainEver  atomic.Int64 // auto bytes that had ever been taken then

	watching atomic.Bool // a sentinel is registered
	stopped  atomic.Bool // written under mu and claims

	claims sync.Mutex // held during claim; taken after mu

	mu sync.Mutex
	// The rest is under mu.
	mark    mark
	backoff int64
	notYet  time.Time        // no collection starts before this time, because of maxShare
	costs   [4]time.Duration // of the last collections
	reader  reader
	before  int64 // the runtime's memory limit before Start
	changed bool  // the program has changed that limit since

	stats struct {
		cycles, released, time, yields, waits, waited, refusals atomic.Int64
	}
}

const (
	longestWait  = 10 * time.Millisecond  // of an allocation, for a collection
	longestDrain = 200 * time.Millisecond // of a collection, for its releases
	stuckDrain   = 20 * time.Millisecond  // of a collection, for a release that makes no progress

	// After mostVain collections in a row that freed nothing at a limit, there is
	// no further one for vainPause times as long as the last one took.
	mostVain  = 8
	vainPause = 10
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

// watchLimit has collected called after each collection, if there is a limit: the
// runtime's memory limit must also follow releases.
func (p *pacer) watchLimit() {
	if p.limit.Load() != 0 {
		p.watch()
	}
}

// end stops the pacer, and restores the runtime's memory limit.
func (p *pacer) end() {
	p.mu.Lock()
	p.claims.Lock()
	p.stopped.Store(true) // from now on look sets no bounds, and claim fails
	account.SetPace(nil)
	p.claims.Unlock()
	p.restore()
	p.mu.Unlock()
	for p.pending.Load() {
		p.wait()
	}
}

// pressure is called by a goroutine that takes memory beyond a bound.
func (p *pacer) pressure() {
	aftergc.Poll() // the runtime may not have told of the last collection
	// If p.mu is locked, another goroutine is checking already. While a collection
	// is pending, only the limit needs a check.
	if (!p.pending.Load() || p.limit.Load() != 0) && p.mu.TryLock() {
		due := p.look(p.reader.read())
		rest := time.Until(p.notYet)
		p.mu.Unlock()
		p.watch()
		if rest > 0 && p.farBehind() {
			// A collection is due, but must wait because of maxShare. The
			// allocation waits as well.
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

// farBehind reports whether there are twice as many auto bytes as a collection is
// due for, and the goroutine may wait.
func (p *pacer) farBehind() bool {
	auto, _ := account.Auto()
	return auto/2 >= p.trigger.Load() && !aftergc.InBubble() && !account.Releasing()
}

// sleep calls f, which waits, and counts the wait and its time.
func (p *pacer) sleep(f func()) {
	start := time.Now()
	f()
	p.stats.waits.Add(1)
	p.stats.waited.Add(int64(time.Since(start)))
}

// look reports whether a collection is due, and sets the bounds at which pressure
// is called again. The caller holds p.mu.
func (p *pacer) look(r reading) (due bool) {
	if p.stopped.Load() {
		return false
	}
	auto, _ := account.Auto()
	p.mark.heap = r.live // of the last collection, whatever started it
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
	if due && !aftergc.InBubble() && p.claim() {
		go p.collect()
	}
}

// claim reports whether the caller must do a collection. It is false while another
// goroutine does one.
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

// wait waits for the pending collection, for at most longestWait.
func (p *pacer) wait() {
	done := p.done.Load()
	if done == nil {
		runtime.Gosched() // the goroutine that claimed is about to set it
		return
	}
	timer := time.NewTimer(longestWait)
	defer timer.Stop()
	select {
	case <-*done:
	case <-timer.C:
	}
}

// collect does the collection that the caller has claimed, waits for its
// releases, and takes the mark.
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
	// The least cost of the last collections is taken as the real cost. A higher
	// one means that other processes took the processor away meanwhile.
	share := float64(slices.Min(p.costs[:])) / float64(runtime.GOMAXPROCS(0))
	p.notYet = begin.Add(time.Duration(share / p.maxShare))
	p.stats.released.Add(freed)
	p.stats.time.Add(int64(took))
	p.trim(after)
	p.ended.Add(1)
	p.pending.Store(false)
	close(done)
	due := p.look(after)
	p.mu.Unlock()
	p.start(due)
}

// trim returns idle memory to the system, as far as it exceeds the bytes that may
// come until the next collection. Without that, idle memory adds to these: when
// sizes differ much, new blocks do not fit into the space of old ones. The caller
// holds p.mu.
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

// settle takes the mark after a collection. At the beginning of the collection
// there were auto bytes, and ever had been taken. It returns the number of bytes
// freed since. The caller holds p.mu.
func (p *pacer) settle(r reading, auto, ever int64) (freed int64) {
	now, everNow := account.Auto()
	since := everNow - ever
	p.mark = mark{heap: r.live, auto: max(min(now-since, now), 0)}
	return max(auto+since-now, 0)
}

// drain waits until the releases that follow a collection are done: the runtime
// has run the cleanups that were queued, and the workers of package own have no
// batch left. It gives up after longestDrain, or stuckDrain without progress.
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

// watch has collected called after the next collection, whatever starts it.
func (p *pacer) watch() {
	if p.stopped.Load() || p.watching.Swap(true) {
		return
	}
	aftergc.Next(p.collected)
}

// collected runs after a collection. It takes the
// mark, unless collect does so, and checks whether another collection is due.
func (p *pacer) collected() {
	p.watching.Store(false)
	if p.stopped.Load() {
		return
	}
	auto, ever := account.Auto()
	if auto < floor && p.limit.Load() == 0 {
		// There is nothing to pace, so no sentinel is registered. pressure does
		// that again when much memory is taken.
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

// reclaim is called when a request of n bytes has met a limit; try counts the
// calls for one request, from 0. It waits for a collection that begins after the
// call, so that the request can be tried again, or returns the error.
func (p *pacer) reclaim(n int64, try int) error {
	const collections = 2
	if try == 0 && p.stopped.Load() {
		return nil // Stop has removed the limit
	}
	if try >= collections || p.stopped.Load() || p.inVain() || aftergc.InBubble() || account.Releasing() {
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

// inVain reports whether a collection at a limit would free nothing: the last
// ones freed nothing, and no auto bytes were added since, for a bounded time. A
// program that meets a heap's limit all the time, and makes room by itself, must
// not collect each time.
func (p *pacer) inVain() bool {
	_, ever := account.Auto()
	return ever == p.vainEver.Load() && time.Now().UnixNano() < p.vainUntil.Load()
}
