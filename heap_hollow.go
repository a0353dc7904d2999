package cheap

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// # Hollow spans
//
// If most blocks of a class are free, but hardly a span is whole, the pages of the spans that have
// no block in use are given back to the system. Such a span is hollow. Its record has a bit for
// each page that was given back (Dropped), and counts the blocks that begin there (NumDropped).
//
// These blocks are free, and in no list: their links and canaries are gone with the pages, which read
// as zero. So Free cannot tell by a canary that one of them is free. Therefore Carved, to which Free
// compares, is 0 in a hollow span, and each Free there takes the slow path, which looks at Dropped.
// No other Free pays for that.
//
// A page is used again when the class has no other block to give. Its blocks must be zero in their
// first 16 bytes, where the canaries of others are checked. If they are not, somebody wrote to a free
// block, or a second Free of it ran while the page was being given back. Then the blocks of the page
// are lost, and the damage is noted. For the same reason a hollow span whose blocks are all free is
// read before it goes back.
//
// The account has not the pages that were given back.
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

// isDropped reports whether p lies in a page of s that was given back. Who calls it without the lock
// of the class has read the block's canary before: the bit is set before the page is given back.
//
//go:norace
func isDropped(s *span.Span, p uintptr) bool {
	d := atomic.LoadUint32(&s.Dropped)
	return d != 0 && d>>(p%span.UnitSize/osmem.PageSize)&1 != 0
}

// droppedBytes returns how many bytes of s were given back.
//
//go:norace
func droppedBytes(s *span.Span) int64 {
	return int64(bits.OnesCount32(s.Dropped)) * int64(osmem.PageSize)
}

// blocksIn returns the blocks of s that begin in a page: those from first to before end.
//
//go:norace
func blocksIn(s *span.Span, page int) (first, end uintptr) {
	from := uintptr(page) * osmem.PageSize
	first = (from + s.Size - 1) / s.Size
	end = (from + osmem.PageSize + s.Size - 1) / s.Size
	return min(first, uintptr(s.Blocks)), min(end, uintptr(s.Blocks))
}

// writtenDropped returns a block of a hollow span that was written to after its page was given back,
// or 0.
//
//go:norace
func writtenDropped(s *span.Span) uintptr {
	// To read a page that has no memory would fault.
	for d := s.Dropped & osmem.Touched(s.Base, span.UnitSize); d != 0; d &= d - 1 {
		for i, end := blocksIn(s, bits.TrailingZeros32(d)); i < end; i++ {
			if p := s.Base + i*s.Size; !blockAt(p).isBlank() {
				return p
			}
		}
	}
	return 0
}

// listAside puts s, which is hollow and has no block in its list, at the head of the list of those.
//
//go:norace
func (cl *class) listAside(s *span.Span) {
	s.Aside = true
	listIn(&cl.hollows, s)
}

// find makes cl.spans, which is empty, not empty: by a page of a hollow span, or by a new span.
//
//go:norace
func (cl *class) find(h *Heap, c uint8) error {
	for cl.hollows != 0 {
		if !h.account.TryCharge(int64(osmem.PageSize)) {
			return ErrLimit
		}
		cl.refillPage(h, span.At(cl.hollows))
		if cl.spans != 0 {
			return nil
		}
	}
	return cl.grow(h, c)
}

// refillPage makes the blocks of a page of s that was given back those of the list of s, which is
// empty. The account has the page. If one of them was written to, all are lost.
//
//go:norace
func (cl *class) refillPage(h *Heap, s *span.Span) {
	page := bits.TrailingZeros32(s.Dropped)
	first, end := blocksIn(s, page)
	pageEnd := s.Base + uintptr(page+1)*osmem.PageSize
	// A write brings the page back by one fault, a read before it would make two.
	atomic.AddUint64(&blockAt(s.Base+first*s.Size).canary, 0)
	written, next := uintptr(0), uintptr(0)
	for i := end; i > first; i-- {
		if p := s.Base + (i-1)*s.Size; !blockAt(p).isBlank() {
			written = p
		}
	}
	if written != 0 {
		h.noteDamage(written)
	}
	for i := end; i > first && written == 0; i-- {
		p := s.Base + (i-1)*s.Size
		var state blockState
		if p+s.Size <= pageEnd {
			state = stateZeroed
		}
		blockAt(p).setSorted(p, next, state, cl.factor)
		next = p
	}
	// The bit is cleared when the blocks have canaries; see judge.
	left := s.Dropped &^ (1 << page)
	atomic.StoreUint32(&s.NumDropped, s.NumDropped-uint32(end-first))
	if left == 0 {
		atomic.StoreUint32(&s.Carved, s.Made)
	}
	atomic.StoreUint32(&s.Dropped, left)
	switch {
	case written == 0:
		s.Free, s.NumFree = next, uint32(end-first)
		cl.numSorted += int64(end - first)
		cl.unlist(s)
		cl.list(s)
	case left == 0:
		cl.unlist(s)
	}
}

// hollow gives back the pages of s that have no block in use or in a cache, and returns how many
// bytes that are. The caller holds the lock of the class.
//
//go:norace
func (cl *class) hollow(h *Heap, s *span.Span) (dropped uintptr) {
	if s.Made != s.Blocks || uintptr(s.NumFree)*s.Size < osmem.PageSize {
		return 0
	}
	var free [span.UnitSize / sizeclass.Quantum / 64]uint64 // the blocks in the list of s
	n := uint32(0)
	for p := s.Free; p != 0; n++ {
		b, i := blockAt(p), (p-s.Base)/s.Size
		if n == s.NumFree || !b.isSorted(p, cl.factor) || free[i/64]>>(i%64)&1 != 0 {
			return 0 // the goroutine that takes the block reports it
		}
		free[i/64] |= 1 << (i % 64)
		p = nextOf(b.link)
	}
	if n != s.NumFree {
		return 0
	}
	drop := uint32(0)
pages:
	for page := range int(span.UnitSize / osmem.PageSize) {
		first, end := blocksIn(s, page)
		if s.Dropped>>page&1 != 0 || first == end {
			continue
		}
		before := uintptr(page) * osmem.PageSize / s.Size // the block that may begin before the page
		for i := before; i < end; i++ {
			if free[i/64]>>(i%64)&1 == 0 && !(i < first && isDropped(s, s.Base+i*s.Size)) {
				continue pages
			}
		}
		drop |= 1 << page
		n -= uint32(end - first)
	}
	if drop == 0 {
		return 0
	}
	// The list without the blocks that begin in these pages, in its order.
	head, last := uintptr(0), uintptr(0)
	for p := s.Free; p != 0; {
		next := nextOf(blockAt(p).link)
		if drop>>(p%span.UnitSize/osmem.PageSize)&1 == 0 {
			if last == 0 {
				head = p
			} else {
				blockAt(last).setSorted(last, p, stateOf(blockAt(last).link), cl.factor)
			}
			last = p
		}
		p = next
	}
	if last != 0 {
		blockAt(last).setSorted(last, 0, stateOf(blockAt(last).link), cl.factor)
	}
	cl.numSorted -= int64(s.NumFree - n)
	atomic.StoreUint32(&s.NumDropped, s.NumDropped+s.NumFree-n)
	s.Free, s.NumFree = head, n
	atomic.StoreUint32(&s.Dropped, s.Dropped|drop)
	atomic.StoreUint32(&s.Carved, 0)
	for left := drop; left != 0; {
		from := bits.TrailingZeros32(left)
		run := bits.TrailingZeros32(^(left >> from))
		left &^= 1<<(from+run) - 1
		size := uintptr(run) * osmem.PageSize
		span.Hollow(s.Base+uintptr(from)*osmem.PageSize, size)
		dropped += size
	}
	h.account.Uncharge(int64(dropped))
	if n == 0 {
		cl.unlist(s)
		cl.listAside(s)
	}
	return dropped
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
	return (h.hollowing.active || h.mustHollow(max(hollowLeast, h.account.Held()/hollowShare))) && h.hollowStep()
}

// hollowAll gives back all pages of small blocks that have none in use, in classes where they are
// more than a few.
//
//go:norace
func (h *Heap) hollowAll() {
	if !h.mayHollow() {
		return
	}
	h.hollowing.mu.Lock()
	defer h.hollowing.mu.Unlock()
	h.hollowing.active = false // begin again
	for more := h.mustHollow(trimLeast); more; {
		more = h.hollowStep()
	}
}

// mustHollow finds the classes that have least bytes of free blocks that were not looked at, and
// reports whether there are any.
//
//go:norace
func (h *Heap) mustHollow(least int64) bool {
	o := &h.hollowing
	any := false
	for c := range firstReleased {
		cl := &h.classes[c]
		n := cl.sorted()
		cl.lookedAt = min(cl.lookedAt, n)
		if (n-cl.lookedAt)*int64(sizeclass.Classes[c].Size) >= least {
			any, o.classes[c] = true, true
		}
	}
	if any && !o.active {
		o.active, o.region, o.unit = true, 0, 0
	}
	return any
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

// hollowStep looks at the next spans. It reports whether there are more.
//
//go:norace
func (h *Heap) hollowStep() (more bool) {
	o := &h.hollowing
	dropped, looked := uintptr(0), 0
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
				return true
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
	return false
}
