package pace

import (
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/giveback"
)

// A mallocSpace is what the limit says of malloc.
type mallocSpace struct {
	limited bool // there is a limit by what the kernel counts
	near    bool // it is near
	little  bool // there is little room
	learn   bool // the scale is to be measured: so much is declared or in use for the first time, or it is unlikely
	stale   bool // the next sample may say something else than the last one
	loose   bool // so much is free in malloc that it should be given back
}

// mallocSpace is a part of find.
func (g *gauge) mallocSpace(v view) mallocSpace {
	return mallocSpace{
		limited: g.limit != 0,
		near:    g.limit-g.used < max(g.limit/tight, g.slack/3*2),
		little:  g.room <= g.limit/4,
		learn:   !g.known && max(g.last.since(g.at).used, v.declared) > g.enough() || g.known && g.scale > mostLikely,
		stale:   g.stale(),
		loose:   g.unused > max(g.limit/64, 1<<20),
	}
}

// A returner is what is known of the last tasks with malloc.
type returner struct {
	sampled, trimmed backoff
	early            time.Time // where the limit is near, from when on a sample may be taken before sampled.next
}

// note notes a sample.
func (t *returner) note(s sample, now time.Time) {
	t.early = now.Add(earlyShare * s.took)
	t.sampled.next = now.Add(sampleShare * s.took)
	if s.moved {
		t.sampled.next = t.early
	}
}

// A mallocTask is what is to be done with malloc.
type mallocTask int32

const (
	noTask   mallocTask = iota
	readTask            // read how much is free in malloc
	trimTask            // have malloc give free memory back, and read it then
)

// task returns what is to be done with malloc: trimTask if the limit is near, or requests wait for room,
// and else readTask if there is little room. A look takes microseconds and is nearly
// always allowed: if it came first, malloc would hardly ever give memory back.
func (t *returner) task(v view, s space) mallocTask {
	m := s.malloc
	narrow := m.near || v.contended
	switch {
	case !m.limited || !narrow && !m.learn && !m.little:
	case (m.near || v.contended && t.trimmed.rested(v.at, contendedEach)) && m.loose && t.trimmed.allowed(v.at) && v.malloc:
		return trimTask
	case t.sampled.allowed(v.at), narrow && !v.at.Before(t.early) && m.stale:
		return readTask
	}
	return noTask
}

// tend does the task with malloc that adjust has found. It takes the locks of malloc and up to tens of
// milliseconds, so p.mu is not held, but p.mallocMu is: one goroutine at a time does a task, and goroutines
// that take memory at the bound wait for it (awaitMalloc). The caller holds no lock.
func (p *pacer) tend() {
	giveback.Tell()
	for range 2 { // after readTask adjust may find trimTask
		if p.todo.Load() == int32(noTask) || p.state() == stopped || !p.mallocMu.TryLock() {
			return
		}
		p.atMalloc.Store(true)
		p.do(mallocTask(p.todo.Load())) // adjust sets it again
		p.atMalloc.Store(false)
		p.mallocMu.Unlock()
	}
}

// do does a task, and adjusts by what it finds. The caller holds p.mallocMu.
func (p *pacer) do(task mallocTask) {
	if task == trimTask {
		p.mu.Lock()
		unused := p.gauge.unused
		p.mu.Unlock()
		returned, took := p.trimMalloc()
		p.mu.Lock()
		p.returner.trimmed.set(returned > unused/8, took)
		p.mu.Unlock()
	}
	s := takeSample(&p.mallocReader)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.metered.Load() {
		p.note(s, p.look())
	}
	p.adjust()
	p.launch(false)
}

// trimMalloc has malloc give memory back.
func (p *pacer) trimMalloc() (returned int64, took time.Duration) {
	returned, took = giveback.Trim()
	if p.arenas.Load() == 0 && !account.Process.ArenasBounded() {
		p.arenas.Store(int64(max(account.Process.Malloc().Arenas(), 1)))
	}
	return returned, took
}

// awaitMalloc waits while a task with malloc is done, if the bound is reached.
func (p *pacer) awaitMalloc() {
	if !p.atMalloc.Load() || !mayWait() {
		return
	}
	if reclaimable, _ := account.Process.Reclaimable(); reclaimable >= p.bound.Load() {
		p.mallocMu.Lock()
		//lint:ignore SA2001 the goroutine has waited for the one that reads
		p.mallocMu.Unlock()
	}
}

const (
	// mostLikely is the largest scale of a program that declares its sizes. A larger one was measured, perhaps,
	// while much was allocated and not declared yet.
	mostLikely = 1.25

	// The limit is near when less than 1/tight of it is left, or two thirds of slack. With an eighth a server
	// with small blocks spent a sixth of its requests on page faults.
	tight = 16

	// For requests that wait where more is left, malloc gives memory back so often at most. They wait for a
	// second, and memory that is in use again at once costs page faults: with a pause of 5 ms they took a
	// third of the requests of a server.
	contendedEach = 100 * time.Millisecond
)

// A backoff says from when on a step may be tried again. Its pause doubles while the step brings nothing.
type backoff struct {
	next  time.Time
	pause time.Duration
}

func (b *backoff) allowed(now time.Time) bool { return !now.Before(b.next) }

// rested reports whether the step has been allowed for d.
func (b *backoff) rested(now time.Time, d time.Duration) bool { return now.Sub(b.next) > d }

const (
	backoffLeast = 5 * time.Millisecond
	backoffMost  = time.Second
)

// set notes whether the step has brought something, and how long it took.
func (b *backoff) set(good bool, took time.Duration) {
	if good {
		b.pause = backoffLeast
	} else {
		b.pause = min(max(2*b.pause, backoffLeast), backoffMost)
	}
	b.next = time.Now().Add(max(b.pause, took))
}
