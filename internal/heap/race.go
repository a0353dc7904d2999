package heap

import (
	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// raceAcquire is called when the block at p was taken off all lists and the caller
// does not have it yet. was is the state of the free block. p may be 0.
//
//go:norace
func raceAcquire(p uintptr, was block.State) {
	if race.Told && p != 0 {
		acquire(p, was)
	}
}

// acquire is what raceAcquire tells the race detector.
//
//go:norace
func acquire(p uintptr, was block.State) {
	race.Acquire(p)
	if was&block.New != 0 {
		// What goroutines did to blocks of another size at this place happened
		// before, too.
		eachUnit(p, race.Acquire)
	}
}

// raceRelease is called when p, which may have any value, is about to be freed. What
// the caller did to the block happened before what its next owner does.
//
//go:norace
func (h *Heap) raceRelease(p uintptr) {
	if race.Told {
		h.release(p)
	}
}

// release is what raceRelease tells the race detector.
//
//go:norace
func (h *Heap) release(p uintptr) {
	if _, v := judge(p, h.id); !h.closed.Load() && v == blockLive {
		race.Release(p)
		eachUnit(p, race.Release)
	}
}

// eachUnit calls f with one address for each unit that the block at p is in. No
// block starts at that address.
//
//go:norace
func eachUnit(p uintptr, f func(uintptr)) {
	const token = 8
	unit := p &^ (span.UnitSize - 1)
	for end := p + span.Find(p).Size; unit < end; unit += span.UnitSize {
		f(unit + token)
	}
}

// raceVisible calls f, which may panic, between Enter and Leave of package race. The detector
// sees what f does. Else it would miss the locks of package fmt, and report that two
// goroutines make their messages at the same time.
func raceVisible(f func()) {
	race.Leave()
	defer race.Enter()
	f()
}
