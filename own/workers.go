package own

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/account"
)

func init() { account.SetReleases(queued.Load, inRelease) }

// inRelease reports whether the goroutine is in a release function, or works for
// own. It looks through the stack, which takes some microseconds: it is asked
// before somebody waits.
func inRelease() bool {
	const path = "github.com/cheapgo/cheap/own."
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		if n == 0 {
			return false
		}
		for frames := runtime.CallersFrames(pcs[:n]); ; {
			f, more := frames.Next()
			switch f.Function {
			case path + "(*Pool).destroy", path + "(*place).run":
				return true
			}
			if !more {
				break
			}
		}
	}
}

// Workers release what the collector found. They are started by a cleanup, so
// outside of all bubbles of testing/synctest, and end when nothing is queued.
//
// Each takes the oldest batch of a pool, pools taking turns. One that is stuck
// for longer than stuckAfter gives its place to another, up to mostWorkers; and a
// pool may occupy at most half of these while others, whose turn will come, may
// need the rest: a release function that never returns must not stop them all.
const (
	fewWorkers  = 2
	mostWorkers = 8
	stuckAfter  = 100 * time.Millisecond
)

var work struct {
	mu      sync.Mutex
	pools   []*Pool // with batches queued, in the order of their turns
	batches int     // queued
	running int
	places  [mostWorkers]place
	timer   *time.Timer // looks for stuck workers; armed only while batches wait
	armed   bool
}

// A place is where a worker runs.
type place struct {
	taken bool
	pool  *Pool // whose release runs, nil between two
	since time.Time
}

// queued counts batches with the workers, and toDrain releases that wait for a
// Drain or run in one.
var queued, toDrain atomic.Int64

// submit queues a dead batch. It must be called outside of bubbles: in a
// cleanup, in a worker.
func submit(l *ledger) {
	queued.Add(1)
	work.mu.Lock()
	defer work.mu.Unlock()
	p := l.pool
	if p.last != nil {
		p.last.queued = l
	} else {
		p.batches = l
	}
	p.last = l
	work.batches++
	if !p.waiting {
		p.waiting = true
		work.pools = append(work.pools, p)
	}
	hire()
}

// hire starts a worker if one may be started and finds something to do. The
// caller holds work.mu.
func hire() {
	if work.batches == 0 {
		return
	}
	now := time.Time{}
	allowed := max(fewWorkers, min(runtime.GOMAXPROCS(0)/4, mostWorkers))
	if work.running >= allowed {
		now = time.Now()
		for i := range work.places {
			if w := &work.places[i]; w.pool != nil && now.Sub(w.since) >= stuckAfter {
				allowed++
			}
		}
	}
	if work.running < min(allowed, mostWorkers) && turn() >= 0 {
		for i := range work.places {
			if w := &work.places[i]; !w.taken {
				w.taken = true
				work.running++
				go w.run()
				return
			}
		}
	}
	arm()
}

// arm has somebody look again after a while, because batches wait. The caller
// holds work.mu.
func arm() {
	if work.armed {
		return
	}
	work.armed = true
	if work.timer == nil {
		work.timer = time.AfterFunc(stuckAfter, look)
	} else {
		work.timer.Reset(stuckAfter)
	}
}

// look is the timer.
func look() {
	work.mu.Lock()
	defer work.mu.Unlock()
	work.armed = false
	hire()
}

// turn returns which of work.pools is next: the first that no worker is with,
// else the first that has not its full share. It is -1 if there is none. The
// caller holds work.mu.
func turn() int {
	best := -1
	for i, p := range work.pools {
		if p.running == 0 {
			return i
		}
		if best < 0 && p.running < mostWorkers/2 {
			best = i
		}
	}
	return best
}

// run is a worker.
func (w *place) run() {
	var buf []uintptr
	work.mu.Lock()
	for {
		i := turn()
		if i < 0 {
			break
		}
		p := work.pools[i]
		work.pools = slices.Delete(work.pools, i, i+1)
		l := p.batches
		p.batches, l.queued = l.queued, nil
		if p.batches != nil {
			work.pools = append(work.pools, p)
		} else {
			p.last, p.waiting = nil, false
		}
		if work.batches--; work.batches > 0 {
			arm() // this release may get stuck, and nobody else come
		} else if work.armed {
			work.armed = !work.timer.Stop()
		}
		w.enter(p)
		work.mu.Unlock()

		buf = w.releaseDead(l, buf)

		work.mu.Lock()
		w.exit()
	}
	if work.batches > 0 {
		arm()
	}
	w.taken = false
	work.running--
	work.mu.Unlock()
}

// enter says that the worker is with a pool. The caller holds work.mu.
func (w *place) enter(p *Pool) {
	p.running++
	w.pool, w.since = p, time.Now()
}

// exit says that a batch is done. The caller holds work.mu.
func (w *place) exit() {
	w.pool.running--
	w.pool = nil
	queued.Add(-1)
}

// releaseDead releases a batch, and the parents that waited for it. If a release
// function ends the goroutine, another takes its place; if it panics, the
// program ends, with the pool's name.
func (w *place) releaseDead(l *ledger, buf []uintptr) []uintptr {
	returned := false
	defer func() {
		if returned {
			return
		}
		work.mu.Lock()
		defer work.mu.Unlock()
		if v := recover(); v != nil {
			panic(&releasePanic{pool: w.pool.name, value: v})
		}
		w.exit()
		go w.run()
	}()
	buf, parent, i := l.releaseDead(buf)
	for parent != nil {
		if parent.pool.carver != nil || parent.leaveToDrain(i) {
			break
		}
		work.mu.Lock()
		w.pool.running--
		w.enter(parent.pool)
		work.mu.Unlock()
		parent, i = parent.releaseOne(i)
	}
	if parent != nil && parent.pool.carver != nil {
		parent.giveBack(i)
	}
	returned = true
	return buf
}

// A releasePanic is what a worker ends the program with.
type releasePanic struct {
	pool  string
	value any
}

func (e *releasePanic) Error() string {
	return fmt.Sprintf("cheap: %s: the release function panicked: %v", e.pool, e.value)
}

// ReleaseStats is what own's workers are doing at one moment.
type ReleaseStats struct {
	Workers int // goroutines that release
	Batches int // batches that wait for one

	// The release that has been running for the longest time, and its pool. They
	// are zero if none runs.
	Oldest     time.Duration
	OldestPool string
}

// Releases tells about own's workers: a release function that does not return
// shows up as Oldest.
func Releases() ReleaseStats {
	work.mu.Lock()
	defer work.mu.Unlock()
	st := ReleaseStats{Workers: work.running, Batches: work.batches}
	for i := range work.places {
		if w := &work.places[i]; w.pool != nil {
			if d := time.Since(w.since); d >= st.Oldest {
				st.Oldest, st.OldestPool = d, w.pool.name
			}
		}
	}
	return st
}

// Flush waits until no release is queued and none is running on own's
// goroutines, or until ctx is done, and returns ctx's error then. What waits for
// [Pool.Drain] counts: somebody else has to call that meanwhile.
//
// It does not collect: a resource whose owners are unreachable is queued after
// the collection that finds that out, and that may be the third one, as owners
// of an open batch are not looked for. At the end of main, and at os.Exit, what is
// queued is dropped; a program that wants it released calls Flush before.
func Flush(ctx context.Context) error {
	for wait := pause(0); queued.Load()+toDrain.Load() != 0; wait = pause(wait) {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// pause waits a little, longer from one call to the next. It sleeps, and waits
// for no channel or condition: these would belong to the bubble of
// testing/synctest in which they were made, and own's goroutines are in none.
func pause(last time.Duration) time.Duration {
	const shortest = 20 * time.Microsecond
	longest := time.Millisecond
	if last == 0 {
		runtime.Gosched()
		return shortest
	}
	if inBubble() {
		// A sleep takes no time here, so that a deadline would pass before a
		// worker, who is in no bubble, got to run.
		for range 1000 {
			runtime.Gosched()
		}
		longest = 50 * time.Millisecond
	}
	time.Sleep(last)
	return min(2*last, longest)
}

// giveWay is called once in a batch, with no lock held, by whoever makes owners.
// While releases wait it lets them run: releasing is slower than forgetting, and
// with all Ps busy what is dead would pile up for some time slices of 10 ms. On
// a single P the runtime's own part comes too late as well: the sweeper, which
// finds the dead tokens, and the cleanups.
func (p *Pool) giveWay() {
	if p.single || queued.Load() != 0 {
		runtime.Gosched()
	}
}

// inBubble reports whether the goroutine's clock is that of a bubble of
// testing/synctest, which begins in the year 2000.
func inBubble() bool {
	const realClock = 2020
	return time.Now().UTC().Year() < realClock
}
