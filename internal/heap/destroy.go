package heap

import (
	"runtime"

	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// Destroy is cheap.Heap.Destroy.
func (h *Heap) Destroy() error { return h.destroy("Heap.Destroy", false) }

// DestroyAll is cheap.Heap.DestroyAll.
func (h *Heap) DestroyAll() error { return h.destroy("Heap.DestroyAll", true) }

func (h *Heap) destroy(op string, all bool) error {
	if h == std {
		panicMisuse(op, 0, "the default heap cannot be destroyed, because other packages may use it; make a heap with NewHeap")
	}
	if !h.closed.Load() {
		h.mustBeUndamagedAll(op)
	}
	if race.Told && (all || h.checked != nil) {
		// The goroutine that destroys the heap frees the live blocks, and has read them; with a
		// CheckLevel it has read all blocks.
		span.Each(h.id, &h.regions, func(s *span.Span) { eachUnit(s.Base, race.Release) })
	}
	err := h.destroyQuietly(op, all)
	if err == nil {
		h.account.Close()
		heaps.Delete(h)
	}
	return err
}

// destroyQuietly is destroy without the registries of heaps and accounts.
//
//go:norace
func (h *Heap) destroyQuietly(op string, all bool) error {
	race.Enter()
	defer race.Leave()
	if h.id == 0 {
		raceVisible(func() { h.panicNotOpen(op) })
	}
	h.seize.Lock()
	defer h.seize.Unlock()
	if h.closed.Load() {
		return errDestroyed
	}
	seized := h.caches.Seize(func(int) bool { return true })
	if !all || h.checked != nil && !h.checked.reported {
		if err := h.lookAtBlocks(op, all, seized); err != nil {
			return err
		}
	}
	h.closed.Store(true)
	// A goroutine between begin and end may wait for seize.
	h.seize.Unlock()
	for h.busy.Load() != 0 {
		runtime.Gosched()
	}
	raceVisible(h.checked.end)
	h.seize.Lock()
	for i := range h.classes {
		h.classes[i].forgetAll()
	}
	h.forgetSamples()
	percpu.Drop(seized)
	for _, s := range seized {
		h.gone.keep(cacheAt(s.Slot))
		freeCache(s.Slot)
	}
	h.noteGone()
	// A goroutine in a method of a Local is not pinned and cannot be waited for.
	// It will find the heap closed; until then the spans must stay readable, and
	// must not become another heap's. A Local that has lost its cache has no block of them.
	keep := false
	for c := h.locals; c != nil; c = c.next {
		keep = keep || c.slot != 0
		c.untick()
	}
	h.large.mu.Lock()
	h.dropSpares()
	h.large.spares.uncount()
	span.Each(h.id, &h.regions, func(s *span.Span) { h.releaseAny(s, keep) })
	h.large.blocks, h.large.bytes = 0, 0
	h.large.mu.Unlock()
	span.Decay()
	return nil
}

// lookAtBlocks returns an error if blocks are in use, unless all is set, and panics if a free block
// was written to. The heap stays as it is then, and the caches that Destroy has seized are back
// with their Ps. The caller holds seize.
//
//go:norace
func (h *Heap) lookAtBlocks(op string, all bool, seized []percpu.Seized) error {
	for _, s := range seized {
		h.empty(cacheAt(s.Slot))
	}
	h.sortMagazines() // which checks their canaries
	s := h.count()
	live := s.Blocks > 0 && !all
	damaged := h.damaged.Load() != nil
	if live || damaged {
		h.caches.Restore(seized)
	}
	if damaged && h.checked != nil {
		h.checked.reported = true // as in mustBeUndamagedAll
	}
	raceVisible(func() { h.mustBeUndamaged(0) })
	if live {
		return errs.Live(op, s.Blocks, s.Bytes)
	}
	return nil
}

// releaseAny gives back a span of a heap that is being destroyed. If keep is true
// the address space of the span is not used again.
//
//go:norace
func (h *Heap) releaseAny(s *span.Span, keep bool) {
	forgetPoison(s)
	tag := s.LoadTag()
	if tag&span.KindMask == span.KindLarge {
		h.dropLarge(s)
		return
	}
	if tag&span.KindMask == span.KindGuarded {
		h.dropGuarded(s)
		return
	}
	base, bytes := s.Base, sizeclass.Classes[tag&span.KindMask&^span.KindSampled].SpanBytes()
	retire(s)
	if keep {
		span.Abandon(base, bytes)
	} else {
		span.FreeCarved(base)
	}
}
