package heap

// # The cache of a Local
//
// Only the goroutine of a Local uses its cache, without a pin and without a lock. A Local may be
// idle for hours, and its goroutine may use it again at any moment. The cached blocks must return
// to the heap earlier. So other goroutines take the cache of an idle Local, and Malloc and Free
// have no instruction for that. The method is that of percpu.Table.Seize: another goroutine sets k
// to noCache, which has no blocks and no room, and then stops the world. In place of the pin there
// are two rules for the goroutine: one for Malloc and Free, one for all other methods.
//
// # What the goroutine does
//
// Malloc and Free use the cache in a section without a safe point, from the load of k on. So the
// world is not stopped while a goroutine is in the section, and the collector, which looks at
// the stack of a goroutine while that is stopped, finds no Local unreachable whose goroutine is
// there. Three directives ensure that, and the section calls nothing:
//
//	nosplit        the compiler puts no safe point for an asynchronous preemption into such a
//	               function (allUnsafe in cmd/compile/internal/liveness), and no check of the
//	               stack, which is the other kind of safe point
//	noinline       a caller that inlined them would have safe points
//	nocheckptr     the calls that -d=checkptr adds have safe points
//	no calls       the instructions with which a function makes its frame are safe points, even
//	               if it is marked nosplit. With -race, -asan or -gcflags=-l even short
//	               functions are not inlined
//
// TestNosplitIsNotStopped and TestLocalSections check it.
//
// All other methods, the slow paths included, set Local.in before they load k, and clear it
// when they are done with the cache:
//
//	in = true
//	k              the cache, or noCache
//	…              what it does in the cache
//	in = false
//
// If the slow path finds noCache, it calls attach. attach takes the lock Heap.seize, and sets k to
// the cache that the Local still has, or to a new one. Nothing else sets k to a cache.
//
// # What other goroutines do
//
// seizeLocals is how a Local loses its cache while it is open:
//
//  1. With Heap.seize held, store noCache in k, and the number of the call in localCache.round, unless
//     that has the number of another call: attach was not called since. Note round in the seizure.
//  2. Stop all goroutines once (percpu.Stop).
//  3. Read in. If it is set, leave the cache to the Local.
//  4. Stop all goroutines once more.
//  5. With Heap.seize held, take the cache, unless attach was called meanwhile: then round differs
//     from what was noted.
//
// If several calls pick one Local, the first to reach step 5 takes the cache. So an idle Local has
// no cache when seizeLocals returns.
//
// After step 2 no goroutine is in a section of Malloc or Free that has loaded the cache. In another
// method step 2 has stopped the goroutine in one of three places:
//
//	before the load of k           it loads noCache, and does not touch the cache before it has
//	                               called attach
//	between the load and the end   it has set in: step 3 sees that, unless it has reached the
//	                               end since step 2
//	after the end                  as before the load of k
//
// The second stop is for processors that reorder stores: if the goroutine has reached the end since
// step 2, in = false may be visible before its last stores to the cache. After step 4 all of them
// are visible. The stores of in are plain: to stop a goroutine is a barrier for its processor, and
// the compiler does not move an atomic load before a store.
//
// If Malloc and Free set in as well, a pair would take 7.9 ns instead of 6.7, and a loop over
// eight blocks 4 % longer.
//
// Heap.seize is not held while goroutines are stopped, so a goroutine that calls attach does not
// wait for the stops.
//
// # Which Locals are idle
//
// Each tick of the decay counts the blocks that the Local has taken and freed (cache.moved). If
// the count is that of the tick before, the Local is idle. An idle Local loses its cache with all
// blocks, so it has no memory of the heap. Trim treats every Local as idle. While a Local has a
// cache, the tick is armed (span.Watch). If a limit is reached, localCache.flush is set, and the
// next slow path of the Local gives the blocks back. So a goroutine whose requests are refused
// again and again does not stop the world each time.

import (
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// localCache is the part of a Local that must outlive it if it is dropped. Its fields are under
// h.seize, except h, local and flush.
type localCache struct {
	h     *Heap
	local weak.Pointer[Local] // nil with a CheckLevel: then the cache is under checked.mu
	flush atomic.Bool         // the heap asks for the blocks

	slot  uintptr // of cache, or 0
	round uint64  // the first call of seizeLocals since attach that has stored noCache in k, or 0
	moves uint64  // what cache.moved returned at the last tick

	ticked     bool        // the tick examines it: counted by span.Watch
	open       bool        // in the list of the heap
	next, prev *localCache // in that list

	dropped gcwatch.Cleanup // of giveBack; used by the Local's goroutine
}

// has reports whether there is a cache. With a CheckLevel the result stays true, because
// checked.mu is held. In any other heap seizeLocals may take the cache meanwhile.
//
//go:norace
func (c *localCache) has() bool { return atomic.LoadUintptr(&c.slot) != 0 }

// noCache has no blocks and no room, so a Local with it takes the slow path.
// It is never written to.
var noCache cache

// newLocal returns a Local that has no cache yet, and whose cache is not given back when the
// Local is dropped.
//
//go:norace
func (h *Heap) newLocal() *Local {
	return &Local{h: h, k: &noCache, c: &localCache{h: h}, lastUnit: ^uintptr(0), base: h.id << span.KindBits}
}

// cache returns the cache, or noCache. The caller has set l.in.
//
// The load is atomic so that the compiler cannot take the result of an earlier one.
//
//go:norace
func (l *Local) cache() *cache {
	return (*cache)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&l.k))))
}

// enter returns the cache, which is the goroutine's until it sets l.in to false. If there is none
// and create is set, enter makes one, if there is memory. Otherwise it returns nil.
//
//go:norace
func (l *Local) enter(create bool) *cache {
	l.in = true
	if k := l.cache(); k != &noCache {
		return k
	}
	l.in = false
	if l.misses > 0 {
		l.misses--
		return nil
	}
	if l.h.checked != nil {
		return nil // the heap has one cache for all: checked.local
	}
	return l.attach(create)
}

// mostMisses is the number of slow paths of a Local that do not ask for a cache, after one that
// got none.
const mostMisses = 64

// leave ends what enter began: the cache is no longer the goroutine's.
//
//go:norace
func (l *Local) leave() { l.in = false }

// attach is enter if k is noCache: the Local lost its cache, or never had one.
//
//go:norace
func (l *Local) attach(create bool) *cache {
	race.Enter()
	defer race.Leave()
	h, c := l.h, l.c
	h.seize.Lock()
	if h.closed.Load() {
		h.seize.Unlock()
		return nil
	}
	made := c.slot == 0 && create
	if made {
		c.slot = h.newLocalCache()
	}
	if c.slot == 0 {
		h.seize.Unlock()
		if create {
			l.misses = mostMisses
		}
		return nil
	}
	if made {
		c.enlist()
	}
	k := cacheAt(c.slot)
	c.round, c.moves = 0, neverMoved
	l.k = k
	l.in = true // before another call of seizeLocals can begin
	h.seize.Unlock()
	if made {
		span.Decay()
	}
	return k
}

// neverMoved is the value of localCache.moves between attach and the next tick.
// cache.moved hardly ever returns it.
const neverMoved = ^uint64(0)

// newLocalCache returns a cache, or 0. The caller holds seize.
//
//go:norace
func (h *Heap) newLocalCache() (slot uintptr) {
	if !h.account.TryCharge(cacheBytes) {
		return 0
	}
	slot, err := newCache(h)
	if err != nil {
		h.account.Uncharge(cacheBytes)
		return 0
	}
	return slot
}

// enlist puts c, which has a new cache, in the list of the heap, if it is not there, and makes
// the tick examine it. The caller holds seize.
//
//go:norace
func (c *localCache) enlist() {
	if c.local != (weak.Pointer[Local]{}) {
		c.ticked = true
		span.Watch(1)
	}
	if c.open {
		return
	}
	c.open = true
	if c.next = c.h.locals; c.next != nil {
		c.next.prev = c
	}
	c.h.locals = c
}

// giveBack gives the blocks and the cache back. Only the first call has an effect.
// It is also the cleanup of a Local that was dropped.
//
//go:norace
func (c *localCache) giveBack() {
	race.Enter()
	defer race.Leave()
	h := c.h
	h.seize.Lock()
	defer h.seize.Unlock()
	if !c.open {
		return
	}
	c.open = false
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		h.locals = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.drop()
}

// drop gives the cache back, with the blocks in it. The caller holds seize, and no goroutine uses
// the cache.
//
//go:norace
func (c *localCache) drop() {
	c.untick()
	h, slot := c.h, c.slot
	if slot == 0 {
		return
	}
	c.slot = 0
	if !h.closed.Load() {
		h.account.Uncharge(cacheBytes)
		h.empty(cacheAt(slot))
		h.gone.mallocs += cacheAt(slot).mallocs()
	}
	freeCache(slot)
}

// untick makes the tick no longer examine c. The caller holds seize.
//
//go:norace
func (c *localCache) untick() {
	if c.ticked {
		c.ticked = false
		span.Watch(-1)
	}
}

// moved returns a number that changes whenever a block is taken from k or freed into it.
//
//go:norace
func (k *cache) moved() (n uint64) {
	for i := range k.classes {
		n += uint64(atomic.LoadInt64(&k.classes[i].takes)) + uint64(atomic.LoadInt64(&k.classes[i].puts))
	}
	return n
}

// rests reports whether no block has come or gone since the last call. The caller holds seize.
//
//go:norace
func (c *localCache) rests() bool {
	n := cacheAt(c.slot).moved()
	same := n == c.moves
	c.moves = n
	return same
}
