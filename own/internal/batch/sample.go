package batch

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/watch/leaks"
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

// StartSampling chooses the owners whose origins are recorded. It is called once for each
// batch, before the first owner.
func (b *Batch) StartSampling() {
	k, level := b.Spec, b.Spec.Level()
	b.SampleAt, b.nextAt = never, never
	b.sited, b.uses = level != leaks.Off, level >= leaks.Advanced
	switch {
	case k.Trace || level == leaks.All:
		b.rate = 1
		b.note()
		b.samples = make([]sample, b.size)
		return
	case level != leaks.Off && b.size == 1:
		b.rate = leaks.RateAlone
		if rand.Uint32N(leaks.RateAlone) == 0 {
			b.nextAt = 0
		}
		b.SampleAt = b.nextAt
	case level != leaks.Off:
		b.rate = leaks.Rate
		b.nextAt = gap()
		b.SampleAt = b.nextAt
	}
	if k.OnCollect != nil {
		b.note()
		b.oneAt = rand.Uint32N(b.size)
		b.SampleAt = min(b.nextAt, b.oneAt)
	}
}

// gap returns how many owners are not sampled before the next one that is. Each owner is
// sampled with the same probability, whatever happened to others. So gaps have a geometric
// distribution. It has no memory: a gap need not be remembered beyond the end of its
// batch. The whole part of an exponential distribution is geometric.
func gap() uint32 {
	return uint32(min(rand.ExpFloat64()*meanGap, never-1))
}

var meanGap = -1 / math.Log1p(-1./leaks.Rate)

// Every reports whether the origin of each entry is recorded.
func (b *Batch) Every() bool { return b.rate == 1 }

// Record records the stack that makes the owner of an entry, if the entry is sampled. It is
// called with the shard's lock, or by the only goroutine that knows the batch, before the
// owner is handed out.
func (b *Batch) Record(i uint32) {
	if b.rate == 1 || i == b.SampleAt {
		b.record(i)
	}
}

func (b *Batch) record(i uint32) {
	k := b.Spec
	if !b.sited {
		k = nil
	}
	s := sample{origin: here(k), index: i, born: clock()}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note()
	switch {
	case b.rate == 1:
		b.samples[i] = s
	case i == b.nextAt:
		if b.samples == nil {
			b.samples = b.few[:0]
		}
		b.samples = append(b.samples, s)
		b.nextAt = i + 1 + min(gap(), never-1-i)
	}
	one := uint32(never)
	if b.Spec.OnCollect != nil && b.rate != 1 {
		if i == b.oneAt {
			b.sampled = s.origin
		} else if i < b.oneAt {
			one = b.oneAt
		}
	}
	b.SampleAt = min(b.nextAt, one)
	if mine := b.sampleOf(i); mine != nil {
		if b.sited {
			k.countMade(s.origin, int64(b.rate))
		}
		if b.uses {
			atomic.OrUint64(&b.at(i).State, Noted)
		}
	}
}

// sampleOf returns the sample of an entry, or nil. The batch has notes, and the caller
// holds b.mu.
func (b *Batch) sampleOf(i uint32) *sample {
	if b.rate == 1 {
		if s := &b.samples[i]; s.origin != nil {
			return s
		}
		return nil
	}
	j := b.sampleFrom(i)
	if j == len(b.samples) || b.samples[j].index != i {
		return nil
	}
	return &b.samples[j]
}

// sampleFrom returns the index of the first sample of an entry from i on.
func (b *Batch) sampleFrom(i uint32) int {
	if b.rate == 1 {
		return int(i)
	}
	j, _ := slices.BinarySearchFunc(b.samples, i, func(s sample, i uint32) int { return int(s.index) - int(i) })
	return j
}

// originOf returns the origin of an entry if it was recorded, or nil. The batch has
// notes, and the caller holds b.mu.
func (b *Batch) originOf(i uint32) *Origin {
	if s := b.sampleOf(i); s != nil {
		return s.origin
	}
	if i == b.oneAt {
		return b.sampled
	}
	return nil
}

// foundOpen records that the collector has found the open entries from first on, below next.
// The batch has notes, and the caller holds b.mu.
func (b *Batch) foundOpen(first, next uint32) {
	apart := func(i uint32) bool { return b.families != nil && b.families[i].Alone() } // TellApart tells of it
	if first <= b.oneAt && b.oneAt < next && b.sampled != nil && b.State(b.oneAt)&Open != 0 && !apart(b.oneAt) {
		b.forgotten = b.sampled
	}
	for j := b.sampleFrom(first); j < len(b.samples) && b.samples[j].index < next; j++ {
		s := b.samples[j]
		if s.origin == nil || b.State(s.index)&Open == 0 {
			continue
		}
		if !apart(s.index) {
			b.forgotten = s.origin
		}
		if b.sited {
			b.Spec.countCollected(s.origin, int64(b.rate))
		}
	}
}

// mostUses is the number of uses of an owner whose stacks are kept.
const mostUses = 4

// used records the stack of a use of an entry that has Noted set.
func (b *Batch) used(i uint32) {
	o := here(nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lastUses == nil {
		b.lastUses = map[uint32]*[mostUses]*Origin{}
	}
	list := b.lastUses[i]
	if list == nil {
		list = new([mostUses]*Origin)
		b.lastUses[i] = list
	}
	at := slices.Index(list[:], o) // a stack is there once
	if at < 0 {
		at = mostUses - 1
	}
	copy(list[1:at+1], list[:at])
	list[0] = o
}
