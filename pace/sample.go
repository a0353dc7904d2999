package pace

import (
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/watch/procfs"
	"github.com/cheapgo/cheap/internal/watch/resident"
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
	begin, first := time.Now(), viewOf(r.read())
	before := first.moment()
	if m := account.Process.Malloc(); m != nil {
		looked := time.Now()
		if s.used, s.free, s.ok = m.Read(); s.ok {
			resident.Process.Note(s.used, s.free, time.Since(looked))
		}
	}
	all, files := procfs.Self()
	s.resident, s.all = all-files, all
	s.took = time.Since(begin)
	last := viewOf(r.read())
	s.at = last.moment()
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
func (p *pacer) firstSample(s sample) {
	if p.metered.Load() && p.gauge.scale == 0 {
		v := p.look()
		p.gauge.first(s, v)
		p.note(s, v)
	}
}

// note notes a sample, with a look of about the same time. The caller holds p.mu.
func (p *pacer) note(s sample, v view) {
	p.gauge.set(s, v)
	p.returner.note(s, v.at)
}

// first notes what the process has beside all that is counted, where there was no limit before.
func (g *gauge) first(s sample, v view) {
	g.read(v)
	now := s.at
	now.by, now.used = g.by, g.used
	g.scale, g.known = 1, false
	g.excess, g.last = g.limit/16, now
	g.undeclared = max(0, s.used-now.declared) // 0 if it is not known
	counted := now.goBytes + now.heaps + s.used + s.free
	g.base, g.otherResident = max(0, min(g.used, s.all)-counted), max(0, s.resident-counted)
}

// set notes a sample.
func (g *gauge) set(s sample, v view) {
	g.read(v)
	now := s.at
	now.by, now.used = g.by, g.used
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
}

// stale reports whether so much has changed since the last sample that the next one may say something else.
// The caller has called read.
func (g *gauge) stale() bool {
	return abs(g.grown(g.last.since(g.at))) > g.limit/64 || abs(g.real(g.last.declared-g.at.declared)) > g.limit/64
}
