package pace

import (
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"weak"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
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
	if p.state() != due || !regardless && gcwatch.Clock(time.Now()) < p.from() || gcwatch.InBubble() || !p.to(begun) {
		return
	}
	account.Process.SetReclaimableAt(0) // from now on each allocation calls Pressure, and gives way
	p.tasks.Add(1)
	go p.collect()
}

// from returns the Clock before which no collection begins.
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
	p.mu.Lock()
	certain := p.demanded || p.doubtful
	p.mu.Unlock()
	swept, sweeping := mark(&r, certain)
	p.to(completed)
	stuck, done := drain(&r, swept, p.patience())
	after := r.read()
	took := max(after.cpu-before.cpu, 0) + sweeping

	defer p.tend()
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.collector.baseline
	freed := p.takeBaseline(after, reclaimable, ever, begin)
	_, everNow := account.Process.Reclaimable()
	p.collector.note(took, everNow-ever, freed, reclaimable-was.reclaimable)
	p.stats.cycles.Add(1)
	share := float64(p.collector.cost()) / float64(runtime.GOMAXPROCS(0))
	p.notBefore.Store(gcwatch.Clock(begin.Add(time.Duration(min(share/p.maxShare, float64(mostDelay))))))
	p.notBeforeScarce.Store(gcwatch.Clock(begin.Add(time.Duration(share / max(p.maxShare, hardShare)))))
	p.stats.released.Add(freed)
	p.stats.time.Add(int64(took))
	p.noteStuck(stuck, time.Since(begin))
	demanded := p.demanded
	p.to(p.endOf(done, freed, held, begin))
	p.admitted.Store(0)
	p.gauge.fade()
	account.Process.FadeLargestCharge()
	p.adjust()
	p.trim(demanded)
	p.launch(false)
	account.Process.Wake()
}

// mark has the runtime do the mark phase of a collection that begins now. swept says that the sweep is over as well,
// and took is about the processor time of the sweep, which is in no metric.
//
// runtime.GC calls Gosched for each span that it sweeps, and then until the last sweeper has ended. In a server of
// images that took four fifths of the processor time of the process. Where goroutines compute, one of them gets a turn
// between any two spans. So mark allocates an object that makes the heap reach its goal, and the runtime sweeps in the
// background. Nobody writes to that object, so it has no pages.
//
// If a collection was under way already, no other one begins, and that one keeps what was allocated meanwhile: the
// probe is still there. Then mark tries again.
//
// certain says that the sweep has to be over when mark returns: a request has demanded the collection, and is refused if
// that finds nothing; or the last collection has found nothing, as far as is known, and goroutines at the bound wait
// until one finds nothing for certain. With the race detector only the runtime's report of the end of the sweep begins the
// walk, so the sweep has to be over as well.
func mark(r *reader, certain bool) (swept bool, took time.Duration) {
	for _, patience := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
		// The heap is at least as large as its live objects. Under a memory limit its goal changes all the time.
		before := r.read()
		more := before.goal - before.live
		if certain || race.Build || runtime.GOMAXPROCS(0) == 1 || more <= 0 || more > mostFill {
			break
		}
		probe := weak.Make(new([16]byte)) // smaller ones share their slots
		grow(max(more, large))
		now := before
		for pause, begin := lookFirst, time.Now(); now.cycles == before.cycles && time.Since(begin) < patience; pause = min(2*pause, lookEach) {
			time.Sleep(pause)
			now = r.read()
		}
		if now.cycles > before.cycles && probe.Value() == nil {
			return false, 0
		}
	}
	return true, sweepOf(runtime.GC)
}

// sweepOf has f collect, and returns how long the sweep took.
func sweepOf(f func()) time.Duration {
	begin := time.Now()
	f()
	var last debug.GCStats
	debug.ReadGCStats(&last)
	return sinceMark(last.LastGC, begin)
}

// sinceMark returns the time since the end of the mark phase, of a collection that has begun after begin. mark is of the
// wall clock, which somebody may have set meanwhile.
func sinceMark(mark, begin time.Time) time.Duration {
	return max(0, min(time.Since(mark), time.Since(begin)))
}

// sweep has the runtime sweep what is not swept, where goroutines that compute leave no time to do so in the
// background: it sweeps in proportion to what is allocated. A collection begins after 70 percent of the growth at the
// earliest, so sweep allocates less.
func sweep(now reading) {
	grow(max(0, min(now.goal-now.live, mostFill)) / 20 * 13) // the program may have switched the collector off
	grow(large)
}

// grow allocates an object of so many bytes in the Go heap, and drops it.
func grow(bytes int64) {
	var b strings.Builder // it does not clear what it allocates
	b.Grow(int(bytes))
}

const (
	// mostFill is the size of the largest object that makes the heap reach its goal.
	mostFill = 16 << 20

	// large is the size of an object for which the runtime sweeps, and looks whether a collection is due. It sweeps
	// the fewer spans the larger an object is.
	large = 64 << 10
)

// endOf notes how a collection has ended, and returns the event. At begin it began, and accounts held held
// bytes. freed is the number of reclaimable bytes that its releases gave back; other goroutines
// may have taken as many since, so Held need not be less than held. done says that all releases have run. The caller
// holds p.mu.
func (p *pacer) endOf(done bool, freed, held int64, begin time.Time) event {
	demanded := p.demanded && done
	p.demanded = false
	p.barren.Store(freed == 0 && done)
	p.doubtful = freed == 0 && !done
	if p.barren.Load() {
		p.notBeforeScarce.Store(p.notBefore.Load()) // there is no hurry
	}
	switch {
	case freed > 0 || account.Process.Held() < held:
		p.futileCount = 0
	case demanded:
		if p.futileCount++; p.futileCount >= mostFutile {
			_, p.collector.futileEver = account.Process.Reclaimable()
			p.collector.futileUntil = time.Now().Add(futilePause * time.Since(begin))
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
		p.loose.Store(gcwatch.Clock(time.Now().Add(loosePause * took)))
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
// Ledger.Reclaimable returned at begin, when the collection began. It returns the number of bytes freed
// since. The caller holds p.mu.
func (p *pacer) takeBaseline(r reading, reclaimable, ever int64, begin time.Time) (freed int64) {
	account.Process.Refresh()
	now, everNow := account.Process.Reclaimable()
	since := everNow - ever
	p.collector.baseline = baseline{heap: r.live, reclaimable: max(min(now-since, now), 0)}
	p.collector.based = begin
	return max(reclaimable+since-now, 0)
}

// drain waits until the releases that follow a collection are done:
//
//   - The walk of package gcwatch that began after the sweep is over, so all owners that
//     died are found. If swept is set, the sweep is over. drain begins the walk if
//     the runtime does not report the end of the sweep soon.
//   - The runtime has run the cleanups that were queued.
//   - The workers of package own have no batch left. Releases that wait for the program to
//     call Drain do not count.
//
// It gives up after most.drain, and after most.stuck without progress. In the second case stuck
// is the number of releases that are queued for workers. done says that it did not give up, and that the sweep was
// over before the walk.
func drain(r *reader, swept bool, most patience) (stuck int64, done bool) {
	first := r.read()
	n := uint64(first.cycles)
	walked, helped, sure := false, false, true
	start := time.Now()
	still, last := stillness{since: start}, int64(-1)
	for pause := lookFirst; ; pause = min(2*pause, lookEach) {
		if !walked && gcwatch.Walked(n) {
			walked, still = true, stillness{since: time.Now()}
			first = r.read() // with all cleanups that the sweep has queued
		}
		now := r.read()
		queued := account.Process.Queued.Load() // with all that the walk has queued
		if walked && now.executed >= first.queued && queued == 0 {
			return 0, sure
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
		switch spent := time.Since(start); {
		case walked:
		case swept && spent > soon:
			gcwatch.Walk(n)
		case spent > late:
			sure = false
			gcwatch.Walk(n)
		case !swept && !helped && spent > soon:
			helped = true
			sweep(now)
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
// half of the looks that it makes in that time on an idle machine. With fewer looks the machine is busy, and the
// releases need not be stuck: beside 16 busy processes a server was taken for stuck, and killed, because waits at the
// bound are short then.
func (s *stillness) longer(d time.Duration, now time.Time) bool {
	s.looks++
	return now.Sub(s.since) > d && s.looks > int(d/(2*lookEach))
}

// lookFirst and lookEach are the shortest and the longest time from one look of a drain to the next, if the machine
// is not busy.
const lookFirst, lookEach = 20 * time.Microsecond, time.Millisecond

// A drain waits for the runtime's report that a sweep is over. After soon it begins the walk if it knows that the sweep
// is over, and else helps to sweep. After late it begins the walk in any case: probably the sweep is over. If it is not,
// the report of its end begins another walk.
const soon, late = 200 * time.Microsecond, 5 * time.Millisecond

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
		defer p.tend()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.collector.baseline.reclaimable = reclaimable
		p.adjust()
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
	defer p.tend()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.takeBaseline(r.read(), reclaimable, ever, begin)
	p.admitted.Store(0)
	p.noteStuck(stuck, time.Since(begin))
	p.to(drained)
	p.adjust()
	p.launch(false)
	account.Process.Wake()
}
