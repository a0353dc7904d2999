package heap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// Where the blocks of a checked heap come from, and where they go: the one cache that all
// goroutines share, the heap itself, and the quarantine.

// take returns a small block from the cache, or 0. If it returns a block, it holds the lock.
func (c *checked) take(op string, size, align int) uintptr {
	if size > sizeclass.MaxSize {
		return 0
	}
	class, ok := alignedClass(size, align)
	if !ok {
		return 0
	}
	p, was := c.takeClass(op, class)
	if p == 0 {
		return 0
	}
	if c.h.damaged.Load() != nil {
		c.mu.Unlock()
		c.h.panicDamaged(p)
		c.lock(op) // another goroutine has panicked with it
	}
	c.mustBeAsFreed(op, p, was)
	return p
}

// takePlain is take of any block, from the heap itself. The caller is between begin and end.
func (c *checked) takePlain(op string, size, align int) (base uintptr, err error) {
	c.mu.Lock()
	c.starting++
	c.mu.Unlock()
	defer func() {
		if base == 0 {
			c.mu.Lock()
			defer c.mu.Unlock()
		}
		c.starting--
	}()
	p, was, err := c.h.allocPlain(op, nil, size, align)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	c.mustBeAsFreed(op, p, was)
	return p, nil
}

// takeClass is take of a class. It returns what the canary of the block said as well.
func (c *checked) takeClass(op string, class uint8) (taken uintptr, was block.State) {
	c.lock(op)
	defer func() {
		if taken == 0 { // no block, or a panic: nobody else unlocks
			c.mu.Unlock()
		}
	}()
	if c.local == nil {
		c.local = c.h.newLocal()
		c.local.attach(true)
	}
	if !c.local.c.has() {
		return 0, 0
	}
	c.flush(false)
	if p, was := c.local.k.class(class).pop(); p != 0 {
		raceAcquire(p, was)
		return p, was
	}
	p, was, err := c.h.refill(c.local.k, class)
	if err != nil {
		return 0, 0
	}
	raceAcquire(p, was)
	return p, was
}

// flush empties the cache, if the heap has asked for that or now is true. The lock is held.
//
//go:norace
func (c *checked) flush(now bool) {
	if c.local == nil || !c.local.c.has() || !now && !c.local.c.flush.Load() {
		return
	}
	c.local.c.flush.Store(false)
	race.Enter()
	defer race.Leave()
	c.h.empty(c.local.k)
}

// push puts a block at the end of the quarantine. The lock is held.
func (c *checked) push(hd *checkedHeader) {
	if c.n == len(c.ring) {
		ring := make([]uintptr, max(64, 2*c.n))
		for i := range c.n {
			ring[i] = c.ring[(c.first+i)%len(c.ring)]
		}
		c.ring, c.first = ring, 0
	}
	c.ring[(c.first+c.n)%len(c.ring)] = uintptr(unsafe.Pointer(hd))
	c.n++
	c.held += int(span.Find(uintptr(unsafe.Pointer(hd))).Size)
}

// leave gives the oldest block of the quarantine back to the heap. It panics, and unlocks,
// if the block was written to. The lock is held.
func (c *checked) leave(op string) {
	hd := headerAt(c.ring[c.first])
	c.first = (c.first + 1) % len(c.ring)
	c.n--
	s := span.Find(uintptr(unsafe.Pointer(hd)))
	size, large := s.Size, s.LoadTag()&span.KindMask == span.KindLarge
	at, report := c.writtenFree(hd)
	c.held -= int(size)
	if report != "" {
		hd.become(lost)
		c.mu.Unlock()
		panicMisuse(op, at, "%s", report)
	}
	c.unpoison(hd)
	hd.become(released)
	if large {
		fillUnits(s, uintptr(unsafe.Pointer(hd)))
	}
	c.freeBase(uintptr(unsafe.Pointer(hd)))
}

// freeBase frees a block of the heap. The lock is held.
func (c *checked) freeBase(base uintptr) {
	c.h.raceRelease(base)
	if c.local == nil || !c.local.c.has() {
		c.h.freePlain(nil, base)
	} else if !c.local.k.free(span.Find(base), base) {
		c.h.freePlain(c.local, base)
	}
}

// empty gives all of the quarantine back.
func (c *checked) empty() {
	c.mu.Lock()
	for c.n > 0 {
		c.leave("Heap")
	}
	c.flush(true)
	c.mu.Unlock()
}

// end gives up the cache. It is called before the heap is destroyed, and again when it is closed:
// then a goroutine that uses it, which is misuse, may have made another cache, or may hold the
// lock still. None that takes the lock later finds the heap open. c may be nil.
func (c *checked) end() {
	if c == nil {
		return
	}
	c.mu.Lock()
	l := c.local
	c.local = nil
	c.ended = c.h.closed.Load()
	c.mu.Unlock()
	if l != nil {
		l.c.giveBack()
	}
}

// EmptyQuarantine lets go of what is in quarantine, where h has one. It is for tests.
func (h *Heap) EmptyQuarantine() {
	if h.checked != nil {
		h.checked.empty()
	}
}
