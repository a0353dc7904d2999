package ledger

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/leaks"
)

// A sample says who made an owner, and when.
type sample struct {
	origin *Origin
	index  uint32
	born   uint32 // in seconds, see clock
}

var started = time.Now()

// clock returns the seconds since the program was started.
func clock() uint32 { return uint32(time.Since(started) / time.Second) }

// never is the index of no entry.
const never = math.MaxUint32

// Watch decides of which owners the origins are recorded. It is called once for each
// ledger, before the first owner.
func (l *Ledger) Watch() {
	k, level := l.Kind, l.Kind.Level()
	l.SampleAt, l.nextAt = never, never
	l.sited, l.uses = level != leaks.Off, level >= leaks.Advanced
	switch {
	case k.Trace || level == leaks.All:
		l.rate = 1
		l.note()
		l.samples = make([]sample, l.size)
		return
	case level != leaks.Off && l.size == 1:
		l.rate = leaks.RateAlone
		if rand.Uint32N(leaks.RateAlone) == 0 {
			l.nextAt = 0
		}
		l.SampleAt = l.nextAt
	case level != leaks.Off:
		l.rate = leaks.Rate
		l.nextAt = gap()
		l.SampleAt = l.nextAt
	}
	if k.OnCollect != nil {
		l.note()
		l.oneAt = rand.Uint32N(l.size)
		l.SampleAt = min(l.nextAt, l.oneAt)
	}
}

// gap returns how many owners are not sampled before the next one that is. Each owner is
// sampled with the same probability, whatever happened to others. So gaps have a geometric
// distribution, which does not depend on what was before: the end of a batch need not be
// remembered. The whole part of an exponential distribution is one.
func gap() uint32 {
	return uint32(min(rand.ExpFloat64()*meanGap, never-1))
}

var meanGap = -1 / math.Log1p(-1./leaks.Rate)

// Every reports whether the origin of each entry is recorded.
func (l *Ledger) Every() bool { return l.rate == 1 }

// Record records where the owner of an entry is being made, if the entry is one of those of
// which that is recorded. It is called with the shard's lock, or by the only goroutine that
// knows the ledger, before the owner is handed out.
func (l *Ledger) Record(i uint32) {
	if l.rate == 1 || i == l.SampleAt {
		l.record(i)
	}
}

func (l *Ledger) record(i uint32) {
	k := l.Kind
	if !l.sited {
		k = nil
	}
	s := sample{origin: here(k), index: i, born: clock()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note()
	switch {
	case l.rate == 1:
		l.samples[i] = s
	case i == l.nextAt:
		if l.samples == nil {
			l.samples = l.few[:0]
		}
		l.samples = append(l.samples, s)
		l.nextAt = i + 1 + min(gap(), never-1-i)
	}
	one := uint32(never)
	if l.Kind.OnCollect != nil && l.rate != 1 {
		if i == l.oneAt {
			l.sampled = s.origin
		} else if i < l.oneAt {
			one = l.oneAt
		}
	}
	l.SampleAt = min(l.nextAt, one)
	if mine := l.sampleOf(i); mine != nil {
		if l.sited {
			k.countMade(s.origin, int64(l.rate))
		}
		if l.uses {
			atomic.OrUint64(&l.at(i).State, Noted)
		}
	}
}

// sampleOf returns the sample of an entry, or nil. The ledger has notes, and the caller
// holds l.mu.
func (l *Ledger) sampleOf(i uint32) *sample {
	if l.rate == 1 {
		if s := &l.samples[i]; s.origin != nil {
			return s
		}
		return nil
	}
	j := l.sampleFrom(i)
	if j == len(l.samples) || l.samples[j].index != i {
		return nil
	}
	return &l.samples[j]
}

// sampleFrom returns the index of the first sample of an entry from i on.
func (l *Ledger) sampleFrom(i uint32) int {
	if l.rate == 1 {
		return int(i)
	}
	j, _ := slices.BinarySearchFunc(l.samples, i, func(s sample, i uint32) int { return int(s.index) - int(i) })
	return j
}

// originOf returns the origin of an entry if it was recorded, or nil. The ledger has
// notes, and the caller holds l.mu.
func (l *Ledger) originOf(i uint32) *Origin {
	if s := l.sampleOf(i); s != nil {
		return s.origin
	}
	if i == l.oneAt {
		return l.sampled
	}
	return nil
}

// foundOpen records that the collector has found the open entries from first on, below next.
// The ledger has notes, and the caller holds l.mu.
func (l *Ledger) foundOpen(first, next uint32) {
	apart := func(i uint32) bool { return l.families != nil && l.families[i].Alone() } // TellApart tells of it
	if first <= l.oneAt && l.oneAt < next && l.sampled != nil && l.State(l.oneAt)&Open != 0 && !apart(l.oneAt) {
		l.forgotten = l.sampled
	}
	for j := l.sampleFrom(first); j < len(l.samples) && l.samples[j].index < next; j++ {
		s := l.samples[j]
		if s.origin == nil || l.State(s.index)&Open == 0 {
			continue
		}
		if !apart(s.index) {
			l.forgotten = s.origin
		}
		if l.sited {
			l.Kind.countCollected(s.origin, int64(l.rate))
		}
	}
}

// mostUses is the number of uses of an owner whose stacks are kept.
const mostUses = 4

// used records the stack of a use of an entry that has Noted set.
func (l *Ledger) used(i uint32) {
	o := here(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lastUses == nil {
		l.lastUses = map[uint32]*[mostUses]*Origin{}
	}
	list := l.lastUses[i]
	if list == nil {
		list = new([mostUses]*Origin)
		l.lastUses[i] = list
	}
	at := slices.Index(list[:], o) // a stack is there once
	if at < 0 {
		at = mostUses - 1
	}
	copy(list[1:at+1], list[:at])
	list[0] = o
}
