package cheap

import (
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/span"
)

// instrumented says whether this build watches every block: for the race
// detector, or for writes to free blocks. Otherwise nothing here is compiled in.
const instrumented = race.On || poisoning

// handedOut is called when the block at p has been taken off all lists and its
// caller does not have it yet. was is what its mark said.
//
//go:norace
func handedOut(p uintptr, was uint64) {
	race.Acquire(p)
	if race.On && was&carved != 0 {
		// What was done to blocks of another size that lay here comes first, too.
		eachUnit(p, race.Acquire)
	}
	if poisoning {
		checkPoison(p, was&zeroed != 0)
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
	if race.On {
		eachUnit(p, race.Release)
	}
	if s := span.Find(p); poisoning && s.LoadTag()&span.KindMask < span.KindBody {
		poison(p, s.Size)
	}
}

// eachUnit calls f with an address for each unit that the block at p lies in, at
// which no block starts.
//
//go:norace
func eachUnit(p uintptr, f func(uintptr)) {
	const token = 8
	unit := p &^ (span.UnitSize - 1)
	for end := p + span.Find(p).Size; unit < end; unit += span.UnitSize {
		f(unit + token)
	}
}
