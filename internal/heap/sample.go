package heap

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// Package sample says which blocks are sampled, and keeps what is known of them.
//
// Malloc decides by a comparison: a cache counts the blocks of each class that it hands
// out, and has drawn beforehand at which count the next block is sampled. At that count
// Malloc takes the slow path, which allocates the block from a span of sampled blocks.
// The tag of such a span is not the tag of a class. So Free of a sampled block takes the
// slow path as well, and Free of any other block pays nothing.
//
// The spans of sampled blocks have classes of their own, with the same sizes. No cache has
// blocks of these classes.

// samples has the classes of sampled blocks.
type samples struct {
	holder  sample.Holder
	classes [sizeclass.Count]class

	// peaks has for each class the most blocks that were in use since the pages of its free
	// blocks were released.
	peaks [sizeclass.Count]atomic.Int64

	guarded   [sizeclass.Count]atomic.Int64 // blocks in use that are guarded, and in no span of the class
	slackTold atomic.Bool                   // Destroy has panicked because of one

	warm     atomic.Int64 // spans made of idle units since then
	released atomic.Int64 // when that was
	putOff   atomic.Bool  // a timer runs, after which it is done again
}

// redrawSamples makes the heap watched if a rate is not 0, and has each of its caches draw anew when
// its next sample is due, because the rate has changed.
//
// The owner of a cache may draw at the same time. It reads the rate again after it has
// written: either it finds the new rate, or it wrote before the rate changed, and so before
// this function writes.
//
//go:norace
func (h *Heap) redrawSamples() {
	h.seize.Lock()
	defer h.seize.Unlock()
	h.watch()
	if !h.watched.Load() {
		return
	}
	for place := range int(h.numPlaces.Load()) {
		if slot := h.caches.Installed(place); slot != 0 {
			cacheAt(slot).redrawSamples()
		}
	}
	for l := h.locals; l != nil; l = l.next {
		if l.slot != 0 {
			cacheAt(l.slot).redrawSamples()
		}
	}
}

// firstSample is cacheClass.sampleAt of a new cache. The caller holds seize.
//
//go:norace
func (h *Heap) firstSample() int64 {
	if h.watched.Load() {
		return sample.Redraw
	}
	return sample.Never
}

//go:norace
func (k *cache) redrawSamples() {
	for i := range k.classes {
		atomic.StoreInt64(&k.classes[i].sampleAt, sample.Redraw)
	}
}

// pick returns what the next block of class c is picked for. The cache is that of l or, if l is nil,
// that of the P.
//
//go:norace
func (h *Heap) pick(l *Local, c uint8) (pick sample.Pick) {
	var local *cache
	if l != nil {
		local = l.enter(true)
		defer l.leave()
	}
	k := local
	if k == nil {
		k = cacheAt(h.caches.Pin())
	}
	if k == nil {
		pick = sample.CurrentRates().Draw(uintptr(sizeclass.Classes[c].Size))
	} else if pick = k.sampleDue(c); pick == (sample.Pick{}) && k.class(c).head|k.class(c).spare == 0 {
		k.class(c).skip()
	}
	h.unpin(local, k)
	return pick
}

// sampleDue returns what the next block of class c is picked for, and draws when the next
// one after that is due. The caller owns the cache.
//
//go:norace
func (k *cache) sampleDue(c uint8) sample.Pick {
	cc, size := k.class(c), uintptr(sizeclass.Classes[c].Size)
	at := atomic.LoadInt64(&cc.sampleAt)
	if cc.takes < at {
		return sample.Pick{}
	}
	for due := at != sample.Redraw; ; due = false {
		rates := sample.CurrentRates()
		d := rates.Distance(size)
		if d == 0 && !due { // drawn anew, and due already
			due, d = true, rates.Distance(size)
		}
		atomic.StoreInt64(&cc.sampleAt, cc.takes+d)
		if sample.CurrentRates() != rates {
			continue
		}
		if !due {
			return sample.Pick{}
		}
		return rates.Due(size)
	}
}

// skip counts a block that is not sampled and does not come from a list of the cache. The
// caller owns the cache. Where redrawSamples writes at the same time, the count is lost.
//
//go:norace
func (cc *cacheClass) skip() {
	if at := atomic.LoadInt64(&cc.sampleAt); at > cc.takes {
		atomic.CompareAndSwapInt64(&cc.sampleAt, at, at-1)
	}
}

// allocSampled returns a block of class c that is sampled, or 0 if there is no memory.
//
//go:norace
func (h *Heap) allocSampled(c uint8) (p uintptr, was block.State) {
	all := h.samples()
	p, was, _, err := all.classes[c].get(h, c, 1)
	if err != nil {
		return 0, 0
	}
	if out := all.inSpans(int(c)); out > all.peaks[c].Load() {
		all.peaks[c].Store(out) // one that another goroutine stores meanwhile is about the same
	}
	raceVisible(func() { sample.Add(p, uintptr(sizeclass.Classes[c].Size), &all.holder) })
	return p, was
}

// pickResized is for a block that is to be resized in its unit, to class c. It decides whether the block is to be
// sampled, as for one that is allocated. If so it returns another block, which is sampled, unless there is no memory.
func (h *Heap) pickResized(c uint8) uintptr {
	if !h.watched.Load() || !sample.Chance(uintptr(sizeclass.Classes[c].Size)) {
		return 0
	}
	race.Enter()
	p, was := h.allocSampled(c)
	race.Leave()
	h.mustBeUndamaged(p)
	account.Process.Notify()
	raceAcquire(p, was)
	return p
}

// samples returns the classes of sampled blocks.
//
// Most callers are between Enter and Leave of package race, where the detector does not see that
// the compare-and-swap hands on what was written before.
//
//go:norace
func (h *Heap) samples() *samples {
	if all := h.sampled.Load(); all != nil {
		return all
	}
	all := &samples{holder: sample.Holder{Name: h.Name()}}
	for c := range all.classes {
		cl := &all.classes[c]
		cl.tag = h.id<<span.KindBits | span.KindSampled | uintptr(c)
		cl.factor = block.FactorOf(cl.tag)
	}
	h.sampled.CompareAndSwap(nil, all)
	return h.sampled.Load()
}

// sampledClasses returns the classes of sampled blocks, or nil if no block was sampled.
//
//go:norace
func (h *Heap) sampledClasses() []class {
	if all := h.sampled.Load(); all != nil {
		return all.classes[:]
	}
	return nil
}

// freeSampled frees the block at p, in the unit of s. It returns false, and changes nothing,
// if p is not a live block of the heap that is sampled.
//
//go:norace
func (h *Heap) freeSampled(s *span.Span, p uintptr) bool {
	all := h.sampled.Load()
	c := s.LoadTag() - h.id<<span.KindBits - span.KindSampled
	if all == nil || c >= sizeclass.Count {
		return false
	}
	// Before the block is free, or its next life could be ended. If it turns out not to be
	// live, no sample of it was there, but one that another goroutine is ending now.
	raceVisible(func() { sample.Remove(p) })
	if !all.classes[c].putOne(h, s, p) {
		return false
	}
	if samplesAreFew() {
		all.releaseIdle(h)
	}
	return true
}

// releaseIdle releases pages of the spans that have no block in use, if there are many: more than
// idleLeast bytes and one in idleShare of what the heap holds. Those are the pages of free blocks,
// and those that an idle unit brings along when it becomes a span, which has few blocks. Each
// span costs a call of the system, and the pages are missed when blocks come again. So this is
// done once in idlePause, where need be by a timer.
//
//go:norace
func (all *samples) releaseIdle(h *Heap) {
	idle := all.warm.Load() * span.UnitSize / 2
	for c := firstPagesLong; c < sizeclass.Count; c++ {
		idle += max(0, all.peaks[c].Load()-all.inSpans(c)) * int64(sizeclass.Classes[c].Size)
	}
	if idle <= idleLeast+h.account.Held()/idleShare {
		return
	}
	now, last := sample.Now(), all.released.Load()
	if now-last < int64(idlePause) {
		if !all.putOff.Load() && !all.putOff.Swap(true) {
			raceVisible(func() { // else the function would look as if it ran before the timer was armed
				time.AfterFunc(idlePause, func() {
					all.putOff.Store(false)
					h.releaseSampled(false)
				})
			})
		}
		return
	}
	if all.released.CompareAndSwap(last, now) {
		all.release()
	}
}

// releaseSampled releases pages of the spans of sampled blocks: all that have no block in use,
// or where there are many.
//
//go:norace
func (h *Heap) releaseSampled(all bool) {
	s := h.sampled.Load()
	if s == nil {
		return
	}
	race.Enter()
	defer race.Leave()
	if all {
		s.release()
	} else if samplesAreFew() {
		s.releaseIdle(h)
	}
}

// inSpans returns how many blocks of class c are in use in its spans.
//
//go:norace
func (all *samples) inSpans(c int) int64 {
	out, _ := all.classes[c].peek()
	return out - all.guarded[c].Load()
}

// release releases the pages of the spans that have no block in use.
//
//go:norace
func (all *samples) release() {
	all.warm.Store(0)
	for c := range all.classes {
		out := all.inSpans(c)
		if c >= firstPagesLong && all.peaks[c].Load() > out {
			all.classes[c].releaseFreePages()
			all.peaks[c].Store(out)
		}
		all.classes[c].releaseTails()
	}
}

const (
	idleLeast = 64 << 10
	idleShare = 1024
	idlePause = 50 * time.Millisecond
)

// releaseTails releases the pages behind the blocks of spans, if they are not zero.
//
//go:norace
func (cl *class) releaseTails() {
	if atomic.LoadUintptr(&cl.spans) == 0 {
		return
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for a := cl.spans; a != 0; a = span.At(a).Next {
		s := span.At(a)
		from, to := s.Base+uintptr(s.Carved)*s.Size, s.Base+uintptr(s.Blocks)*s.Size
		if !s.Fresh && s.Carved < s.Blocks && span.Hollow(from, to-from) {
			s.Fresh = true
		}
	}
}

// firstPagesLong is the first class whose blocks may have a whole page, besides their first.
var firstPagesLong = slices.IndexFunc(sizeclass.Classes[:], func(c sizeclass.Class) bool { return c.Size >= 4<<10 })

// samplesAreFew reports whether spans of sampled blocks keep pages that have no block in use.
// Few blocks of a class are sampled by default, so what has no block waits long for the next.
// Where each block or so is sampled it does not.
func samplesAreFew() bool { return sample.Rate() >= 64<<10 }

// sampleLarge decides whether the large block at p, which is new or has another size, is to
// be sampled. The caller owns the block.
//
//go:norace
func (h *Heap) sampleLarge(p uintptr) {
	s := span.Find(p)
	if sample.Rate() == 0 && !s.Sampled {
		return
	}
	race.Enter()
	defer race.Leave()
	h.large.mu.Lock()
	was := s.Sampled
	s.Sampled = sample.Chance(s.Size)
	is, size := s.Sampled, s.Size
	h.large.mu.Unlock()
	raceVisible(func() {
		switch {
		case is:
			sample.Add(p, size, &h.samples().holder)
		case was:
			sample.Remove(p)
		}
	})
}

// endLargeSample ends the sample of the large block of s, if there is one. The caller holds
// Heap.large.mu.
//
//go:norace
func endLargeSample(s *span.Span) {
	if s.Sampled {
		s.Sampled = false
		raceVisible(func() { sample.Remove(s.Base) })
	}
}

// forgetSamples is a part of Destroy.
func (h *Heap) forgetSamples() {
	all := h.sampled.Load()
	if all == nil {
		return
	}
	for i := range all.classes {
		all.classes[i].forgetAll()
	}
	raceVisible(func() { sample.Drop(&all.holder) })
}
