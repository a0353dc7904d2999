package own

import (
	"bytes"
	"runtime"
	"strconv"
	"time"
)

// A job is one closed entry, or what is open in a dead batch.
type job struct {
	ledger *ledger
	entry  uint32
	count  int64 // entries that it counts for
	since  time.Time
}

const allEntries = 1<<32 - 1

// A queue is first in, first out. The zero value is empty.
type queue struct {
	jobs []job
	head int
}

func (q *queue) push(j job) {
	if q.head > len(q.jobs)/2 {
		n := copy(q.jobs, q.jobs[q.head:])
		clear(q.jobs[n:])
		q.jobs, q.head = q.jobs[:n], 0
	}
	q.jobs = append(q.jobs, j)
}

func (q *queue) first() *job {
	if q.head == len(q.jobs) {
		return nil
	}
	return &q.jobs[q.head]
}

func (q *queue) pop() {
	q.jobs[q.head] = job{}
	q.head++
}

// oldest returns since when the first has been queued.
func (q *queue) oldest() time.Time {
	if j := q.first(); j != nil {
		return j.since
	}
	return time.Time{}
}

// enqueue leaves a job to Drain.
func (p *Pool) enqueue(j job) {
	j.count = 1
	if l := j.ledger; j.entry == allEntries {
		j.count = 0
		for i := range l.n {
			if l.state(i)&stateOpen != 0 {
				j.count++
			}
		}
		if j.count == 0 {
			return
		}
	}
	j.since = time.Now()
	toDrain.Add(j.count)
	p.drained.Add(j.count)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs.push(j)
}

// Drain calls the release function for up to max queued resources, for all if
// max is 0 or less, on the goroutine that calls it, and returns how many they
// were. It is the one place where a pool with Options.Drain releases. A Close in
// a release function that Drain has called releases at once.
//
// A parent that waited for one of them is released with it, and is not counted.
//
// Drain works also after Destroy. A panic of the release function reaches the
// caller; what that call had been given counts as released, the rest stays
// queued. Calls from several goroutines wait for each other; a call from within
// a release function returns 0, and so does one in a pool without Options.Drain.
func (p *Pool) Drain(max int) int {
	if p.drained.Load() == 0 || p.draining() {
		return 0
	}
	p.drainMu.Lock()
	defer p.drainMu.Unlock()
	p.drainer.Store(goroutine())
	defer p.drainer.Store(0)
	if max <= 0 {
		max = int(p.drained.Load())
	}
	n := 0
	for n < max {
		p.mu.Lock()
		j := p.jobs.first()
		if j == nil {
			p.mu.Unlock()
			break
		}
		next := *j
		if next.entry != allEntries {
			p.jobs.pop()
		}
		p.mu.Unlock()
		if next.entry != allEntries {
			n += p.drainOne(next)
		} else {
			n += p.drainBatch(next.ledger, max-n)
		}
	}
	return n
}

// drainOne releases one closed entry.
func (p *Pool) drainOne(j job) int {
	defer p.drainedNow(1)
	j.ledger.dispose(j.entry)
	return 1
}

// drainBatch releases up to max entries of a dead batch, the first in the queue,
// and takes it off when none is left.
func (p *Pool) drainBatch(l *ledger, max int) int {
	c := l.claim(l.cursor, max, nil)
	l.cursor = c.next
	if c.next == l.n {
		p.mu.Lock()
		p.jobs.pop()
		p.mu.Unlock()
	}
	defer p.drainedNow(c.found)
	if c.k > 0 {
		parent, i := l.releaseAll(c.words, c.k, c.bytes)
		if parent != nil {
			parent.dispose(i)
		}
	}
	l.tell(c.found)
	return c.k
}

func (p *Pool) drainedNow(k int) {
	p.drained.Add(int64(-k))
	toDrain.Add(int64(-k))
}

// draining reports whether this goroutine is in Drain, which means in a release
// function.
func (p *Pool) draining() bool {
	id := p.drainer.Load()
	return id != 0 && id == goroutine()
}

// goroutine returns the number of the goroutine. The runtime tells it in the
// first line of a stack trace only, "goroutine 18 [running]:", which takes
// some microseconds; it is asked in Drain, and in a Close while a Drain is running.
func goroutine() uint64 {
	var buf [64]byte
	line := buf[:runtime.Stack(buf[:], false)]
	line = bytes.TrimPrefix(line, []byte("goroutine "))
	id, _ := strconv.ParseUint(string(line[:bytes.IndexByte(line, ' ')]), 10, 64)
	return id
}
