package cheap

import (
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// # A free that misses
//
// Free comes here when the list of the cache is full, for blocks that no cache takes, and for what
// is no block:
//
//  1. Nil is ignored.
//  2. freeSlow: a heap that is watched goes through a door (heap_watched.go), which comes back to
//     step 3 for a block that no watcher knows.
//  3. freePlain: the record of the unit says to which class the block belongs. A large block goes to
//     freeLarge (heap_large.go), and a block of a class that caches do not have to its class.
//  4. The full list of the cache becomes its spare magazine, and the block the first of a new list.
//  5. class.put takes the magazine that was the spare. It keeps some whole. The blocks of others are
//     sorted into their spans, and a span that has all its blocks back returns to package span.
//  6. If p is no block of the heap that is in use, freeSlow panics, and says what it is.
//  7. A free block that was found to be written to is reported.

// freeSlow is Free where the cache has no room, where there is no cache, and for
// mistakes. The cache is that of l or, if l is nil, that of the P.
//
//go:noinline
//go:norace
func (h *Heap) freeSlow(op string, l *Local, p uintptr) {
	if p == 0 { // step 1
		return
	}
	if h.watched.Load() { // step 2
		h.freeWatched(op, l, p)
		return
	}
	h.mustBeOpen(op)
	for !h.freePlain(l, p) {
		h.mustOwn(op, p) // step 6; it returns if another goroutine freed the block, and got it again
		h.mustBeOpen(op)
	}
	h.mustBeUndamaged(0) // step 7
}

// freePlain frees the block at p, which may be any number. It returns false, and changes nothing,
// if p is not a live block of the heap, or if it is one that a watcher knows. It does not panic.
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
	if sizeclass.Classes[c].Magazine == 0 {
		freed = cl.putOne(h, s, p)
		race.Leave()
		return freed
	}
	var local *cache
	if l != nil {
		local = l.enter(true)
	}
	k := local
	if k == nil {
		k = cacheAt(h.caches.Pin())
	}
	if k == nil {
		h.letGo(local, k)
		h.addCache()
		freed = cl.putOne(h, s, p)
	} else {
		over := k.makeRoom(c) // step 4
		freed = k.free(s, p)
		h.letGo(local, k)
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
