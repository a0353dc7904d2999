package heap

import (
	"fmt"
	"math/bits"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/heap/fill"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// A CheckLevel is a cheap.CheckLevel.
type CheckLevel int

const (
	CheckNone CheckLevel = iota
	CheckBlocks
	CheckStacks
)

// DefaultQuarantine is cheap.DefaultQuarantine.
const DefaultQuarantine = 16 << 20

// Checks reports whether the environment sets a level for all heaps.
func Checks() bool { return checkAll != CheckNone }

// checkAll is the level for heaps that have CheckNone. The environment sets it.
var checkAll = func() CheckLevel {
	switch v := os.Getenv("CHEAP_CHECK"); v {
	case "":
		return CheckNone
	case "blocks":
		return CheckBlocks
	case "stacks":
		return CheckStacks
	default:
		fmt.Fprintf(os.Stderr, "cheap: CHEAP_CHECK is %q; it may be blocks or stacks\n", v)
		return CheckNone
	}
}()

// checked is the part of a heap with a CheckLevel. No P and no Local has a cache of
// such a heap, so every call takes the slow path, and comes here.
//
// A block of the heap holds, from its start: a checkedHeader, perhaps a gap for alignment, a
// border, the bytes of the caller, and another border that fills the rest of the block.
//
// A block whose borders or header were written to is lost: it counts as freed, and is never used
// again.
//
// Headers and borders are read and written under the lock, where the heap is known to be open.
// Destroy takes the lock before it releases anything. So the memory is the heap's meanwhile,
// though another goroutine may destroy it, which is misuse. What takes longer is between
// Heap.begin and Heap.end, for which Destroy waits as well.
type checked struct {
	// The blocks in use, and the sum of their sizes. They are written under mu, and countsOr
	// reads them without it: four atomic additions would take a tenth of the time of a pair of
	// Malloc and Free. The two are first because a processor with words of 32 bits may read
	// them only at multiples of 8.
	live, bytes int64

	h          *Heap
	stacks     bool
	quarantine int  // bytes
	reported   bool // Destroy has found something

	// poisons says that the address sanitizer is told of the blocks: see poison.go. told
	// has the stacks that it knows.
	poisons bool
	ended   bool // of poison
	told    map[uint32]bool

	mu    sync.Mutex // taken before all locks of the heap
	local *Local     // all small blocks come from its cache; nil before the first

	// starting is how many blocks may have left the heap, and have no header yet. All others
	// that are in use have one while the lock is free.
	starting int

	// known has what is known of the blocks in use, with stacks only: a program may write to
	// their headers.
	known map[uintptr]checkedHeader // by the start of the block

	// The blocks in quarantine, first in first out: ring[first], and n in all.
	ring     []uintptr
	first, n int
	held     int // bytes of blocks in quarantine
}

// newChecked makes h, which is new, a heap with that level.
func newChecked(h *Heap, level CheckLevel, quarantine int) *checked {
	if quarantine == 0 {
		quarantine = DefaultQuarantine
	}
	c := &checked{h: h, stacks: level == CheckStacks, quarantine: quarantine, poisons: poisonsBlocks}
	if c.stacks {
		c.known = map[uintptr]checkedHeader{}
	}
	return c
}

// stack returns the stack of the caller of package cheap, if stacks are recorded.
func (c *checked) stack() uint32 {
	if !c.stacks {
		return 0
	}
	return sample.Stack()
}

// lock takes the lock. It panics, and does not hold it, if the heap is destroyed.
func (c *checked) lock(op string) {
	c.mu.Lock()
	if c.h.closed.Load() {
		c.mu.Unlock()
		c.h.panicNotOpen(op)
	}
}

// alloc is Heap.alloc.
func (c *checked) alloc(op string, size, align int) (p uintptr, err error) {
	c.h.mustBeOpen(op)
	if size < 0 {
		panicMisuse(op, 0, "negative size %d", size)
	}
	front := max(headerBytes, align)
	// None of the three is above a half of a word, so the sum does not overflow.
	if uintptr(size) > maxLarge || align > int(maxLarge/2) || uintptr(front)+uintptr(size)+borderBehind > maxLarge {
		return 0, c.h.tooLarge()
	}
	stack := c.stack()
	whole := front + size + borderBehind
	base := c.take(op, whole, align)
	if base == 0 {
		c.h.begin(op)
		defer c.h.end()
		if base, err = c.takePlain(op, whole, align); err != nil {
			return 0, err
		}
	}
	// The lock is held: another goroutine may check this block to find who wrote to the one
	// behind it.
	hd := headerAt(base)
	*hd = checkedHeader{size: uint64(size), state: inUse, front: uint32(bits.TrailingZeros(uint(front))), whole: uint64(span.Find(base).Size), allocStack: stack}
	hd.checksum = hd.checksumOf()
	before, behind := hd.borders()
	fill.Border.Write(before)
	fill.Border.Write(behind)
	if c.stacks {
		c.known[base] = *hd
	}
	c.tell(stack)
	c.poison(hd)
	c.add(1, int64(size))
	p = base + uintptr(front)
	if sample.Chance(uintptr(size)) { // the heap itself samples no block that has a header
		sample.Add(p, uintptr(size), &c.h.samples().holder)
	}
	small := whole <= sizeclass.MaxSize
	if small {
		fill.New.Write(hd.content())
	}
	c.mu.Unlock()
	if !small && hd.filled() {
		fill.New.Write(hd.content())
	}
	account.Process.Notify()
	return p, nil
}

// add adds to the counts. The lock is held.
//
//go:norace
func (c *checked) add(live, bytes int64) {
	c.live += live
	c.bytes += bytes
}

// countsOr returns the blocks in use, and the sum of their sizes. If c is nil these are live and
// bytes.
//
//go:norace
func (c *checked) countsOr(live, bytes int64) (int64, int64) {
	if c == nil {
		return live, bytes
	}
	return atomic.LoadInt64(&c.live), atomic.LoadInt64(&c.bytes)
}

// free is Heap.freeSlow.
func (c *checked) free(op string, p uintptr) {
	stack := c.stack()
	c.lock(op)
	hd := c.find(op, p) // it unlocks if it panics
	c.add(-1, -int64(hd.size))
	delete(c.known, uintptr(unsafe.Pointer(hd)))
	if c.h.sampled.Load() != nil {
		sample.Remove(p)
	}
	c.unpoison(hd)
	if report := hd.damaged(); report != "" {
		hd.become(lost)
		c.poison(hd)
		c.mu.Unlock()
		panicMisuse(op, p, "%s", report)
	}
	if hd.filled() {
		hd.fillFreed()
	}
	hd.freeStack = stack
	hd.become(quarantined)
	c.tell(stack)
	c.poison(hd)
	c.push(hd)
	for c.held > c.quarantine {
		c.leave(op)
	}
	c.flush(false)
	c.mu.Unlock()
}

// look returns the header of the block that p is in, and what p is. If p is in no block that
// this heap has handed out, hd is nil, and the verdict is that of judge. The lock is held.
func (c *checked) look(p uintptr) (hd *checkedHeader, s *span.Span, v verdict) {
	s, v = judge(p, c.h.id)
	base := p
	switch v {
	case blockLive, blockFree:
	case blockInside:
		if base = s.Base; s.LoadTag()&span.KindMask < span.KindBody {
			base += (p - s.Base) / s.Size * s.Size
		}
	default:
		return nil, s, v
	}
	hd = headerAt(base)
	if hd.checksum != hd.checksumOf() {
		return hd, s, headerLost
	}
	if tag := s.LoadTag(); (hd.state == inUse || hd.state == quarantined) && tag&span.KindMask < span.KindBody && block.At(base).IsFree(base, block.FactorOf(tag)) {
		return hd, s, headerLost // a heap that is destroyed has left the header
	}
	switch {
	case p != hd.user():
		return hd, s, blockInside
	case hd.state == inUse:
		return hd, s, blockLive
	}
	return hd, s, blockFree
}

// headerLost is a verdict of checked.look: the header of the block was written to, or the
// block was never handed out.
const headerLost verdict = 0xFF

// find returns the header of the block in use at p. If p is anything else, it unlocks and
// panics.
func (c *checked) find(op string, p uintptr) *checkedHeader {
	hd, s, v := c.look(p)
	if v == blockLive {
		return hd
	}
	defer c.mu.Unlock()
	switch {
	case hd == nil:
		panicNotLive(op, p, v, s)
	case v == headerLost:
		c.panicHeaderLost(op, p, hd)
	case v == blockInside:
		panicMisuse(op, p, "%#x is inside the block at %#x (%d bytes), %d bytes after its start; pass the pointer that Malloc returned%s",
			p, hd.user(), hd.size, int64(p)-int64(hd.user()), hd.stacksText())
	}
	panicMisuse(op, p, "the block at %#x (%d bytes) is free already; it is freed twice, or used after it was freed%s", p, hd.size, hd.stacksText())
	return nil
}

// usable returns the size of the block in use at p.
func (c *checked) usable(op string, p uintptr) int {
	c.lock(op)
	hd := c.find(op, p)
	defer c.mu.Unlock()
	return int(hd.size)
}

// owns reports whether p is the start of a block in use.
func (c *checked) owns(op string, p uintptr) bool {
	c.lock(op)
	defer c.mu.Unlock()
	_, _, v := c.look(p)
	return v == blockLive
}

// checkedHeapOf returns the heap with a CheckLevel that s, which may be nil, belongs to, or nil.
func checkedHeapOf(s *span.Span) *Heap {
	if s == nil || numChecked.Load() == 0 {
		return nil
	}
	id := s.LoadTag() >> span.KindBits
	for h := range heaps.Range {
		if h := h.(*Heap); h.id == id && h.checked != nil {
			return h
		}
	}
	return nil
}
