package pace

import (
	"time"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/resident"
)

// A sample is what is read of malloc.
type sample struct {
	resident   int64 // resident bytes of the process, without pages of files
	all        int64 // with these
	used, free int64 // bytes in blocks of malloc that are in use; bytes that malloc has beside them
	ok         bool  // used and free are known
	took       time.Duration
	at         moment // before malloc was read, or after that, whichever has less declared; its used is not set
	most       int64  // the declared bytes at the other of the two
	moved      bool   // they changed by a quarter while malloc was read
}

// takeSample waits for the locks of malloc, and may take milliseconds, or a time slice of a busy machine. The
// caller does not hold p.mu.
//
// Meanwhile other goroutines allocate and declare, and releases run: in 5 ms they may give back half of what
// is declared. So the sample has the declared bytes before and after that.
func takeSample(r *reader) (s sample) {
	begin := time.Now()
	before := momentOf(r.read())
	if m := account.Process.Malloc(); m != nil {
		looked := time.Now()
		if s.used, s.free, s.ok = m.Read(); s.ok {
			resident.Process.Note(s.used, s.free, time.Since(looked))
		}
	}
	s.resident, s.all = anonymousBytes(), residentBytes()
	s.took = time.Since(begin)
	s.at = momentOf(r.read())
	s.most = before.declared
	s.moved = abs(s.at.declared-before.declared) > before.declared/4
	if before.declared < s.at.declared {
		s.at, s.most = before, s.at.declared
	}
	return s
}

// sampleFirst takes a sample for firstSample.
func (p *pacer) sampleFirst() sample {
	p.mallocMu.Lock()
	defer p.mallocMu.Unlock()
	return takeSample(&p.mallocReader)
}

// firstSample notes the sample if there is a limit for the first time. The caller holds p.mu.
func (p *pacer) firstSample(s sample, r reading) {
	if p.metered.Load() && p.gauge.scale == 0 {
		p.gauge.set(s, r, true)
	}
}

// set notes a sample, with a reading of about the same time. first says that there was no limit before: then
// set also notes what the process has beside all that is counted. The caller holds p.mu.
func (g *gauge) set(s sample, r reading, first bool) {
	g.read(r)
	now := s.at
	now.by, now.used = g.by, g.used
	if first {
		g.scale, g.known = 1, false
		account.Process.SetScale(max(1, min(unknownScale, unknownMost/max(g.limit, 1))))
		g.excess, g.last = g.limit/16, now
		g.undeclared = max(0, s.used-now.declared) // 0 if it is not known
		counted := now.goBytes + now.heaps + s.used + s.free
		g.base, g.otherResident = max(0, min(g.used, s.all)-counted), max(0, s.resident-counted)
	}
	rest := s.resident - now.goBytes - now.heaps - g.otherResident
	if s.ok {
		g.free = max(0, min(s.free, rest-s.used))
	}
	real, least := rest, 1.0
	if s.ok {
		real, least = s.used-g.undeclared, leastScale
	}
	if enough := g.enough(); g.limit > 0 && max(now.declared, real) > enough && now.declared > enough/128 {
		g.setScale(real, now.declared, s.most, least)
	}
	if g.inUse = s.used; !s.ok {
		g.inUse = g.real(now.declared)
	}
	g.at = now
	g.early = time.Now().Add(earlyShare * s.took)
	g.sampled.next = time.Now().Add(sampleShare * s.took)
	if s.moved {
		g.sampled.next = g.early
	}
}

// setScale sets the scale, after real bytes were used while few to many were declared. It is between real/many
// and real/few, and stays if it is there. In the beginning it is real/few: a scale that is too small lets a
// program without sizes make twice as many images as there is room for. Later it falls by an eighth at most:
// releases are counted after C has freed, so in the middle of a large one malloc has a third in use of what is
// declared.
func (g *gauge) setScale(real, few, many int64, least float64) {
	of := func(declared int64) float64 {
		return max(least, min(float64(max(real, 0))/float64(max(declared, 1)), mostScale))
	}
	if g.known {
		g.scale = max(of(many), min(g.scale, max(of(few), g.scale-g.scale/8)))
	} else {
		g.scale, g.known = of(few), true
	}
	account.Process.SetScale(int64(g.scale))
}

// stale reports whether so much has changed since the last sample that the next one may say something else.
// The caller has called read.
func (g *gauge) stale() bool {
	return abs(g.grown(g.last.since(g.at))) > g.limit/64 || abs(g.real(account.Process.HeldDeclared()-g.at.declared)) > g.limit/64
}

// A mallocTask is what is to be done with malloc.
type mallocTask int32

const (
	noTask   mallocTask = iota
	readTask            // read how much is free in malloc
	trimTask            // have malloc give free memory back, and read it then
)

// mallocTask returns what is to be done with malloc: trimTask if the limit is near, or requests wait for room,
// and else readTask if there is little room. A look takes microseconds and is nearly
// always allowed: if it came first, malloc would hardly ever give memory back. The caller holds p.mu, and has
// called gauge.read.
func (p *pacer) mallocTask() mallocTask {
	g := &p.gauge
	near, contended := g.limit-g.used < max(g.limit/tight, g.slack/3*2), account.Process.Contended()
	narrow := near || contended
	learn := !g.known && max(g.last.since(g.at).used, account.Process.HeldDeclared()) > g.enough()
	switch {
	case g.limit == 0 || !narrow && !learn && g.room > g.limit/4:
	case (near || contended && g.trimmed.rested(contendedEach)) && g.unused > max(g.limit/64, 1<<20) && g.trimmed.allowed() && account.Process.Malloc() != nil:
		return trimTask
	case g.sampled.allowed(), narrow && !time.Now().Before(g.early) && g.stale():
		return readTask
	}
	return noTask
}

// unlock does the task with malloc that setBounds has found (p.todo), and unlocks p.mu. A task takes the
// locks of malloc and up to tens of milliseconds, so p.mu is not held meanwhile, but p.mallocMu is: one
// goroutine at a time does a task, and goroutines that take memory at the bound wait for it (awaitMalloc).
func (p *pacer) unlock() {
	for range 2 { // after readTask setBounds may find trimTask
		todo := p.todo
		if todo == noTask || p.state() == stopped || !p.mallocMu.TryLock() {
			break
		}
		p.todo = noTask
		unused := p.gauge.unused
		p.atMalloc.Store(true)
		p.mu.Unlock()
		returned, took := int64(0), time.Duration(0)
		if todo == trimTask {
			returned, took = p.trimMalloc()
		}
		s := takeSample(&p.mallocReader)
		p.mu.Lock()
		if todo == trimTask {
			p.gauge.trimmed.set(returned > unused/8, took)
		}
		if p.metered.Load() && p.state() != stopped {
			p.gauge.set(s, p.reader.read(), false)
		}
		p.setBounds(p.reader.read())
		p.launch(false)
		p.atMalloc.Store(false)
		p.mallocMu.Unlock()
	}
	p.mu.Unlock()
}

// trimMalloc has malloc give memory back. It returns by how many bytes the resident memory is smaller after that.
func (p *pacer) trimMalloc() (returned int64, took time.Duration) {
	m := account.Process.Malloc()
	begin, before := time.Now(), anonymousBytes()
	m.Trim()
	took = time.Since(begin)
	returned = max(before-anonymousBytes(), 0)
	p.stats.trims.Add(1)
	p.stats.trimmed.Add(returned)
	if p.arenas.Load() == 0 && !account.Process.ArenasBounded() {
		p.arenas.Store(int64(max(m.Arenas(), 1)))
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

func (b *backoff) allowed() bool { return !time.Now().Before(b.next) }

// rested reports whether the step has been allowed for d.
func (b *backoff) rested(d time.Duration) bool { return time.Since(b.next) > d }

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
