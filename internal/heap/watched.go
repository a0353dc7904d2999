package heap

import (
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// # The watchers
//
// A watcher checks blocks, records them, or keeps them in another place:
//
//	a CheckLevel    headers, borders and a quarantine; the address sanitizer is told of the blocks
//	                (checked.go)
//	samples         blocks that package sample makes profiles of (sample.go)
//	guarded blocks  blocks between inaccessible pages (guard.go)
//
// Heap.watched says whether a heap has a watcher. It is set when the heap is made, if the heap has a
// CheckLevel, or if the rate of samples or of guarded blocks is not 0. Otherwise it is set when such
// a rate is set. It is never cleared, because blocks of a watcher may be in use.
//
// The slow paths of a watched heap call allocWatched and freeWatched. The fast paths have no branch
// for a watcher. A heap with a CheckLevel has no cache for a P or a Local, so all its calls take the
// slow path. In any other heap, Malloc takes the slow path for a block that may have to be sampled
// (cacheClass.sampleAt). Free takes it for a sampled or guarded block, because the tag of the block's
// span is not the tag of a class.
//
// The race detector is no watcher: its calls are chosen at compile time
// (race.go).

// watch makes a heap watched if samples or guarded blocks are wanted. The caller holds seize.
func (h *Heap) watch() {
	if sample.CurrentRates() != (sample.Rates{}) {
		h.watched.Store(true)
	}
}

// allocWatched is alloc of a heap that is watched.
//
//go:norace
func (h *Heap) allocWatched(op string, l *Local, size, align int) (p uintptr, was block.State, err error) {
	if h.checked != nil {
		p, err = h.checked.alloc(op, size, align)
		return p, 0, err
	}
	h.mustBeOpen(op)
	if size < 0 {
		panicMisuse(op, 0, "negative size %d", size)
	}
	c, small := alignedClass(size, align)
	if small {
		if p, was = h.allocPicked(l, c); p != 0 {
			h.mustBeUndamaged(p)
			account.Process.Notify()
			raceAcquire(p, was)
			return p, was, nil
		}
	}
	p, was, err = h.allocPlain(op, l, size, align)
	if !small && err == nil {
		h.sampleLarge(p)
	}
	return p, was, err
}

// allocPicked returns the next block of class c if that is to be sampled, guarded, or both, and
// there is memory. Otherwise p is 0.
//
//go:norace
func (h *Heap) allocPicked(l *Local, c uint8) (p uintptr, was block.State) {
	race.Enter()
	defer race.Leave()
	pick := h.pick(l, c)
	if pick.Guard {
		p = h.allocGuarded(c, pick.Profile)
	}
	switch {
	case !pick.Profile:
	case p != 0:
		raceVisible(func() { sample.Add(p, uintptr(sizeclass.Classes[c].Size), &h.samples().holder) })
	default:
		p, was = h.allocSampled(c)
	}
	return p, was
}

// freeWatched is freeSlow of a heap that is watched. It panics as freeSlow does, and if a guarded
// block was written to behind its end or before its start.
//
//go:norace
func (h *Heap) freeWatched(op string, l *Local, p uintptr) {
	if h.checked != nil {
		h.checked.free(op, p)
		return
	}
	h.mustBeOpen(op)
	for !h.freePicked(op, p) && !h.freePlain(l, p) {
		h.mustOwn(op, p) // as in freeSlow
		h.mustBeOpen(op)
	}
	h.mustBeUndamaged(0)
}

// freePicked frees the block at p, which may be any number. It returns false, and changes nothing,
// if p is not a live block of the heap that is guarded, or small and sampled.
//
//go:norace
func (h *Heap) freePicked(op string, p uintptr) bool {
	race.Enter()
	defer race.Leave()
	s := span.Lookup(p)
	if s == nil || atomic.LoadUintptr(&s.Chunk) != 0 {
		return false
	}
	switch kind := s.LoadTag() - h.id<<span.KindBits; {
	case kind == span.KindGuarded:
		return h.freeGuarded(op, s, p)
	case kind >= span.KindSampled && kind < span.KindGuarded:
		return h.freeSampled(s, p)
	}
	return false
}
