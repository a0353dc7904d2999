package cheap

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// # Hollow spans
//
// If most blocks of a class are free, but hardly a span is whole, the pages of the spans that have
// no block in use are given back to the system. Such a span is hollow. Its record has a bit for
// each page that was given back (Dropped).
//
// A block that has a part in such a page is dropped: it is free, and in no list. NumDropped counts
// them. So no block that a list has touches a page that was given back, and the account has each
// page that a block in use touches. The first 16 bytes of a dropped block are zero, also if they are
// in a page that stays.
//
// Free cannot tell by a canary that a dropped block is free. Therefore Carved, to which Free compares,
// is 0 in a hollow span, and each Free there takes the slow path, which looks at Dropped. No other Free
// pays for that.
//
// When the class has no other block to give, all pages of a hollow span are charged, and its dropped
// blocks are those of its list again. One that is not zero was written to, or a second Free of it ran
// while its page was being given back. It is lost, and the damage is noted. For the same reason a
// hollow span whose blocks are all free is read before it goes back.
//
// A page costs a call of the system, or a part of one, and a page fault when it is used again.
// So pages are looked for only if a class has many free blocks, in steps, before the heap grows,
// and in Trim.

const (
	// hollowLeast is how many bytes of free blocks in spans a class has at least, besides those that
	// were in pages with blocks in use at the last look, before its spans are looked at.
	hollowLeast = 16 << 20

	// trimLeast is hollowLeast of Trim, and of a request that would be refused.
	trimLeast = 64 << 10

	// hollowShare is the part of the heap, 1/hollowShare, that these bytes are at least.
	hollowShare = 16

	// A step gives back hollowStep bytes, or looks at stepSpans spans, and the heap may grow by half
	// of that before the next.
	hollowStep = 8 << 20
	stepSpans  = 512
)

// A hollowing is where the heap looks for pages to give back.
type hollowing struct {
	mu      sync.Mutex            // held during a step
	active  bool                  // there are spans to look at, from the unit on
	region  int                   // of the next unit
	unit    int                   // the next unit in the region
	classes [sizeclass.Count]bool // to look at
}

// mayHollow reports whether spans of h may become hollow.
//
//go:norace
func (h *Heap) mayHollow() bool {
	return h.checked == nil && !h.huge && osmem.DropsPages && osmem.PageSize < span.UnitSize
}

// isCarved is startsBlock, also for hollow spans.
//
//go:norace
func isCarved(s *span.Span, p uintptr) bool {
	return sizeclass.Index(uint32(p)%span.UnitSize, s.Inverse, uint8(s.Shift)) < atomic.LoadUint32(&s.Made)
}

// isHollow reports whether pages of s were given back. The caller holds the lock of the class.
//
//go:norace
func isHollow(s *span.Span) bool { return s.Dropped&span.DroppedPages != 0 }

// pageShift is the logarithm of the size of a page.
var pageShift = bits.TrailingZeros(uint(osmem.PageSize))

// pagesOf returns the pages of s that the block at p lies in, a bit for each.
//
//go:norace
func pagesOf(s *span.Span, p uintptr) uint32 {
	off := p % span.UnitSize
	return 2<<((off+s.Size-1)>>pageShift) - 1<<(off>>pageShift)
}

// isDropped reports whether a page of the block at p was given back. The caller holds the lock of the
// class of s, or the answer is for a message.
//
//go:norace
func isDropped(s *span.Span, p uintptr) bool {
	dropped := atomic.LoadUint32(&s.Dropped) & span.DroppedPages
	return dropped != 0 && dropped&pagesOf(s, p) != 0
}

// looksFree reports whether the block at p, which was carved, is free. It is for a caller without the
// lock of the class. If sure is false, pages of s were given back meanwhile, or are used again, and
// free may be wrong.
//
//go:norace
func looksFree(s *span.Span, p uintptr, factor uint64) (free, sure bool) {
	b := blockAt(p)
	if !osmem.DropsPages {
		return b.isFree(p, factor), true
	}
	dropped := atomic.LoadUint32(&s.Dropped)
	if dropped&span.DroppedPages != 0 && dropped&pagesOf(s, p) != 0 {
		return true, true
	}
	// Between the two loads of Dropped, also where a processor reorders plain ones.
	now := block{atomic.LoadUint64(&b.link), atomic.LoadUint64(&b.canary)}
	return now.isFree(p, factor), atomic.LoadUint32(&s.Dropped) == dropped
}

// droppedBytes returns how many bytes of s were given back.
//
//go:norace
func droppedBytes(s *span.Span) int64 {
	return int64(bits.OnesCount32(s.Dropped&span.DroppedPages)) << pageShift
}

// eachRun calls f for the runs of a set of pages of s.
//
//go:norace
func eachRun(s *span.Span, set uint32, f func(addr, size uintptr, run uint32)) {
	for set != 0 {
		from := bits.TrailingZeros32(set)
		n := bits.TrailingZeros32(^(set >> from))
		run := (uint32(1)<<n - 1) << from
		set &^= run
		f(s.Base+uintptr(from)<<pageShift, uintptr(n)<<pageShift, run)
	}
}

// writtenDropped returns a dropped block of s, which is hollow, that was written to, or 0.
//
//go:norace
func writtenDropped(s *span.Span) uintptr {
	dropped := s.Dropped & span.DroppedPages
	blank := uint32(0) // without memory; to read them would fault
	eachRun(s, dropped, func(addr, size uintptr, run uint32) {
		if osmem.Resident(addr, size) == 0 {
			blank |= run
		}
	})
	end := s.Base + uintptr(s.Blocks)*s.Size
	for p := s.Base; p < end; p += s.Size {
		if dropped&pagesOf(s, p) != 0 && blank>>(p%span.UnitSize>>pageShift)&1 == 0 && !blockAt(p).isBlank() {
			return p
		}
	}
	return 0
}

// refill charges the pages of s, which is hollow, that were given back, and puts the blocks that were
// dropped into the list of s. Those that were written to are lost.
//
//go:norace
func (cl *class) refill(h *Heap, s *span.Span) error {
	if !h.account.TryCharge(droppedBytes(s)) {
		return ErrLimit
	}
	dropped := s.Dropped & span.DroppedPages
	for d := dropped; d != 0; d &= d - 1 {
		// A write brings the page back by one fault, a read before it would make two. Of the page no
		// block is in use; if somebody writes to a free block, that stays.
		atomic.AddUint32((*uint32)(osmem.Pointer(s.Base+uintptr(bits.TrailingZeros32(d))<<pageShift)), 0)
	}
	n := s.NumFree
	for p := s.Base + uintptr(s.Blocks-1)*s.Size; p >= s.Base; p -= s.Size {
		if dropped&pagesOf(s, p) == 0 {
			continue
		}
		b := blockAt(p)
		if !b.isBlank() {
			h.noteDamage(p)
			continue
		}
		b.setSorted(p, s.Free, 0, cl.factor)
		s.Free = p
		s.NumFree++
	}
	cl.numSorted += int64(s.NumFree - n)
	atomic.StoreUint32(&s.NumDropped, 0)
	// Not before the blocks have their canaries, as in carve.
	atomic.StoreUint32(&s.Carved, s.Made)
	s.SetDropped(0)
	return nil
}

// hollow gives back the pages of s that have no block in use or in a cache, and returns how many
// bytes that are. The caller holds the lock of the class.
//
//go:norace
func (cl *class) hollow(h *Heap, s *span.Span) (bytes int64) {
	if s.Made != s.Blocks || uintptr(s.NumFree)*s.Size < osmem.PageSize {
		return 0
	}
	var free [span.UnitSize / sizeclass.Quantum / 64]uint64 // the blocks in the list of s
	n := uint32(0)
	for p := s.Free; p != 0; n++ {
		b, i := blockAt(p), uintptr(sizeclass.Index(uint32(p)%span.UnitSize, s.Inverse, uint8(s.Shift)))
		if n == s.NumFree || (p^s.Base)>>span.UnitShift != 0 || !b.isSorted(p, cl.factor) || free[i/64]>>(i%64)&1 != 0 {
			return 0 // the goroutine that takes the block reports it
		}
		free[i/64] |= 1 << (i % 64)
		p = nextOf(b.link)
	}
	if n != s.NumFree {
		return 0
	}
	dropped := s.Dropped & span.DroppedPages
	// The account has whole pages only of these.
	drop := (uint32(1)<<(sizeclass.Classes[uint8(s.Tag)].SpanBytes()>>pageShift) - 1) &^ dropped
	for i := range uintptr(s.Blocks) {
		if free[i/64]>>(i%64)&1 == 0 {
			if pages := pagesOf(s, s.Base+i*s.Size); pages&dropped == 0 {
				drop &^= pages
			}
		}
	}
	if drop == 0 {
		return 0
	}
	// The order is that of looksFree, and of a Free that has read Carved.
	dropped |= drop
	s.SetDropped(dropped)
	atomic.StoreUint32(&s.Carved, 0)
	// The list of the blocks that are not dropped.
	s.Free, s.NumFree = 0, 0
	for i := uintptr(s.Blocks); i > 0; {
		i--
		if free[i/64]>>(i%64)&1 == 0 {
			continue
		}
		p := s.Base + i*s.Size
		switch b, pages := blockAt(p), pagesOf(s, p); {
		case pages&dropped == 0:
			b.setSorted(p, s.Free, stateOf(b.link), cl.factor)
			s.Free = p
			s.NumFree++
		case pages&-pages&dropped == 0: // its first page stays
			*b = block{}
		}
	}
	atomic.StoreUint32(&s.NumDropped, s.NumDropped+n-s.NumFree)
	cl.numSorted -= int64(n - s.NumFree)
	eachRun(s, drop, func(addr, size uintptr, _ uint32) { span.Hollow(addr, size) })
	bytes = int64(bits.OnesCount32(drop)) << pageShift
	h.account.Uncharge(bytes)
	if s.NumFree == 0 { // it is in the list, as it had free blocks
		cl.unlist(s)
		cl.listLast(s)
	}
	return bytes
}

// hollowSome gives pages back before the heap grows, some at a time. It reports whether there are
// spans left to look at.
//
//go:norace
func (h *Heap) hollowSome() (more bool) {
	if !h.mayHollow() || !h.hollowing.mu.TryLock() {
		return false
	}
	defer h.hollowing.mu.Unlock()
	if h.hollowing.active || h.mustHollow(max(hollowLeast, h.account.Held()/hollowShare)) {
		_, more = h.hollowStep()
	}
	return more
}

// hollowAll gives back all pages of small blocks that have none in use, in classes where they are
// more than a few. It reports whether there were any.
//
//go:norace
func (h *Heap) hollowAll() (any bool) {
	if !h.mayHollow() {
		return false
	}
	race.Enter()
	defer race.Leave()
	h.hollowing.mu.Lock()
	defer h.hollowing.mu.Unlock()
	h.hollowing.active = false // begin again
	for more := h.mustHollow(trimLeast); more; {
		var bytes int64
		bytes, more = h.hollowStep()
		any = any || bytes > 0
	}
	return any
}

// mustHollow finds the classes that have least bytes of free blocks that were not looked at, and
// reports whether there are any.
//
//go:norace
func (h *Heap) mustHollow(least int64) bool {
	o := &h.hollowing
	found := false
	for c := range firstReleased {
		cl := &h.classes[c]
		n := cl.sorted()
		cl.lookedAt = min(cl.lookedAt, n)
		if (n-cl.lookedAt)*int64(sizeclass.Classes[c].Size) >= least {
			found, o.classes[c] = true, true
		}
	}
	if found && !o.active {
		o.active, o.region, o.unit = true, 0, 0
	}
	return found
}

// firstReleased is the first class whose blocks give up their pages one by one; see consolidate.
var firstReleased = slices.IndexFunc(sizeclass.Classes[:], func(c sizeclass.Class) bool { return c.Size >= releasePagesFrom })

// sorted returns numSorted. As in peek, no lock is needed where a load of 64 bits is one instruction.
//
//go:norace
func (cl *class) sorted() int64 {
	if bits.UintSize == 64 {
		return atomic.LoadInt64(&cl.numSorted)
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.numSorted
}

// hollowStep looks at the next spans. It returns how many bytes it gave back, and whether there are more
// spans to look at.
//
//go:norace
func (h *Heap) hollowStep() (dropped int64, more bool) {
	o := &h.hollowing
	looked := 0
	for {
		base, i := h.regions.Next(o.region)
		if base == 0 {
			break
		}
		if i != o.region {
			o.region, o.unit = i, 0
		}
		for first := span.Find(base); o.unit < span.RegionSize/span.UnitSize; {
			s := first.Behind(o.unit)
			o.unit++
			c := s.LoadTag() - h.id<<span.KindBits
			if c >= sizeclass.Count || !o.classes[c] {
				continue
			}
			cl := &h.classes[c]
			cl.mu.Lock()
			if s.LoadTag() == cl.tag && !h.closed.Load() {
				dropped += cl.hollow(h, s)
			}
			cl.mu.Unlock()
			if looked++; dropped >= hollowStep || looked >= stepSpans {
				return dropped, true
			}
		}
		o.region, o.unit = i+1, 0
	}
	o.active = false
	for c := range o.classes {
		if o.classes[c] {
			h.classes[c].lookedAt, o.classes[c] = h.classes[c].sorted(), false
		}
	}
	return dropped, false
}
