package heap

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/heap/fill"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// writtenOver looks for a block whose overrun has reached the block at base, or the memory
// before it. It returns the address of the block that was overrun, and a report, or "" if there
// is no such block. The lock is held.
func (c *checked) writtenOver(base uintptr) (at uintptr, report string) {
	for range mostWrittenOver {
		hd, s, v := c.look(base - 1)
		switch {
		case hd == nil:
			return 0, ""
		case v != headerLost && (hd.state == inUse || hd.state == quarantined):
			if report := c.damaged(hd); strings.Contains(report, "behind its end") {
				return hd.user(), report
			}
			return 0, ""
		case s.LoadTag()&span.KindMask >= span.KindBody:
			base = s.Base
		default:
			base = uintptr(unsafe.Pointer(hd))
		}
	}
	return 0, ""
}

// mostWrittenOver is how many blocks writtenOver examines: more than a span has.
const mostWrittenOver = 1 << 10

// panicDamaged is Heap.panicDamaged: the free block of d was written to, and the caller would
// have got the one at p, or none if p is 0.
func (c *checked) panicDamaged(p uintptr, d *fill.Damage) {
	c.lock("Heap")
	if p != 0 {
		c.blank(p, released)
		c.freeBase(p)
	}
	at, report := c.writtenOver(d.Block)
	c.mu.Unlock()
	if report != "" {
		panicMisuse("Heap", at, "%s", report)
	}
}

// panicHeaderLost panics because the header of the block that p is in is not right.
func (c *checked) panicHeaderLost(op string, p uintptr, hd *checkedHeader) {
	was, ok := c.known[uintptr(unsafe.Pointer(hd))]
	if at, report := c.writtenOver(uintptr(unsafe.Pointer(hd))); report != "" {
		panicMisuse(op, at, "%s", report)
	}
	if !ok {
		panicMisuse(op, p, "the bytes before %#x were written to, or no block is there; look for an index below 0, or for a write behind the end of the block before", p)
	}
	user := hd.userAt(was.front)
	delete(c.known, uintptr(unsafe.Pointer(hd)))
	c.add(-1, -int64(was.size))
	*hd = was
	hd.become(lost)
	panicMisuse(op, p, "the block at %#x (%d bytes) was written to before its start: more than %d bytes; look for an index below 0, or for a write behind the end of the block before%s",
		user, was.size, borderBefore, stackLines("allocated by", was.allocStack))
}

// writtenFree says what was written to of a block in quarantine, and where that is, or "". The
// lock is held.
func (c *checked) writtenFree(hd *checkedHeader) (at uintptr, report string) {
	if hd.checksum != hd.checksumOf() {
		if at, report := c.writtenOver(uintptr(unsafe.Pointer(hd))); report != "" {
			return at, report
		}
	}
	c.unpoison(hd)
	defer c.poison(hd)
	return hd.user(), hd.writtenFree()
}

// damaged is hd.damaged. The lock is held.
func (c *checked) damaged(hd *checkedHeader) string {
	c.unpoison(hd)
	defer c.poison(hd)
	return hd.damaged()
}

// check checks all blocks in use and in quarantine. If one was written to outside of its
// bytes or after its free, check returns where, and a report; otherwise "".
func (c *checked) check() (at uintptr, report string) {
	c.lockSettled()
	defer c.mu.Unlock()
	for i := range c.n {
		hd := headerAt(c.ring[(c.first+i)%len(c.ring)])
		if at, report := c.writtenFree(hd); report != "" {
			return at, report
		}
	}
	span.Each(c.h.id, &c.h.regions, func(s *span.Span) {
		if report != "" {
			return
		}
		size, n := s.Size, atomic.LoadUint32(&s.Carved)
		large := s.LoadTag()&span.KindMask == span.KindLarge
		if large {
			n = 1
		}
		for base := s.Base; n > 0 && report == ""; base, n = base+size, n-1 {
			if !large && block.At(base).IsFree(base, block.FactorOf(s.LoadTag())) {
				continue
			}
			hd := headerAt(base)
			if at = base + headerBytes; hd.checksum != hd.checksumOf() {
				report = fmt.Sprintf("the bytes before the block at %#x were written to%s", at, stackLines("allocated by", c.known[base].allocStack))
			} else if at = hd.user(); hd.state == inUse {
				report = c.damaged(hd)
			}
		}
	})
	return at, report
}

// lockSettled takes the lock when all blocks in use have a header. No other goroutine should use
// the heap; where one does so all the same, that is its mistake, and no write to a header.
func (c *checked) lockSettled() {
	for c.mu.Lock(); c.starting > 0; c.mu.Lock() {
		c.mu.Unlock()
		runtime.Gosched()
	}
}

// mustBeUndamagedAll panics if a border or a freed block was written to, or the slack of a guarded
// block. It is the beginning of Destroy.
func (h *Heap) mustBeUndamagedAll(op string) {
	if h.checked == nil { // or no block is guarded
		h.mustHaveSlack(op)
		return
	}
	if !h.checked.reported {
		if at, report := h.checked.check(); report != "" {
			h.checked.reported = true // the next Destroy is to release what it can
			panicMisuse(op, at, "%s", report)
		}
	}
	h.checked.end()
}
