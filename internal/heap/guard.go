package heap

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/watch/guard"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// Package guard places some of the blocks between inaccessible pages. Package sample chooses
// the blocks, as it does for profiles. Free of such a block takes the slow path, because the
// tag of its unit is not the tag of a class.
//
// A guarded block has the size of its class, as any other block of the class: a program may use
// all of it, and relies on GoodSize. It counts in the classes of sampled blocks.

// setGuardRate sets the rate that CHEAP_GUARD says.
func setGuardRate() {
	v := os.Getenv("CHEAP_GUARD")
	if v == "" {
		return
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		fmt.Fprintf(os.Stderr, "cheap: CHEAP_GUARD is %q; it may be a number of blocks, such as 10000\n", v)
		return
	}
	if n > 0 && osmem.GoBacked {
		fmt.Fprintf(os.Stderr, "cheap: CHEAP_GUARD is %q; with the build tag cheap_gomem no block can be guarded\n", v)
	}
	guard.SetRate(n)
}

// guardShare bounds what guarded blocks take of a limit, limit/guardShare, because they hold
// pages where others hold bytes.
const guardShare = 16

// guardTag is the tag of the units with guarded blocks of the heap.
func (h *Heap) guardTag() uintptr { return h.id<<span.KindBits | span.KindGuarded }

// allocGuarded returns a block of class c that is guarded, or 0 if there is no room for it, or if
// the blocks of the class are too large.
//
//go:norace
func (h *Heap) allocGuarded(c uint8, sampled bool) (p uintptr) {
	size := uintptr(sizeclass.Classes[c].Size)
	if size > guard.Largest {
		return 0
	}
	cost := guard.Cost(size)
	if limit := h.account.Limit(); limit != 0 && h.guardHeld.Load() > limit/guardShare-cost {
		return 0
	}
	if !h.account.TryCharge(cost) {
		return 0
	}
	stack := sample.Hold()
	cl := &h.samples().classes[c]
	cl.mu.Lock()
	if !h.closed.Load() {
		p = guard.Place(size, h.guardTag(), stack, sampled)
	}
	if p != 0 {
		cl.out++
		cl.mallocs++
		h.samples().guarded[c].Add(1)
		h.guardHeld.Add(cost)
	}
	cl.mu.Unlock()
	if p == 0 {
		sample.LetGo(stack)
		h.account.Uncharge(cost)
		return 0
	}
	return p
}

// freeGuarded frees the block at p, in the unit of s. It returns false, and changes nothing,
// if p is not a live block of the heap that is guarded. If its slack was written to it panics, and
// the block is free.
//
//go:norace
func (h *Heap) freeGuarded(op string, s *span.Span, p uintptr) bool {
	all, size := h.sampled.Load(), s.Size
	if all == nil || size > guard.Largest || p != s.Base {
		return false
	}
	stack := sample.Hold()
	cl := &all.classes[sizeclass.Of(int(size))]
	if s.Sampled {
		sample.Remove(p) // as in freeSampled
	}
	cl.mu.Lock()
	d, ok := guard.Free(p, size, h.guardTag(), stack)
	if ok {
		cl.out--
		all.guarded[sizeclass.Of(int(size))].Add(-1)
		h.guardHeld.Add(-guard.Cost(size))
		h.account.Uncharge(guard.Cost(size))
	}
	cl.mu.Unlock()
	if !ok {
		sample.LetGo(stack)
	} else if d.From < d.To {
		panicSlack(op, d)
	}
	return ok
}

// mustHaveSlack panics if the slack of a guarded block in use was written to, unless it has done
// so before: the next Destroy is to release what it can. It is a part of Destroy.
func (h *Heap) mustHaveSlack(op string) {
	if h.guardHeld.Load() == 0 || h.samples().slackTold.Load() {
		return
	}
	if d, ok := guard.Look(h.guardTag()); ok && !h.samples().slackTold.Swap(true) {
		panicSlack(op, d)
	}
}

// panicSlack panics because the slack of a block was written to.
func panicSlack(op string, d guard.Damage) {
	b := d.Block
	where, look := "behind its end", "an index or a length that is too large"
	if d.From < 0 {
		where, look = "before its start", "an index below 0"
	}
	panicMisuse(op, b.Start, "the block at %#x (%d bytes) was written to %s: %d bytes from byte %d on; look for %s%s%s",
		b.Start, b.Size, where, d.To-d.From, d.From, look, guardStacks(&b), earlierBlock(&d.Earlier))
}

// dropGuarded frees the block of a unit of a heap that is being destroyed.
func (h *Heap) dropGuarded(s *span.Span) {
	stack := sample.Hold()
	if _, ok := guard.Free(s.Base, s.Size, h.guardTag(), stack); !ok {
		sample.LetGo(stack)
	}
}

// guardReport says what p, which is no live block of the heap that was asked, is to a guarded
// block, with the stacks of that; or "".
func guardReport(p uintptr, v verdict) string {
	b, earlier, ok := guard.Find(p)
	if !ok {
		return ""
	}
	var text strings.Builder
	switch offset := int64(p) - int64(b.Start); {
	case v == spanOtherHeap:
		fmt.Fprintf(&text, "%#x belongs to another heap; use the heap that allocated the block", p)
	case offset != 0 && b.Distance(p) == 0:
		fmt.Fprintf(&text, "%#x is inside the block at %#x (%d bytes), %d bytes after its start; pass the pointer that Malloc returned", p, b.Start, b.Size, offset)
	case offset != 0:
		fmt.Fprintf(&text, "%#x is beside the block at %#x (%d bytes), %d bytes from its start; pass the pointer that Malloc returned", p, b.Start, b.Size, offset)
	default:
		fmt.Fprintf(&text, "the block at %#x (%d bytes) is free already; it is freed twice, or used after it was freed", p, b.Size)
	}
	return text.String() + guardStacks(&b) + earlierBlock(&earlier)
}

// earlierBlock says which block lay in the slot before, if there was one at the address.
func earlierBlock(b *guard.Block) string {
	if b.Start == 0 {
		return ""
	}
	return fmt.Sprintf("\nor look for a pointer to the block that was here before, at %#x (%d bytes)%s", b.Start, b.Size, guardStacks(b))
}

// guardStacks says who has allocated and freed the block.
func guardStacks(b *guard.Block) string {
	text := stackLines("allocated by", b.AllocStack)
	if b.FreeStack != 0 {
		text += stackLines(b.FreedBy(), b.FreeStack)
	}
	return text
}
