package span

import (
	"sync"
	"sync/atomic"
)

// Regions is a set of regions, in which a heap notes where it has spans, so that Each need not look
// at those of others. It only grows. Its methods may be called by several goroutines at a time.
type Regions struct {
	last  atomic.Uintptr // 1 + the number of the region that was added last, or 0
	mu    sync.Mutex
	words []uint64 // a bit for each region, by its number
}

// Add adds the region of base, a span that has no mapping of its own.
//
//go:norace
func (rs *Regions) Add(base uintptr) {
	i := uintptr(Find(base &^ (RegionSize - 1)).Region)
	if rs.last.Load() == i+1 {
		return
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for i/64 >= uintptr(len(rs.words)) {
		rs.words = append(rs.words, 0)
	}
	rs.words[i/64] |= 1 << (i % 64)
	rs.last.Store(i + 1)
}

// has reports whether the region with number i was added.
//
//go:norace
func (rs *Regions) has(i int) bool {
	return i/64 < len(rs.words) && rs.words[i/64]>>(i%64)&1 != 0
}

// Each calls f for the first record of each span of a heap, with no lock held. The heap has added the
// regions of its spans to in. Each may miss spans that are handed out or freed meanwhile.
//
//go:norace
func Each(heap uintptr, in *Regions, f func(*Span)) {
	var bases []uintptr
	pages.mu.Lock()
	in.mu.Lock()
	for i, r := range pages.regions {
		if in.has(i) {
			bases = append(bases, r.base)
		}
	}
	in.mu.Unlock()
	pages.mu.Unlock()
	mappings.mu.Lock()
	for a := mappings.first; a != 0; a = At(a).Next {
		bases = append(bases, At(a).Base)
	}
	mappings.mu.Unlock()
	for _, base := range bases {
		first := Find(base)
		n := uintptr(regionUnits)
		if first.Space != 0 && first.LoadTag()&KindMask == KindLarge {
			n = 1 // the other units of the mapping are behind it
		}
		for i := range n {
			s := At(first.Addr() + i*spanSize)
			if tag := s.LoadTag(); tag>>KindBits == heap && tag&KindMask != KindBody {
				f(s)
			}
		}
	}
}
