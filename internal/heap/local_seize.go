package heap

import (
	"iter"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// A seizure is a Local whose cache seizeLocals is about to take. The pointer l keeps the Local
// reachable meanwhile.
type seizure struct {
	c     *localCache
	l     *Local
	round uint64 // of c, as step 1 has left it
}

// seizures counts the calls of seizeLocals.
var seizures atomic.Uint64

// seizeLocals takes the caches, with the blocks in them, of those Locals of all heaps in all that
// pick chooses. pick is called with Heap.seize held. A Local whose goroutine uses its cache at the
// moment keeps it.
//
//go:norace
func seizeLocals(all iter.Seq[*Heap], pick func(*localCache) bool) {
	round := seizures.Add(1)
	var picked []seizure
	for h := range all {
		picked = h.divertLocals(picked, round, pick)
	}
	if len(picked) == 0 {
		return
	}
	percpu.Stop()
	rest := picked[:0]
	for _, s := range picked {
		if !s.l.in {
			rest = append(rest, s)
		}
	}
	if len(rest) == 0 {
		return
	}
	percpu.Stop()
	for _, s := range rest {
		s.c.dropOf(s.round)
		runtime.KeepAlive(s.l)
	}
	span.Decay()
}

// divertLocals is the first step of seizeLocals for one heap. It appends the Locals that pick has
// chosen to picked.
//
//go:norace
func (h *Heap) divertLocals(picked []seizure, round uint64, pick func(*localCache) bool) []seizure {
	race.Enter()
	defer race.Leave()
	h.seize.Lock()
	defer h.seize.Unlock()
	for c := h.locals; c != nil; c = c.next {
		if c.slot == 0 || !pick(c) {
			continue
		}
		if l := c.local.Value(); l != nil {
			if c.round == 0 {
				c.round = round
			}
			atomic.StorePointer((*unsafe.Pointer)(unsafe.Pointer(&l.k)), unsafe.Pointer(&noCache))
			picked = append(picked, seizure{c, l, c.round})
		}
	}
	return picked
}

// dropOf is the last step of a call of seizeLocals that has noted round.
//
//go:norace
func (c *localCache) dropOf(round uint64) {
	race.Enter()
	defer race.Leave()
	c.h.seize.Lock()
	defer c.h.seize.Unlock()
	if c.round == round {
		c.drop()
	}
}

// anyLocal picks every Local.
func anyLocal(*localCache) bool { return true }

// HasLocals reports whether h has a Local that was neither destroyed nor collected. It is for tests.
func (h *Heap) HasLocals() bool {
	h.seize.Lock()
	defer h.seize.Unlock()
	return h.locals != nil
}
