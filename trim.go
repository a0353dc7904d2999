package cheap

import (
	"runtime"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/percpu"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

func init() {
	account.SetIdle(
		func() int64 { return int64(span.Idle()) },
		func(keep int64) { span.TrimTo(uintptr(keep)) },
	)
}

// Trim empties all caches of the heap and gives the memory of everything that
// is idle back to the operating system: at once, whereas by itself that
// happens some time after it became idle; see [SetDecay]. A Local that is open
// empties its cache when it next runs out of blocks or room.
func (h *Heap) Trim() {
	h.check("Heap.Trim")
	dropStranded()
	written := h.reclaim()
	span.TrimAll()
	if written != 0 {
		panicWritten(written)
	}
}

// reclaim gives all spans back that have no block in use. It returns the address
// of a free block that somebody has written to, or 0.
//
//go:norace
func (h *Heap) reclaim() (written uintptr) {
	if race.On {
		race.Enter()
		defer race.Leave()
	}
	written = h.emptyCaches()
	for i := range h.classes {
		written = max(written, h.classes[i].sortBatches(h))
	}
	return written
}

// emptyCaches empties all caches, whoever uses them, and asks the Locals to
// empty theirs. It returns what empty does.
//
//go:norace
func (h *Heap) emptyCaches() (written uintptr) {
	h.seize.Lock()
	defer h.seize.Unlock()
	for l := h.locals; l != nil; l = l.next {
		l.flush.Store(true)
	}
	seized := h.caches.Seize(func(int) bool { return true })
	for _, s := range seized {
		written = max(written, h.empty(cacheAt(s.Slot)))
	}
	h.caches.Restore(seized)
	return written
}

// dropIdle gives up the caches of Ps that do not run because GOMAXPROCS has been
// lowered.
//
//go:norace
func (h *Heap) dropIdle() {
	if places := int(h.places.Load()); places == 0 || !percpu.Beyond(places-1) {
		return
	}
	h.seize.Lock()
	defer h.seize.Unlock()
	most := 0
	seized := h.caches.Seize(func(place int) bool {
		if percpu.Beyond(place) {
			return true
		}
		most = place + 1
		return false
	})
	h.places.Store(int32(most))
	percpu.Drop(seized)
	for _, s := range seized {
		h.gone.mallocs += cacheAt(s.Slot).mallocs()
		h.account.Give(cacheBytes)
		// This runs in goroutines that have nothing to do with whoever wrote to
		// a free block, and that nobody can guard: what is lost is lost.
		h.empty(cacheAt(s.Slot))
		freeCache(s.Slot)
	}
}

// Destroy gives everything that the heap holds back to the operating system.
// If there are live blocks it gives back nothing and returns a [LiveError]; the
// blocks, and the heap, stay usable. A second Destroy returns [ErrDestroyed].
//
// Destroy must not run at the same time as other methods of the heap. If it
// does, those may panic, but other heaps come to no harm.
func (h *Heap) Destroy() error { return h.destroy("Heap.Destroy", false) }

// DestroyAll is Destroy that frees live blocks, too. They must not be used any
// more, by Go nor by C.
func (h *Heap) DestroyAll() { _ = h.destroy("Heap.DestroyAll", true) }

func (h *Heap) destroy(op string, all bool) error {
	if race.On && all {
		// Live blocks are as good as freed by whoever destroys the heap.
		span.Each(h.id, func(s *span.Span) { eachUnit(s.Base, race.Release) })
	}
	err := h.destroyQuietly(op, all)
	if err == nil {
		h.account.Close()
		forget(h)
	}
	return err
}

// destroyQuietly is destroy without the registries of heaps and accounts.
//
//go:norace
func (h *Heap) destroyQuietly(op string, all bool) error {
	if race.On {
		race.Enter()
		defer race.Leave()
	}
	if h.id == 0 {
		h.check(op)
	}
	h.seize.Lock()
	defer h.seize.Unlock()
	if h.closed.Load() {
		return ErrDestroyed
	}
	seized := h.caches.Seize(func(int) bool { return true })
	if !all {
		var written uintptr
		for _, s := range seized {
			written = max(written, h.empty(cacheAt(s.Slot)))
		}
		s := h.count()
		if s.Blocks > 0 || written != 0 {
			h.caches.Restore(seized)
		}
		if written != 0 {
			panicWritten(written)
		}
		if s.Blocks > 0 {
			return &LiveError{Op: op, Blocks: int(s.Blocks), Bytes: s.Bytes}
		}
	}
	h.closed.Store(true)
	// Whoever is between begin and end may wait for seize.
	h.seize.Unlock()
	for h.busy.Load() != 0 {
		runtime.Gosched()
	}
	h.seize.Lock()
	for i := range h.classes {
		h.classes[i].close()
	}
	percpu.Drop(seized)
	for _, s := range seized {
		h.gone.mallocs += cacheAt(s.Slot).mallocs()
		freeCache(s.Slot)
	}
	// A Local is not pinned, so whoever uses one at this moment cannot be
	// waited for. It will find the heap closed; until then the spans must stay
	// readable, and must not become another heap's.
	keep := h.locals != nil
	h.large.mu.Lock()
	span.Each(h.id, func(s *span.Span) { h.releaseAny(s, keep) })
	h.large.mu.Unlock()
	span.Decay()
	h.large.blocks.Store(0)
	h.large.bytes.Store(0)
	return nil
}

// releaseAny gives back a span of a heap that is being destroyed. With keep its
// address space is not used again.
//
//go:norace
func (h *Heap) releaseAny(s *span.Span, keep bool) {
	tag := s.LoadTag()
	if tag&span.KindMask == span.KindLarge {
		h.dropLarge(s)
		return
	}
	base, bytes := s.Base, sizeclass.Classes[tag&span.KindMask].SpanBytes()
	retire(s)
	if keep {
		span.Abandon(base, bytes)
	} else {
		span.FreeCarved(base)
	}
}
