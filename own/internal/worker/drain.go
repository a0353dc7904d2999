package worker

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// A Queue is the releaser of pools. All releases wait in it. The zero Queue is empty.
type Queue struct {
	Thread bool            // a goroutine of the queue takes the place of Drain; of one pool
	Notify chan<- struct{} // or nil; it gets a value when a release is queued and none was before, and when a Drain leaves some

	queued atomic.Int64 // releases that wait

	mu      sync.Mutex
	jobs    queue[waiting] // under mu
	serving bool           // under mu; the goroutine of the thread runs
	late    bool           // under mu; enqueue has said that nobody drains
	drained time.Duration  // under mu; when the last Drain ended, see clock

	drainMu sync.Mutex     // held by Drain
	cursor  uint32         // under drainMu; where the batch that is the first job continues
	pool    string         // under drainMu; Spec.Name of what the drainer releases
	in      string         // under drainMu; the function that the drainer calls
	drainer atomic.Uintptr // gcwatch.GoroutineID of the goroutine in Drain, 0 if there is none
}

// Closed queues the entry. Within Drain, hence in a release function, it releases
// the entry.
func (q *Queue) Closed(b *batch.Batch, i uint32) batch.Outcome {
	if q.draining() {
		return b.Release(i)
	}
	q.enqueue(b, i, 1)
	return batch.Outcome{}
}

// Dead queues a job.
func (q *Queue) Dead(j batch.Job) {
	n := int64(1)
	if j.Entry&batch.Lost != 0 {
		n = j.OpenEntries()
	}
	q.enqueue(j.Batch, j.Entry, n)
}

// A waiting is a job of a Queue: as in a [batch.Job], and when it was queued, see clock.
type waiting struct {
	batch *batch.Batch
	since time.Duration
	entry uint32
}

// clock returns the time since the start of the program.
func clock() time.Duration { return time.Since(started) }

var started = time.Now()

// lateAfter is how long a release waits, and no Drain runs, before enqueue says, once, that nobody drains.
const lateAfter = time.Minute

// enqueue queues a job with n releases.
func (q *Queue) enqueue(b *batch.Batch, entry uint32, n int64) {
	if n == 0 {
		return
	}
	q.add(b.Spec, n)
	now := clock()
	q.mu.Lock()
	first := q.jobs.first() == nil
	q.jobs.push(waiting{batch: b, entry: entry, since: now})
	begin := q.Thread && !q.serving
	if begin {
		q.serving = true
	}
	late := !q.Thread && !q.late && now-max(q.jobs.first().since, q.drained) > lateAfter && q.drainer.Load() == 0
	q.late = q.late || late
	q.mu.Unlock()
	if late {
		fmt.Fprintf(os.Stderr, "cheap: %s: nobody has called Queue.Drain for a minute, and %d releases wait\n", b.Spec.Name, q.queued.Load())
	}
	if begin {
		go q.serve()
	}
	if first {
		q.tell()
	}
}

// tell sends to the channel of the program.
func (q *Queue) tell() {
	select {
	case q.Notify <- struct{}{}:
	default: // no room, or nil
	}
}

// add adds n, which may be negative, to the number of releases of a spec that wait.
func (q *Queue) add(k *batch.Spec, n int64) {
	count := &account.Process.ToDrain
	if q.Thread {
		count = &account.Process.Queued
	}
	k.Counts.Queued.Add(n)
	q.queued.Add(n)
	if count.Add(n) == 0 {
		becameIdle.Ring()
	}
	batch.Changed.Ring()
}

// Oldest returns how long the first job has waited. It returns 0 if there is none.
func (q *Queue) Oldest() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j := q.jobs.first(); j != nil {
		since := j.since
		return clock() - since
	}
	return 0
}

// Drain releases up to most entries on the calling goroutine, or all that are
// queued now if most is 0 or less. It returns the number of entries. A queue with
// a thread drains itself, and Drain returns 0.
func (q *Queue) Drain(most int) int {
	if q.Thread {
		return 0
	}
	return q.drain(most)
}

// drain is Drain, also for a queue with a thread.
func (q *Queue) drain(most int) (n int) {
	if q.queued.Load() == 0 || q.draining() {
		return 0
	}
	q.drainMu.Lock()
	defer q.drainMu.Unlock()
	q.drainer.Store(gcwatch.GoroutineID())
	defer func() { // also after a panic
		q.mu.Lock()
		q.drained = clock()
		q.drainer.Store(0) // under mu, so that enqueue sees one or the other
		more := q.jobs.first() != nil
		q.mu.Unlock()
		if more {
			q.tell()
		}
	}()
	if most <= 0 {
		most = int(q.queued.Load())
	}
	for n < most {
		q.mu.Lock()
		first := q.jobs.first()
		if first == nil {
			q.mu.Unlock()
			break
		}
		j := *first
		if j.entry&batch.Lost == 0 {
			q.jobs.pop()
		}
		q.mu.Unlock()
		q.pool, q.in = j.batch.Spec.Name, "the release function"
		if j.entry&batch.Lost == 0 {
			n += q.drainOne(j)
		} else {
			n += q.drainBatch(j, most-n)
		}
	}
	return n
}

// drainOne releases one closed entry.
func (q *Queue) drainOne(j waiting) int {
	defer q.add(j.batch.Spec, -1)
	if b, i := j.batch, j.entry; b.FoundApart(i) {
		defer q.tellCollect(func() { b.TellApart(i) })
	}
	o := j.batch.Release(j.entry)
	q.settle(o, j.batch.Spec, 1)
	return 1
}

// drainBatch releases up to most entries of a dead batch, or of a sentinel, which is the
// first job of the queue. It removes the job when no entry is left.
func (q *Queue) drainBatch(j waiting, most int) int {
	b := j.batch
	c := batch.Claim{Job: batch.JobOf(b, j.entry), Next: q.cursor}
	picked := c.Step(most)
	q.mu.Lock()
	for _, i := range c.Apart { // they are counted already
		q.jobs.push(waiting{batch: b, entry: i, since: j.since})
	}
	if q.cursor = c.Next; q.cursor == b.Len() {
		q.cursor = 0
		q.jobs.pop()
	}
	q.mu.Unlock()
	defer q.add(b.Spec, -int64(c.Found))
	defer q.tellCollect(func() { b.Tell(c.Found) })
	o := picked.Release()
	q.settle(o, b.Spec, picked.K)
	return picked.K
}

// tellCollect calls f, which calls OnCollect. It is deferred, because a release function may
// have ended the goroutine, or panicked.
func (q *Queue) tellCollect(f func()) {
	in := q.in
	q.in = "Options.OnCollect"
	f()
	q.in = in
}

// settle is Settle of a release of count entries of a spec.
func (q *Queue) settle(o batch.Outcome, k *batch.Spec, count int) {
	if o.Err != nil {
		q.in = "Options.OnReleaseError"
	}
	o.Settle(k, count)
}

// draining reports whether the calling goroutine is in Drain, hence in a release
// function.
func (q *Queue) draining() bool {
	id := q.drainer.Load()
	return id != 0 && id == gcwatch.GoroutineID()
}

// serve is the goroutine of a queue with a thread. It ends when the queue is
// empty. It does not unlock its thread, so the runtime ends the thread with it,
// and no other goroutine meets what the library has left in the thread.
func (q *Queue) serve() {
	runtime.LockOSThread()
	done := false
	defer func() {
		if done {
			return
		}
		if v := recover(); v != nil {
			panic(&releasePanic{pool: q.pool, in: q.in, value: v})
		}
		go q.serve() // a release function has ended the goroutine
	}()
	for !done {
		q.drain(0)
		q.mu.Lock()
		if q.jobs.first() == nil {
			q.serving, done = false, true
		}
		q.mu.Unlock()
	}
}
