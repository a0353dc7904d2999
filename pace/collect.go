package pace

import (
	"runtime"
	"slices"
	"time"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/gcwatch"
	"github.com/cheapgo/cheap/internal/span"
)

const (
	// After mostFutile collections in a row that freed nothing at a limit, there is
	// no further one for futilePause times as long as the last one took.
	mostFutile  = 8
	futilePause = 10

	// mostDelay is the longest time between two collections that MaxGCShare asks for. A share
	// that is next to nothing would ask for more than a time.Duration can be.
	mostDelay = 365 * 24 * time.Hour

	// After a drain without progress patience.loose bounds the waits at the bound, for loosePause
	// times as long as the collection took.
	loosePause = 10
)

// launch starts the collection that is due, in a goroutine of its own. It does nothing if
// MaxGCShare delays the collection, unless regardless is set. The caller holds p.mu.
func (p *pacer) launch(regardless bool) {
	if p.state() != due || !regardless && time.Now().UnixNano() < p.from() || gcwatch.InBubble() || !p.to(begun) {
		return
	}
	account.Process.SetReclaimableAt(0) // from now on each allocation calls Pressure, and gives way
	p.tasks.Add(1)
	go p.collect()
}

// from returns the time before which no collection begins, in Unix nanoseconds.
func (p *pacer) from() int64 {
	if p.scarce.Load() {
		return min(p.notBefore.Load(), p.notBeforeScarce.Load())
	}
	return p.notBefore.Load()
}

// collect does the collection that has begun, waits for its releases, and takes the
// baseline.
func (p *pacer) collect() {
	defer p.tasks.Done()
	var r reader
	begin, before := time.Now(), r.read()
	account.Process.Refresh()
	reclaimable, ever := account.Process.Reclaimable()
	held := account.Process.Held()
	runtime.GC()
	p.to(completed)
	stuck, done := drain(&r, true, p.patience())
	after := r.read()
	took := max(after.cpu-before.cpu, 0)

	p.mu.Lock()
	defer p.unlock()
	was := p.baseline
	freed := p.takeBaseline(after, reclaimable, ever)
	p.backoff = nextBackoff(p.backoff, freed, reclaimable-was.reclaimable)
	n := p.stats.cycles.Add(1)
	if n == 1 {
		p.costs = [4]time.Duration{took, took, took, took}
	}
	p.costs[n%int64(len(p.costs))] = took
	_, everNow := account.Process.Reclaimable()
	p.leads[n%int64(len(p.leads))] = everNow - ever
	// The least of the last costs is taken as the real cost. A higher one means that other
	// processes took the processor meanwhile.
	share := float64(slices.Min(p.costs[:])) / float64(runtime.GOMAXPROCS(0))
	p.notBefore.Store(begin.Add(time.Duration(min(share/p.maxShare, float64(mostDelay)))).UnixNano())
	p.notBeforeScarce.Store(begin.Add(time.Duration(share / max(p.maxShare, hardShare))).UnixNano())
	p.stats.released.Add(freed)
	p.barren.Store(freed == 0 && done)
	if p.barren.Load() {
		p.notBeforeScarce.Store(p.notBefore.Load()) // there is no hurry
	}
	p.stats.time.Add(int64(took))
	p.noteStuck(stuck, time.Since(begin))
	demanded := p.demanded
	p.demanded = false
	p.to(p.endOf(demanded && done, freed, held, begin))
	p.admitted.Store(0)
	p.gauge.fade()
	account.Process.FadeLargestCharge()
	p.setBounds(after)
	p.trim(demanded)
	p.launch(false)
	account.Process.Wake()
}

// endOf returns the event that ends a collection. At begin it began, and accounts held held
// bytes. freed is the number of reclaimable bytes that its releases gave back; other goroutines
// may have taken as many since, so Held need not be less than held. demanded says that a request
// at a limit has demanded the collection, and that all releases have run. The caller holds p.mu.
func (p *pacer) endOf(demanded bool, freed, held int64, begin time.Time) event {
	switch {
	case freed > 0 || account.Process.Held() < held:
		p.futileCount = 0
	case demanded:
		if p.futileCount++; p.futileCount >= mostFutile {
			_, p.futileEver = account.Process.Reclaimable()
			p.futileUntil = time.Now().Add(futilePause * time.Since(begin))
			return futile
		}
	}
	return drained
}

// noteStuck notes how a drain has ended. took is the time of the collection and the drain. stuck
// is the number of releases that were queued and made no progress, or 0.
func (p *pacer) noteStuck(stuck int64, took time.Duration) {
	p.stuck.Store(stuck)
	if stuck > 0 {
		p.loose.Store(time.Now().Add(loosePause * took).UnixNano())
	}
}

// trim returns idle memory of heaps to the system. It keeps
//
//	bound - reclaimable + spareIdle
//
// bytes: those that may come until the next collection, and a few. More idle memory would add to
// the bound, when sizes differ and new blocks do not fit into the space of old ones. Less would
// have to be taken from the system again, which costs more than the collection: 0.1 ms for each
// megabyte. At a limit idle memory counts, so all of it goes. The caller holds p.mu.
func (p *pacer) trim(atLimit bool) {
	if atLimit || p.scarce.Load() {
		span.TrimTo(0)
		return
	}
	bound := p.bound.Load()
	if bound == noBound {
		return
	}
	reclaimable, _ := account.Process.Reclaimable()
	if keep := max(bound-reclaimable, 0) + spareIdle; int64(span.Idle()) > keep {
		span.TrimTo(uintptr(keep))
	}
}

// spareIdle is enough for the collections of one program to differ by a few blocks.
const spareIdle = floor / 2

// takeBaseline takes the baseline after a collection. reclaimable and ever are what
// Ledger.Reclaimable returned when the collection began. It returns the number of bytes freed
// since. The caller holds p.mu.
func (p *pacer) takeBaseline(r reading, reclaimable, ever int64) (freed int64) {
	account.Process.Refresh()
	now, everNow := account.Process.Reclaimable()
	since := everNow - ever
	p.baseline = baseline{heap: r.live, reclaimable: max(min(now-since, now), 0)}
	return max(reclaimable+since-now, 0)
}

// drain waits until the releases that follow a collection are done:
//
//   - The walk of package gcwatch that began after the sweep is over, so all owners that
//     died are found. If swept is set, the sweep is over, and drain begins the walk if
//     the runtime does not report the end of the sweep soon.
//   - The runtime has run the cleanups that were queued.
//   - The workers of package own have no batch left. Releases that wait for the program to
//     call Drain do not count.
//
// It gives up after most.drain, and after most.stuck without progress. In the second case stuck
// is the number of releases that are queued for workers. done says that it did not give up.
func drain(r *reader, swept bool, most patience) (stuck int64, done bool) {
	first := r.read()
	n := uint64(first.cycles)
	walked := false
	start := time.Now()
	still, last := stillness{since: start}, int64(-1)
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, lookEach) {
		if !walked && gcwatch.Walked(n) {
			walked, still = true, stillness{since: time.Now()}
			first = r.read() // with all cleanups that the sweep has queued
		}
		now := r.read()
		queued := account.Process.Queued.Load() // with all that the walk has queued
		if walked && now.executed >= first.queued && queued == 0 {
			return 0, true
		}
		left := first.queued - now.executed + queued
		if left != last || gcwatch.Walking() {
			still, last = stillness{since: time.Now()}, left
		}
		if still.longer(most.stuck, time.Now()) {
			return queued, false
		}
		if time.Since(start) > most.drain {
			return 0, false
		}
		if swept && !walked && time.Since(start) > soon {
			gcwatch.Walk(n)
		}
		runtime.Gosched()
		time.Sleep(pause)
	}
}

// A stillness is the time in which no release has ended.
type stillness struct {
	since time.Time
	looks int // how often a drain has looked since
}

// longer is called at each look. It reports whether the stillness has been longer than d, and a drain has had
// half of the looks that it makes in that time on a machine with nothing else to do. With fewer it is the
// machine that has no time, and not the releases that are stuck: beside 16 busy processes a server was taken
// for one that is stuck, and killed, because waits at the bound are short then.
func (s *stillness) longer(d time.Duration, now time.Time) bool {
	s.looks++
	return now.Sub(s.since) > d && s.looks > int(d/(2*lookEach))
}

// lookEach is the longest time from one look of a drain to the next, if the machine is not busy.
const lookEach = time.Millisecond

// soon is how long a drain waits for the runtime's report that a sweep is over.
const soon = 200 * time.Microsecond

// awaitCollection has collected called after the next collection, whatever starts it.
func (p *pacer) awaitCollection() {
	if p.state() == stopped || p.awaiting.Swap(true) {
		return
	}
	gcwatch.Next(p.collected)
}

// collected runs after a collection. If this package has not started the collection, collected
// starts follow, which takes the baseline and checks whether another collection is due.
func (p *pacer) collected() {
	p.awaiting.Store(false)
	if p.state() == stopped {
		return
	}
	account.Process.Refresh()
	reclaimable, ever := account.Process.Reclaimable()
	if reclaimable < floor && p.most() == 0 {
		// There is nothing to pace, so no sentinel is registered. Check registers one
		// when much memory is taken.
		p.mu.Lock()
		defer p.unlock()
		p.baseline = baseline{heap: p.baseline.heap, reclaimable: reclaimable}
		p.setBounds(p.reader.read())
		return
	}
	p.awaitCollection()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startGuard()
	if !p.to(externalGC) {
		return // collect sets the baseline
	}
	p.tasks.Add(1)
	go p.follow(reclaimable, ever)
}

// follow is collect for a collection that has ended already. reclaimable and ever are what
// Ledger.Reclaimable returned after it.
func (p *pacer) follow(reclaimable, ever int64) {
	defer p.tasks.Done()
	var r reader
	begin := time.Now()
	stuck, _ := drain(&r, false, p.patience())
	p.mu.Lock()
	defer p.unlock()
	now := r.read()
	p.takeBaseline(now, reclaimable, ever)
	p.admitted.Store(0)
	p.noteStuck(stuck, time.Since(begin))
	p.to(drained)
	p.setBounds(now)
	p.launch(false)
	account.Process.Wake()
}
