package heap

import (
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// class is the part of a heap for one size class, beside the caches. All of it is
// under mu, except for tag and factor.
//
// Summed over the spans of the class, and as long as no free block was written
// to and none was freed twice at the same time:
//
//	carved blocks = NumFree of the spans + blocks in magazines + out
//	blocks in use = out − blocks in caches
type class struct {
	mu sync.Mutex

	tag    uintptr // of the class's spans; written once
	factor uint64  // block.FactorOf(tag)

	// spans is the first of the spans that have blocks to give: blocks that
	// came back, or blocks that are still to be carved.
	spans uintptr

	depot // as caches gave them back, for the next cache that needs one

	// If blocks of the class are alone in their spans, one span whose block is free may stay in the list.
	counted atomic.Bool // by span.Blocks, until the tick finds no such span; also read without the lock
	rested  bool        // it was there at the last tick

	out     int64  // blocks given to caches and callers, less those that came back
	mallocs uint64 // calls of Malloc that were served past a cache

	_ [40]byte // two classes do not share a cache line
}

// get returns a block, its state, and more blocks for a cache: about want in all. They are a
// magazine, blocks that came back to a span, blocks that it carves, or blocks of a new span.
// Where blocks were written to it loses them, and takes others.
//
//go:norace
func (cl *class) get(h *Heap, c uint8, want int) (p uintptr, was block.State, more magazine, err error) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if h.closed.Load() {
		return 0, 0, magazine{}, errDestroyed
	}
	for {
		var got magazine
		if cl.numFull > 0 {
			got = cl.takeFull(c)
		} else {
			if cl.spans == 0 {
				if err := cl.grow(h, c); err != nil {
					return 0, 0, magazine{}, err
				}
			}
			s := span.At(cl.spans)
			cl.rested = false
			if s.NumFree > 0 {
				if uint32(s.Runs) >= max(leastRuns, s.NumFree-s.NumFree/runsShare) && h.account.Held() >= leastHeld {
					cl.order(s)
				}
				got = cl.takeFree(h, s, want)
			} else {
				got = cl.carve(h, s, want)
			}
			if s.NumFree == 0 && s.Carved == s.Blocks {
				cl.unlist(s)
			}
			if got.n == 0 {
				continue
			}
		}
		b := block.At(got.list)
		if !b.IsCached(got.list, cl.factor) {
			h.noteDamage(got.list)
			continue
		}
		cl.out += int64(got.n)
		cl.mallocs++
		b.Canary = 0
		return got.list, block.StateOf(b.Link), magazine{block.NextOf(b.Link), got.n - 1}, nil
	}
}

// takeFree takes at most n of the blocks that came back to s. It takes none if
// one of them was written to, or is in use because it was freed twice; then all of
// them are lost, and with them the span, which never gets all its blocks back.
//
//go:norace
func (cl *class) takeFree(h *Heap, s *span.Span, n int) magazine {
	taken := magazine{list: s.Free}
	for p := s.Free; ; {
		b := block.At(p)
		if !b.IsSorted(p, cl.factor) {
			h.noteDamage(p)
			s.Free, s.NumFree = 0, 0
			return magazine{}
		}
		b.Canary ^= block.SortedBit
		next := block.NextOf(b.Link)
		taken.n++
		if next == 0 || taken.n == n {
			b.SetCached(p, 0, block.StateOf(b.Link), cl.factor)
			s.Free = next
			s.NumFree -= uint32(taken.n)
			if next == 0 {
				if s.NumFree != 0 {
					h.noteTwice(taken.list)
				}
				s.NumFree, s.Runs = 0, 0
			}
			return taken
		}
		p = next
	}
}

// order puts the blocks that came back to s in the order of their addresses. Where a program frees at random
// among many spans, each block of the list is a cache miss that begins when the one before it has ended. order
// looks at all blocks of s, one behind the other, which the processor reads in advance.
//
// It changes nothing if the blocks with the canary of the list are not as many as the list has: takeFree finds
// out why. Of a block that is in use it reads what the user has written.
//
//go:norace
func (cl *class) order(s *span.Span) {
	s.Runs = 0
	n := uint32(0)
	for i := range uintptr(s.Carved) {
		if p := s.Base + i*s.Size; block.At(p).IsSorted(p, cl.factor) {
			n++
		}
	}
	if n != s.NumFree {
		return
	}
	next := uintptr(0)
	for i := int(s.Carved) - 1; i >= 0; i-- {
		p := s.Base + uintptr(i)*s.Size
		if b := block.At(p); b.IsSorted(p, cl.factor) {
			b.SetSorted(p, next, block.StateOf(b.Link), cl.factor)
			next = p
		}
	}
	s.Free = next
}

// A list is worth to be ordered from so many runs on, and if all but one in runsShare of its blocks are a run each, in a heap of
// so many bytes: less lies in the second cache of a processor. With half of the blocks sh6bench took 1.06 of the time.
const (
	leastRuns = 16
	runsShare = 8
	leastHeld = 2 << 20
)

const warmCarved = 8

// carve makes at most n new blocks of s, and none that begins behind the page that the first of them ends in, so that
// the heap touches no page before it needs it. In warm memory it makes warmCarved, also behind the page. More small ones
// would leave the processor's first cache before they are used.
//
//go:norace
func (cl *class) carve(h *Heap, s *span.Span, n int) magazine {
	first := uintptr(s.Carved)
	start := s.Base + first*s.Size
	made, state := min(n, int(s.Blocks-s.Carved)), block.New
	inPage := int((osmem.RoundPage(start+s.Size) - start + s.Size - 1) / s.Size)
	if s.Fresh {
		state |= block.Zeroed
	} else {
		inPage = max(inPage, warmCarved)
	}
	made = min(made, inPage)
	next := uintptr(0)
	for i := made - 1; i >= 0; i-- {
		p := start + uintptr(i)*s.Size
		block.At(p).SetCached(p, next, state, cl.factor)
		next = p
	}
	// Not before the blocks have their canaries: Free relies on it.
	atomic.StoreUint32(&s.Carved, s.Carved+uint32(made))
	return magazine{next, made}
}

// lose takes n blocks that were free in a cache out of the counts.
//
//go:norace
func (cl *class) lose(n int) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.out -= int64(n)
}
