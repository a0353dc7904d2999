package cheap

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/percpu"
	"github.com/cheapgo/cheap/internal/race"
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

	_ [64 - 2*unsafe.Sizeof(uintptr(0))]byte

	classes [sizeclass.Count]cacheClass
}

// cacheClass is what a cache has of one class: a list of at most a batch, and
// perhaps a whole batch besides. A class that is not cached, or not used yet,
// has no blocks and no room.
type cacheClass struct {
	head  uintptr // first block of the list
	spare uintptr // first block of a whole batch, or 0

	// count is how many blocks were handed out, times roomUnit, plus the room
	// that is left in the list. One word, so that Malloc and Free each change
	// one.
	count uint64

	_ [cacheClassSize - 8 - 2*unsafe.Sizeof(uintptr(0))]byte
}

const (
	roomUnit = 1 << 8
	roomMask = roomUnit - 1
)

const cacheClassSize = 32

var (
	_ [128]byte                 = [unsafe.Offsetof(cache{}.classes)]byte{}
	_ [cacheClassSize]byte      = [unsafe.Sizeof(cacheClass{})]byte{}
	_ [roomMask - maxBatch]byte // a batch must fit
	_ [cacheLimit - sizeclass.CacheBytes]byte
)

const (
	maxBatch   = 64
	cacheLimit = 1 << 20 // bytes, the most that a cache may hold
)

// cacheAt returns the cache at s, which the table of a heap holds: it has been
// made by newCache and stays mapped.
func cacheAt(s uintptr) *cache { return (*cache)(osmem.Pointer(s)) }

// class returns &k.classes[c] without a bounds check: sizeclass.Of and the tag
// of a span of a class give nothing else.
func (k *cache) class(c uint8) *cacheClass {
	return (*cacheClass)(unsafe.Add(unsafe.Pointer(&k.classes), uintptr(c)*cacheClassSize))
}

// pop takes a block from the list. It returns 0 where there is none, and where
// the first one has been written to after it was freed.
func (c *cacheClass) pop() uintptr {
	p := c.head
	if p == 0 {
		return 0
	}
	b := blockAt(p)
	next := b.next
	if b.odd(p, next) > 1 {
		return 0
	}
	c.head = next
	c.count += roomUnit + 1
	b.mark = 0
	if race.On {
		race.Acquire(p)
	}
	return p
}

// push puts the block at p on its list. It returns false, with nothing changed,
// where p is not the start of a block of the heap id that is in use, and where
// the list is full. It is called with any number for p.
//
//go:norace
func (k *cache) push(id, p uintptr) bool {
	if unit := p >> span.UnitShift; unit != k.lastUnit {
		s := span.Find(p)
		if s == nil {
			return false
		}
		k.lastUnit, k.last = unit, s.Addr()
	}
	s := span.At(k.last)
	tag := s.LoadTag()
	if tag>>span.KindBits != id {
		return false
	}
	if sizeclass.Index(uint32(p)%span.UnitSize, s.Inverse, uint8(s.Shift)) >= atomic.LoadUint32(&s.Carved) {
		return false // the inside of a block, never handed out, or a large block
	}
	b := blockAt(p)
	if b.odd(p, b.next) <= 1 {
		return false // free already
	}
	c := k.class(uint8(tag))
	if c.count&roomMask == 0 {
		return false
	}
	if race.On {
		race.Release(p)
	}
	b.setFree(p, c.head, 0)
	c.head = p
	c.count--
	return true
}

// room is the number of free places in the list.
func (c *cacheClass) room() int { return int(c.count & roomMask) }

// setRoom changes the room and keeps the number of mallocs.
func (c *cacheClass) setRoom(n int) { c.count = c.count&^roomMask | uint64(n) }

// cached returns how many blocks c has, for a class whose batch has so many. It
// may be called by anybody.
//
//go:norace
func (c *cacheClass) cached(batch int) int {
	head, spare := atomic.LoadUintptr(&c.head), atomic.LoadUintptr(&c.spare)
	n := 0
	if head != 0 {
		n = batch - int(atomic.LoadUint64(&c.count)&roomMask)
	}
	if spare != 0 {
		n += batch
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

// newCache returns the address of an empty cache.
//
//go:norace
func newCache() (uintptr, error) {
	cachePool.mu.Lock()
	defer cachePool.mu.Unlock()
	if n := len(cachePool.free); n > 0 {
		s := cachePool.free[n-1]
		cachePool.free = cachePool.free[:n-1]
		return s, nil
	}
	s, err := span.AllocMeta(unsafe.Sizeof(cache{}))
	if err != nil {
		return 0, err
	}
	cacheAt(s).lastUnit = ^uintptr(0)
	return s, nil
}

// freeCache takes back a cache that nobody uses and that has been emptied.
//
//go:norace
func freeCache(s uintptr) {
	k := cacheAt(s)
	clear(k.classes[:])
	k.lastUnit, k.last = ^uintptr(0), 0
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
	s, err := newCache()
	if err != nil {
		h.account.Give(cacheBytes)
		return
	}
	h.caches.Install(place, s)
}

// cacheBytes is the metadata that a cache takes.
const cacheBytes = int64(unsafe.Sizeof(cache{}))

// empty gives all blocks of k, which belongs to the caller, back to the
// classes.
//
//go:norace
func (h *Heap) empty(k *cache) {
	for i := range k.classes {
		c := &k.classes[i]
		batch := int(sizeclass.Classes[i].Batch)
		list, n, spare := c.head, c.cached(batch), c.spare
		if spare != 0 {
			n -= batch
		}
		c.head, c.spare = 0, 0
		c.setRoom(batch)
		if list != 0 {
			h.classes[i].sort(h, list, n)
		}
		if spare != 0 {
			h.classes[i].sort(h, spare, batch)
		}
	}
}
