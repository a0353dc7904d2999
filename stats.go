package cheap

import (
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/percpu"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/sizeclass"
)

// Stats is what a heap counts. The numbers are exact when nobody uses the heap
// meanwhile; otherwise each was true of each of its parts at some moment of
// the call.
type Stats struct {
	Blocks int64 // blocks in use
	Bytes  int64 // their usable bytes

	Mallocs int64 // blocks handed out so far
	Frees   int64 // blocks that came back

	Held   int64 // bytes held from the operating system, metadata included
	Limit  int64 // Options.Limit
	Cached int64 // bytes of free blocks in caches, those of Locals included

	// CacheMax is the most that one cache may hold, in bytes, and Caches how
	// many there are.
	CacheMax int64
	Caches   int
}

// tally is a sum over caches.
type tally struct {
	caches  int
	mallocs uint64                 // blocks that they handed out
	cached  [sizeclass.Count]int64 // blocks
}

// add counts what k has, which others may be using.
//
//go:norace
func (t *tally) add(k *cache) {
	t.caches++
	t.mallocs += k.mallocs()
	for i := range k.classes {
		t.cached[i] += int64(k.classes[i].cached())
	}
}

// mallocs returns how many blocks k has handed out.
//
//go:norace
func (k *cache) mallocs() (n uint64) {
	for i := range k.classes {
		n += atomic.LoadUint64(&k.classes[i].takes)
	}
	return n
}

// Stats returns the heap's counts.
//
//go:norace
func (h *Heap) Stats() Stats {
	h.check("Heap.Stats")
	if race.On {
		race.Enter()
		defer race.Leave()
	}
	h.seize.Lock()
	defer h.seize.Unlock()
	return h.count()
}

// count counts what is in the caches that are installed and in the classes. The
// caller holds seize.
//
//go:norace
func (h *Heap) count() Stats {
	t := h.gone
	for place := range percpu.Max {
		if s := h.caches.Installed(place); s != 0 {
			t.add(cacheAt(s))
		}
	}
	for l := h.locals; l != nil; l = l.next {
		t.add(cacheAt(l.slot))
	}
	s := Stats{
		Held:     h.account.Held(),
		Limit:    h.limit,
		CacheMax: sizeclass.CacheBytes,
		Caches:   t.caches,
		Mallocs:  int64(t.mallocs) + h.large.mallocs.Load(),
	}
	for i := range h.classes {
		s.Mallocs += int64(h.classes[i].read(&s, i, t.cached[i]))
	}
	s.Blocks += h.large.blocks.Load()
	s.Bytes += h.large.bytes.Load()
	s.Frees = s.Mallocs - s.Blocks
	return s
}

// read adds what a class has given out to s, of which some is cached, and
// returns how many mallocs it has served.
//
//go:norace
func (cl *class) read(s *Stats, c int, cached int64) uint64 {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	size := int64(sizeclass.Classes[c].Size)
	s.Blocks += cl.out - cached
	s.Bytes += (cl.out - cached) * size
	s.Cached += cached * size
	return cl.mallocs
}

// live counts the blocks in use, for the account.
//
//go:norace
func (h *Heap) live() (blocks, bytes int64) {
	if race.On {
		race.Enter()
		defer race.Leave()
	}
	h.seize.Lock()
	defer h.seize.Unlock()
	s := h.count()
	return s.Blocks, s.Bytes
}
