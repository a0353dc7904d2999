package cheap

import (
	"sync"
	"time"

	"github.com/cheapgo/cheap/internal/span"
)

// heaps is the set of all heaps that have not been destroyed.
var heaps = struct {
	mu sync.Mutex
	m  map[*Heap]bool
}{m: map[*Heap]bool{}}

func init() { span.OnTick(dropIdle) }

func remember(h *Heap) {
	heaps.mu.Lock()
	defer heaps.mu.Unlock()
	heaps.m[h] = true
}

func forget(h *Heap) {
	heaps.mu.Lock()
	defer heaps.mu.Unlock()
	delete(heaps.m, h)
}

// dropIdle gives up, in all heaps, the caches of Ps that do not run any more, and
// their pooled arenas.
func dropIdle() {
	dropStranded()
	heaps.mu.Lock()
	all := make([]*Heap, 0, len(heaps.m))
	for h := range heaps.m {
		all = append(all, h)
	}
	heaps.mu.Unlock()
	for _, h := range all {
		h.dropIdle()
	}
}

// DefaultDecay is how long memory stays idle before it is given back to the
// operating system, unless [SetDecay] says otherwise.
const DefaultDecay = span.DefaultDecay

// SetDecay sets how long memory that no block lies in is kept for reuse before
// it is given back to the operating system, for all heaps of the program, and
// returns what it was. It is given back when between half of d and d have
// passed. A d of 0 gives it back at once, which makes each reuse pay for fresh
// pages; a negative d keeps it until [Heap.Trim].
func SetDecay(d time.Duration) time.Duration { return span.SetDecay(d) }
