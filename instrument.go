package cheap

import (
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/span"
)

// instrumented says whether this build watches every block: for the race
// detector, or for writes to free blocks. Otherwise nothing here is compiled in.
const instrumented = race.On || poisoning

// handedOut is called when the block at p has been taken off all lists and its
// caller does not have it yet. With fresh, it is zero behind its first 16
// bytes, and has to stay so.
//
//go:norace
func handedOut(p uintptr, fresh bool) {
	race.Acquire(p)
	if poisoning {
		checkPoison(p, fresh)
	}
}

// freeing is called when p, which may be anything, is about to be freed. What
// the caller did to the block happened before what its next owner does.
//
//go:norace
func (h *Heap) freeing(p uintptr) {
	if h.closed.Load() || h.judge(p) != live {
		return
	}
	race.Release(p)
	if s := span.Find(p); poisoning && s.LoadTag()&span.KindMask < span.KindBody {
		poison(p, s.Size)
	}
}
