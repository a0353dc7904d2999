package span

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
)

// A Census is the number of units in each state, and the idle bytes in those that are handed out.
type Census struct {
	Regions int // their address space is reserved
	Used    int // units handed out, to heaps and to others
	Warm    int // units that hold nothing, and may have memory
	Tails   int // bytes of tails; see region
}

// seen is what the last Walk knew of where spans are.
var seen struct {
	mu      sync.Mutex
	at      int64     // osmem.Counts.Changes when bases was made
	bases   []uintptr // of regions, and then of mappings
	regions int
}

// Walk calls f for the first record of each span of a heap, in no order, and returns the
// state of units. It stops no goroutine, and waits for none that allocates. So spans that
// are handed out or freed meanwhile may be missing, or be there although they are gone, and
// the list of regions may be old. One Walk runs at a time.
//
//go:norace
func Walk(f func(s *Span, tag uintptr)) Census {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	// Regions and mappings come and go with their address space.
	if now := osmem.ReadCounts().Changes; now != seen.at && listBases() {
		seen.at = now
	}
	for _, base := range seen.bases {
		first := Find(base) // stays mapped, also when the span of the mapping is gone
		for i := range uintptr(regionUnits) {
			s := At(first.Addr() + i*spanSize)
			if tag := s.LoadTag(); tag != 0 && tag&KindMask != KindBody {
				f(s, tag)
			}
		}
	}
	return Census{
		Regions: seen.regions,
		Used:    peek(&pages.used),
		Warm:    peek(&pages.warm),
		Tails:   peek(&pages.tails) * partSize,
	}
}

// peek reads a word that others write under a lock. The result may be out of date at once,
// as that of a read under the lock would be a moment later.
//
//go:norace
func peek(n *int) int { return int(atomic.LoadUintptr((*uintptr)(unsafe.Pointer(n)))) } // an int is a word

// listBases lists the regions and the mappings, unless a lock is held: it may be held during
// calls of the system. The caller holds seen.mu.
//
//go:norace
func listBases() bool {
	if !pages.mu.TryLock() {
		return false
	}
	seen.bases = seen.bases[:0]
	for _, r := range pages.regions {
		seen.bases = append(seen.bases, r.base)
	}
	seen.regions = len(seen.bases)
	pages.mu.Unlock()
	if !mappings.mu.TryLock() {
		return false
	}
	defer mappings.mu.Unlock()
	listed := 0
	for a := mappings.first; a != 0; a = At(a).Next {
		seen.bases = append(seen.bases, At(a).Base)
		listed++
	}
	return listed == mappings.n // else one is being made or freed, and the next Walk counts again
}
