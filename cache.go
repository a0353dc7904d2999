package cheap

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/percpu"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// cache holds the blocks at hand for one P, or for a Local. It lies outside the
// Go heap. Only its owner touches it: the goroutine that is pinned to the P,
// the one that has seized it, or the goroutine that the Local belongs to.
// Counts are read by anybody; they are words with one writer.
type cache struct {
	percpu.Slot

	// The unit that the last freed block lay in, and its record. Which record
	// a unit has never changes, so this is never stale; what it saves is a
	// look-up that the next Malloc would have to wait for.
	lastUnit uintptr
	last     uintptr

	// base is the tag that spans of the heap have, less the class.
	base uintptr

	_ [64 - 3*unsafe.Sizeof(uintptr(0))]byte

	classes [sizeclass.Count]cacheClass
}

// cacheClass is what a cache has of one class: a list of at most a batch, and
// perhaps another batch besides. One that has not been used yet has no batch,
// and so no room.
type cacheClass struct {
	head  uintptr // first block of the list
	spare uintptr // first block of the other batch, or 0

	// puts less takes is the length of the list. They are two words because
	// each changes by reading, adding and writing back, which the next change
	// of the same word has to wait for; so a pair of Malloc and Free waits
	// once, not twice.
	takes, puts uint64

	// batch is how many blocks the list may have. It starts small, and grows
	// whenever blocks come from the class or go there, so that classes that
	// are hardly used hardly hold any.
	batch uint64

	numSpare uint64 // blocks in the spare batch

	_ [cacheClassSize - 32 - 2*unsafe.Sizeof(uintptr(0))]byte
}

const cacheClassSize = 64 // a cache line

var (
	_ [128]byte            = [unsafe.Offsetof(cache{}.classes)]byte{}
	_ [cacheClassSize]byte = [unsafe.Sizeof(cacheClass{})]byte{}
	_ [cacheLimit - sizeclass.CacheBytes]byte
)

// cacheLimit is the most that a cache may hold, in bytes.
const cacheLimit = 1 << 20

// cacheAt returns the cache at s, which the table of a heap holds: it has been
// made by newCache and stays mapped.
//
//go:norace
func cacheAt(s uintptr) *cache { return (*cache)(osmem.Pointer(s)) }

// class returns &k.classes[c] without a bounds check: sizeclass.Of and the tag
// of a span of a class give nothing else.
//
//go:norace
func (k *cache) class(c uint8) *cacheClass {
	return (*cacheClass)(unsafe.Add(unsafe.Pointer(&k.classes), uintptr(c)*cacheClassSize))
}

// pop takes a block from the list. It returns 0 where there is none, and where
// the first one has been written to after it was freed.
//
// Heap.Malloc and Local.Malloc have the same written out.
//
//go:norace
func (c *cacheClass) pop() uintptr {
	if p := c.head; p != 0 {
		b := blockAt(p)
		next := b.next
		if b.odd(p, next) <= zeroed|carved {
			c.head = next
			c.takes++
			b.mark = 0
			return p
		}
	}
	return 0
}

// push puts the block at p, which is not free, on the list, if that has room.
//
//go:norace
func (c *cacheClass) push(p uintptr) bool {
	puts := c.puts
	if puts-c.takes >= c.batch {
		return false
	}
	c.puts = puts + 1
	blockAt(p).setFree(p, c.head, 0)
	c.head = p
	return true
}

// free frees the block at p into k. It returns false, with nothing changed,
// where p, which may be any number, is not the start of a block of the heap
// that is in use, and where the list is full.
//
// Heap.Free and Local.Free have the same written out.
//
//go:norace
func (k *cache) free(p uintptr) bool {
	s := k.find(p)
	if s == nil {
		return false
	}
	class := s.LoadTag() - k.base
	if class >= sizeclass.Count || !startsBlock(s, p) {
		return false
	}
	if b := blockAt(p); b.odd(p, b.next) <= zeroed|carved {
		return false
	}
	return k.class(uint8(class)).push(p)
}

// find returns the record of the unit that p lies in, or nil, and remembers it.
//
//go:norace
func (k *cache) find(p uintptr) *span.Span {
	s := span.Find(p)
	if s != nil {
		k.lastUnit, k.last = p>>span.UnitShift, s.Addr()
	}
	return s
}

// startsBlock reports whether p, in the unit of s, is the start of a block of a
// class that has been carved.
//
//go:norace
func startsBlock(s *span.Span, p uintptr) bool {
	return sizeclass.Index(uint32(p)%span.UnitSize, s.Inverse, uint8(s.Shift)) < atomic.LoadUint32(&s.Carved)
}

// length is the length of the list.
//
//go:norace
func (c *cacheClass) length() int { return int(c.puts - c.takes) }

// setLength says how long a list is that has been put in place.
//
//go:norace
func (c *cacheClass) setLength(n int) { c.puts = c.takes + uint64(n) }

// cached returns how many blocks c has. It may be called by anybody.
//
//go:norace
func (c *cacheClass) cached() int {
	n := 0
	if atomic.LoadUintptr(&c.head) != 0 {
		n = int(atomic.LoadUint64(&c.puts) - atomic.LoadUint64(&c.takes))
	}
	if atomic.LoadUintptr(&c.spare) != 0 {
		n += int(atomic.LoadUint64(&c.numSpare))
	}
	return n
}

// cachePool holds caches that are not in use. They become nothing but caches
// again, because a goroutine that had one in hand when it was seized may still
// try its lock.
var cachePool struct {
	mu   sync.Mutex
	free []uintptr
}

// newCache returns the address of an empty cache of a heap.
//
//go:norace
func newCache(id uintptr) (uintptr, error) {
	if err := span.Init(); err != nil {
		return 0, err // whoever has a cache may look up addresses
	}
	cachePool.mu.Lock()
	defer cachePool.mu.Unlock()
	if n := len(cachePool.free); n > 0 {
		s := cachePool.free[n-1]
		cachePool.free = cachePool.free[:n-1]
		cacheAt(s).base = id << span.KindBits
		return s, nil
	}
	s, err := span.AllocMeta(unsafe.Sizeof(cache{}))
	if err != nil {
		return 0, err
	}
	cacheAt(s).lastUnit, cacheAt(s).base = ^uintptr(0), id<<span.KindBits
	return s, nil
}

// freeCache takes back a cache that nobody uses and that has been emptied.
//
//go:norace
func freeCache(s uintptr) {
	k := cacheAt(s)
	clear(k.classes[:])
	k.lastUnit, k.last, k.base = ^uintptr(0), 0, 0
	cachePool.mu.Lock()
	defer cachePool.mu.Unlock()
	cachePool.free = append(cachePool.free, s)
}

// addCache gives the P that runs a cache, if it has none and there is memory.
//
//go:norace
func (h *Heap) addCache() {
	h.seize.Lock()
	defer h.seize.Unlock()
	place := h.caches.Place()
	if place < 0 || h.closed.Load() {
		return
	}
	if !h.account.Take(cacheBytes, h.limit) {
		return
	}
	s, err := newCache(h.id)
	if err != nil {
		h.account.Give(cacheBytes)
		return
	}
	h.caches.Install(place, s)
	h.places.Store(max(h.places.Load(), int32(place)+1))
}

// cacheBytes is the metadata that a cache takes.
const cacheBytes = int64(unsafe.Sizeof(cache{}))

// empty gives all blocks of k, which belongs to the caller, back to the
// classes. It returns the address of a free block that somebody has written to,
// or 0.
//
//go:norace
func (h *Heap) empty(k *cache) (written uintptr) {
	var lists [2 * sizeclass.Count]batch
	k.takeAll(&lists)
	return h.sortAll(&lists)
}

// sortAll gives lists that takeAll took back to the classes. It returns the
// address of a free block that somebody has written to, or 0.
//
//go:norace
func (h *Heap) sortAll(lists *[2 * sizeclass.Count]batch) (written uintptr) {
	for i, b := range lists {
		if b.n > 0 {
			written = max(written, h.classes[i/2].sort(h, b.list, b.n))
		}
	}
	return written
}

// grown returns what the batch of a class should be after it was batch.
//
//go:norace
func grown(class uint8, batch int) int {
	most := int(sizeclass.Classes[class].Batch)
	return min(max(2*batch, (most+slowStart-1)/slowStart), most)
}

// slowStart is the part of its largest batch that a class begins with.
const slowStart = 8

// settle takes the blocks out of k, or out of the cache of the P that runs if k
// is nil, and sorts them and the batches that the classes keep into their spans.
// It is called before the heap takes memory that the process does not have yet:
// a program that needs more should have none that is free where nobody looks. It
// returns what empty does.
//
//go:norace
func (h *Heap) settle(k *cache) (written uintptr) {
	h.settles.Add(1)
	before := h.account.Held()
	var lists [2 * sizeclass.Count]batch
	if k != nil {
		k.takeAll(&lists)
	} else {
		s := h.caches.Pin()
		if s != 0 {
			cacheAt(s).takeAll(&lists)
		}
		h.caches.Unpin(s)
	}
	written = h.sortAll(&lists)
	for i := range h.classes {
		written = max(written, h.classes[i].sortBatches(h))
		if sizeclass.Classes[i].Size >= hollowFrom && !poisoning {
			h.classes[i].hollow()
		}
	}
	held := h.account.Held()
	at := held + held/settleShare
	if held < before {
		at = max(at, before+settleLeast) // what was given back may be taken again
	}
	h.settleAt.Store(at)
	return written
}

// unsettled reports whether to settle before cost more bytes in so many units
// are taken.
func (h *Heap) unsettled(cost int64, units int) bool {
	return h.account.Held()+cost > h.settleAt.Load() && span.Warm() < units
}

// hollowFrom is the block size, in bytes, from which free blocks do not keep
// memory when the heap grows.
const hollowFrom = 8 << 10

// A heap may grow by a part between two calls of settle, one in settleShare; and,
// where a call has given spans back, beyond what it had before by a span with its
// records. Without that a heap that is almost empty, used for one size after the
// other, would give back for each what the others need.
const (
	settleShare = 64
	settleLeast = span.UnitSize + span.UnitSize/64
)

// takeAll takes all lists out of k.
//
//go:norace
func (k *cache) takeAll(lists *[2 * sizeclass.Count]batch) {
	for i := range k.classes {
		c := &k.classes[i]
		if c.head != 0 {
			lists[2*i] = batch{c.head, c.length()}
		}
		if c.spare != 0 {
			lists[2*i+1] = batch{c.spare, int(c.numSpare)}
		}
		c.head, c.spare = 0, 0
		c.setLength(0)
		c.batch = 0
	}
}
