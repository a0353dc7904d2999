package cheap

import (
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// A batch is a list of n free blocks of one class, which moves as a whole. (In
// package own a batch is something else: owners that share a registration.)
type batch struct {
	list uintptr
	n    int
}

// batches are those that a class keeps whole, for the next cache that needs one. Their
// blocks are not in the lists of their spans, so a span that has one of them does not go
// back. A class may keep a few until they are asked for, and more for a while: wholeMost
// bounds how many bytes they have, span.KeepSpare bounds it for all heaps together, and
// each tick of package span sorts those that no cache has asked for since the tick before.
//
// All of this is under the lock of the class.
type batches struct {
	whole    []batch // the last one is the next to go
	numWhole int32   // how many there are; also read without the lock
	unasked  int32   // the first so many were there at the last tick already
}

const (
	wholeLeast  = 4                 // so many batches stay for any time
	wholeMost   = 4 * span.UnitSize // from so many bytes on a class keeps no more
	wholeBlocks = 4                 // a batch of fewer blocks is sorted
)

// put takes a batch of class c back.
//
//go:norace
func (cl *class) put(h *Heap, c uint8, b batch) {
	cl.mu.Lock()
	more := cl.numWhole >= wholeLeast
	if b.n < wholeBlocks || h.closed.Load() || more && !cl.mayKeep(c, b) {
		cl.mu.Unlock()
		cl.sort(h, b)
		return
	}
	if int(cl.numWhole) == len(cl.whole) {
		cl.whole = append(cl.whole, b)
	} else {
		cl.whole[cl.numWhole] = b
	}
	cl.numWhole++
	cl.out -= int64(b.n)
	cl.mu.Unlock()
	if more {
		span.Decay()
	}
}

// mayKeep reports whether the class, which is c, may keep b beside the batches that it has,
// and counts b as spare if it may.
//
//go:norace
func (cl *class) mayKeep(c uint8, b batch) bool {
	return int64(cl.numWhole)*b.bytes(c) < wholeMost && span.KeepSpare(b.bytes(c))
}

// bytes returns how many bytes the blocks of b, of class c, have.
//
//go:norace
func (b batch) bytes(c uint8) int64 { return int64(b.n) * int64(sizeclass.Classes[c].Size) }

// takeWhole takes one of the batches of the class, which is c. There is one, and the caller
// holds the lock.
//
//go:norace
func (cl *class) takeWhole(c uint8) batch {
	cl.numWhole--
	cl.unasked = min(cl.unasked, cl.numWhole)
	b := cl.whole[cl.numWhole]
	if cl.numWhole >= wholeLeast {
		span.DropSpare(b.bytes(c))
	}
	return b
}

// sortBatches gives the blocks of the batches of class c back to their spans.
//
//go:norace
func (cl *class) sortBatches(h *Heap, c uint8) {
	// Whatever the caller knows of was written before the call. A lock for each class
	// would be what it costs a goroutine to be refused.
	for atomic.LoadInt32(&cl.numWhole) != 0 {
		cl.mu.Lock()
		if cl.numWhole == 0 {
			cl.mu.Unlock()
			return
		}
		b := cl.takeWhole(c)
		cl.out += int64(b.n) // as put left it; sort subtracts it again
		cl.mu.Unlock()
		cl.sort(h, b)
	}
}

// sortUnasked is sortBatches of those batches that were there at the last call, and that no
// cache has asked for since, but for the first wholeLeast.
//
//go:norace
func (cl *class) sortUnasked(h *Heap, c uint8) {
	for atomic.LoadInt32(&cl.numWhole) > wholeLeast {
		cl.mu.Lock()
		if cl.unasked <= wholeLeast {
			cl.unasked = cl.numWhole
			cl.mu.Unlock()
			return
		}
		cl.unasked--
		cl.numWhole--
		b := cl.whole[cl.unasked]
		cl.whole[cl.unasked] = cl.whole[cl.numWhole]
		span.DropSpare(b.bytes(c))
		cl.out += int64(b.n) // as in sortBatches
		cl.mu.Unlock()
		cl.sort(h, b)
	}
}

// sortBatches gives the blocks of all batches back to their spans.
//
//go:norace
func (h *Heap) sortBatches() {
	for c := range h.classes {
		h.classes[c].sortBatches(h, uint8(c))
	}
}

// sortUnasked sorts the batches that no cache has asked for since the last call. It may run
// in a goroutine of the runtime.
//
//go:norace
func (h *Heap) sortUnasked() {
	if race.Told {
		race.Enter()
		defer race.Leave()
	}
	for c := range h.classes {
		h.classes[c].sortUnasked(h, uint8(c))
	}
}
