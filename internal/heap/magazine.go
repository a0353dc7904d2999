package heap

import (
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// The magazines, the depot in which a class keeps some of them, and for how long it keeps them:
// bounds by number, by bytes and by age.

// A magazine is a list of n free blocks of one class, which moves as a whole between
// caches and classes. Magazines and depots are those of Bonwick and Adams, "Magazines and
// Vmem", 2001.
type magazine struct {
	list uintptr
	n    int
}

// A depot has the magazines that a class keeps whole, for the next cache that needs one. Their
// blocks are not in the lists of their spans, so these spans do not go back. The first
// leastFull magazines stay until a cache takes them. Others stay for a while: mostFullBytes
// bounds their bytes in one class, span.Magazines bounds them in all heaps together, and each
// tick of package span sorts the magazines that no cache has taken since the tick before.
//
// All of this is under the lock of the class.
type depot struct {
	full    []magazine // the last one is the next to go
	numFull int32      // len(full); also read without the lock
	unasked int32      // full[:unasked] were there at the last tick
}

const (
	leastFull     = 4                 // magazines that stay for any time
	mostFullBytes = 4 * span.UnitSize // a class with that many bytes keeps no more magazines
	leastBlocks   = 4                 // a magazine of fewer blocks is sorted
)

// put takes a magazine of class c back.
//
//go:norace
func (cl *class) put(h *Heap, c uint8, b magazine) {
	if b.n < leastBlocks {
		cl.sort(h, b)
		return
	}
	cl.mu.Lock()
	more := cl.numFull >= leastFull
	if h.closed.Load() || more && !cl.mayKeep(c, b) {
		cl.mu.Unlock()
		cl.sort(h, b)
		return
	}
	if int(cl.numFull) == len(cl.full) {
		cl.full = append(cl.full, b)
	} else {
		cl.full[cl.numFull] = b
	}
	cl.numFull++
	cl.out -= int64(b.n)
	cl.mu.Unlock()
	if more {
		span.Decay()
	}
}

// mayKeep reports whether the class, which is c, may keep b in addition to the magazines that
// it has. If it may, mayKeep counts b as spare.
//
//go:norace
func (cl *class) mayKeep(c uint8, b magazine) bool {
	return int64(cl.numFull)*b.bytes(c) < mostFullBytes && span.Magazines.Keep(b.bytes(c))
}

// bytes returns the size of all blocks of b, which is of class c.
//
//go:norace
func (b magazine) bytes(c uint8) int64 { return int64(b.n) * int64(sizeclass.Classes[c].Size) }

// takeFull takes one of the magazines of the class, which is c. There is one, and the caller
// holds the lock.
//
//go:norace
func (cl *class) takeFull(c uint8) magazine {
	cl.numFull--
	cl.unasked = min(cl.unasked, cl.numFull)
	b := cl.full[cl.numFull]
	if cl.numFull >= leastFull {
		span.Magazines.Drop(b.bytes(c))
	}
	return b
}

// sortMagazines gives the blocks of the magazines of class c back to their spans.
//
//go:norace
func (cl *class) sortMagazines(h *Heap, c uint8) {
	if cl.counted.Load() {
		cl.dropKept(h, c, false)
	}
	// counted and numFull are read without the lock: what the caller must find was
	// put before the call. A lock for each class would take most of the time of a
	// request that is refused.
	for atomic.LoadInt32(&cl.numFull) != 0 {
		cl.mu.Lock()
		if cl.numFull == 0 || h.closed.Load() {
			cl.mu.Unlock()
			return
		}
		released := cl.sortHeld(h, cl.takeFull(c)) // under one lock, or Stats would miss these blocks
		cl.mu.Unlock()
		if released {
			span.Decay()
		}
	}
}

// sortUnasked gives back the blocks of those magazines that were there at the last call, and
// that no cache has taken since. The first leastFull magazines stay.
//
//go:norace
func (cl *class) sortUnasked(h *Heap, c uint8) {
	if cl.counted.Load() {
		cl.dropKept(h, c, true)
	}
	for atomic.LoadInt32(&cl.numFull) > leastFull {
		cl.mu.Lock()
		if cl.unasked <= leastFull || h.closed.Load() {
			cl.unasked = cl.numFull
			cl.mu.Unlock()
			return
		}
		cl.unasked--
		cl.numFull--
		b := cl.full[cl.unasked]
		cl.full[cl.unasked] = cl.full[cl.numFull]
		span.Magazines.Drop(b.bytes(c))
		released := cl.sortHeld(h, b)
		cl.mu.Unlock()
		if released {
			span.Decay()
		}
	}
}

// sortMagazines gives the blocks of all magazines back to their spans.
//
//go:norace
func (h *Heap) sortMagazines() {
	for c := range h.classes {
		h.classes[c].sortMagazines(h, uint8(c))
	}
}

// sortUnasked sorts the magazines that no cache has taken since the last call. It may run in
// a goroutine of the runtime.
//
//go:norace
func (h *Heap) sortUnasked() {
	race.Enter()
	for c := range h.classes {
		h.classes[c].sortUnasked(h, uint8(c))
	}
	race.Leave()
}
