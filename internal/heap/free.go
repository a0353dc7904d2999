package heap

import (
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// # A free that misses the cache
//
// Free comes here if the list of the cache is full, for blocks that no cache takes, and for wrong
// addresses:
//
//  1. Nil is ignored.
//  2. freeSlow: in a watched heap, freeWatched (watched.go) goes on with step 3 if no watcher
//     has the block.
//  3. freePlain: the record of the unit has the class of the block. A large block goes to freeLarge
//     (large.go). If caches do not hold blocks of the class, the block goes to the class.
//  4. The full list of the cache becomes its spare magazine. The block is the first of a new list.
//  5. class.put takes the previous spare magazine. It keeps some magazines whole, and sorts the blocks
//     of the others into their spans. A span that has all its blocks back returns to package span.
//  6. If p is not a live block of the heap, freeSlow panics, and the panic says what p is.
//  7. mustBeUndamaged panics if a free block was found that was written to.

// freeSlow is Free if the cache has no room, if there is no cache, and for
// mistakes. The cache is that of l or, if l is nil, that of the P.
//
//go:noinline
//go:norace
func (h *Heap) freeSlow(op string, l *Local, p uintptr) {
	if p == 0 { // step 1
		return
	}
	for !h.watched.Load() { // step 2
		h.mustBeOpen(op)
		if h.freePlain(l, p) {
			h.mustBeUndamaged(0) // step 7
			return
		}
		// Step 6. It returns if the block was freed and allocated again meanwhile, which may have been
		// after the heap became watched.
		h.mustOwn(op, p)
	}
	h.freeWatched(op, l, p)
}

// freePlain frees the block at p, which may be any number. It returns false, and changes nothing,
// if p is not a live block of the heap, or if a watcher has the block. It does not panic.
//
//go:norace
func (h *Heap) freePlain(l *Local, p uintptr) (freed bool) {
	s := span.Lookup(p) // step 3
	if s == nil || atomic.LoadUintptr(&s.Chunk) != 0 {
		return false
	}
	kind := s.LoadTag() - h.id<<span.KindBits
	if kind >= sizeclass.Count {
		return kind == span.KindLarge && h.freeLarge(s, p)
	}
	race.Enter()
	c := uint8(kind)
	cl := &h.classes[c]
	var local *cache
	if l != nil {
		local = l.enter(true)
	}
	k := local
	if k == nil {
		k = cacheAt(h.caches.Pin())
	}
	if k == nil {
		h.unpin(local, k)
		h.addCache()
		freed = cl.putOne(h, s, p)
	} else {
		over := k.makeRoom(c) // step 4
		freed = k.free(s, p)
		full := k.class(c).capacity == 0 // other classes have all the room of the cache
		h.unpin(local, k)
		if !freed && full {
			freed = cl.putOne(h, s, p)
		}
		if over.list != 0 {
			cl.put(h, c, over) // step 5
		}
	}
	if local != nil {
		l.leave()
	}
	race.Leave()
	return freed
}
