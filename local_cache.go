package cheap

// # The cache of a Local
//
// Only the goroutine of a Local is in its cache, without a pin and without a lock. A Local may
// rest, for hours, and its goroutine may come back at any moment. Its blocks must not rest as long.
// So others take the cache away from a Local that rests, and Malloc and Free have no instruction
// for that. It is done as percpu.Table.Seize takes the caches of Ps: k leads to noCache, which has
// no blocks and no room, and then the world is stopped. What the pin is there, two rules are here.
//
// # What the goroutine does
//
// Malloc and Free load k, and are done with the cache, within a section that has no safe point, so
// that the world is not stopped while a goroutine is in it. They are marked go:nosplit, and so is
// what they call there: the compiler puts no safe point for an asynchronous preemption into such a
// function (allUnsafe in cmd/compile/internal/liveness), and no check of the stack, which is the
// other place. go:noinline, because a caller that inlines them has safe points. go:nocheckptr,
// because the calls that -d=checkptr adds have one. TestNosplitIsNotStopped and TestLocalSections
// hold that fast.
//
// All other methods, the slow paths included, set in before they load k, and clear it when they
// are done with the cache:
//
//	in = true
//	k              the cache, or noCache
//	…              what it does in the cache
//	in = false
//
// Where the slow path finds noCache it calls attach. That takes the lock Heap.seize, and makes k the
// cache that the Local still has, or a new one. Nothing else makes k a cache.
//
// # What others do
//
// seizeLocals is how a Local loses its cache while it is open:
//
//  1. With Heap.seize held, store noCache in k, and note in localCache.round which call it was.
//  2. Stop all goroutines once (percpu.Stop).
//  3. Look at in. If it is set, leave the Local alone.
//  4. Stop all goroutines once more.
//  5. With Heap.seize held, take the cache, unless attach has come first: round says so.
//
// After step 2 no goroutine is in a section of Malloc or Free that has loaded the cache. In another
// method a goroutine was stopped in one of three places. Before the load of k: then it loads
// noCache, and does not touch the cache before it has called attach. Between the load and the end:
// then it has set in, and step 3 sees that, or it has come to the end since. Behind the end: as
// before the load. The second stop is for processors that show stores in another order: a goroutine
// that has reached the end since step 2 may show in = false before what it has done in the cache.
// After the stop all of it can be seen. The stores of in are plain ones. To stop a goroutine is a
// barrier for its processor, and the compiler does not move an atomic load before a store.
//
// With in in Malloc and Free, too, a pair would take 1.2 ns longer than 6.7, and a loop over eight
// blocks 4 % longer.
//
// The lock is not held while goroutines are stopped, so one that comes back does not wait for that.
//
// # Which Locals rest
//
// The tick of the decay compares how many blocks the Local has taken and freed with what it was at
// the tick before. Where it is the same, and in Trim in any case, the Local loses its blocks, and
// the cache as well: a Local that rests has no memory of the heap. While a Local has a cache the
// tick is armed (span.Watch). Where a limit is reached, Locals get a note (flush): their next slow
// path gives the blocks back. So a goroutine whose requests are refused again and again does not
// stop the world each time.

import (
	"iter"
	"runtime"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/cheapgo/cheap/internal/gcwatch"
	"github.com/cheapgo/cheap/internal/percpu"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/span"
)

// localCache is the part of a Local that must outlive it if it is dropped. Its fields are under
// h.seize, but for h, local and flush.
type localCache struct {
	h     *Heap
	local weak.Pointer[Local] // nil with a CheckLevel: then the cache is under checked.mu
	flush atomic.Bool         // the heap asks for the blocks

	slot  uintptr // of cache, or 0
	round uint64  // which call of seizeLocals has stored noCache in k; 0 from attach on
	moves uint64  // of the cache, when it was looked at last

	ticked     bool        // the tick looks at it: counted by span.Watch
	open       bool        // in the list of the heap
	next, prev *localCache // in that list

	dropped gcwatch.Cleanup // of giveBack; used by the Local's goroutine
}

// has reports whether there is a cache. With a CheckLevel that is certain, because checked.mu is
// held; else seizeLocals may take it meanwhile.
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
//go:nosplit
//go:nocheckptr
func (l *Local) cache() *cache {
	return (*cache)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&l.k))))
}

// enter returns the cache, which is the goroutine's until it sets l.in to false. It returns nil if
// there is none; with create it makes one, if it can.
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

// mostMisses is how many slow paths of a Local follow one that got no cache before another asks.
const mostMisses = 64

// leave is the end of enter, for defer.
//
//go:norace
func (l *Local) leave() { l.in = false }

// attach is enter of a Local with noCache, which lost its cache, or never had one.
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

// neverMoved is no sum of counts, or none that comes again at once.
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

// enlist puts c, which has a new cache, in the list of the heap, if it is not there, and has the
// tick look at it. The caller holds seize.
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
// It is called when the Local was dropped, too.
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

// drop gives the cache back, and what is in it. The caller holds seize, and no goroutine is in the
// cache.
//
//go:norace
func (c *localCache) drop() {
	c.untick()
	h, slot := c.h, c.slot
	if slot == 0 {
		return
	}
	c.slot = 0
	c.flush.Store(false)
	if !h.closed.Load() {
		h.account.Uncharge(cacheBytes)
		h.empty(cacheAt(slot))
		h.gone.mallocs += cacheAt(slot).mallocs()
	}
	freeCache(slot)
}

// untick has the tick look at c no longer. The caller holds seize.
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

// A seizure is a Local that seizeLocals is about to take the cache of. The pointer to the Local
// keeps it from becoming unreachable meanwhile.
type seizure struct {
	c *localCache
	l *Local
}

// seizures counts the calls of seizeLocals.
var seizures atomic.Uint64

// seizeLocals takes the caches of the Locals of the heaps that pick chooses, with what is in them.
// pick is called with Heap.seize held. A Local whose goroutine is in its cache keeps it.
//
//go:norace
func seizeLocals(all iter.Seq[*Heap], pick func(*localCache) bool) {
	round := seizures.Add(1)
	var picked []seizure
	for h := range all {
		picked = h.divertLocals(picked, round, pick)
	}
	if len(picked) == 0 {
		return
	}
	percpu.Stop()
	rest := picked[:0]
	for _, s := range picked {
		if !s.l.in {
			rest = append(rest, s)
		}
	}
	if len(rest) == 0 {
		return
	}
	percpu.Stop()
	for _, s := range rest {
		s.c.dropOf(round)
		runtime.KeepAlive(s.l)
	}
	span.Decay()
}

// divertLocals is the first step of seizeLocals for one heap. It appends those that it has chosen
// to picked.
//
//go:norace
func (h *Heap) divertLocals(picked []seizure, round uint64, pick func(*localCache) bool) []seizure {
	race.Enter()
	defer race.Leave()
	h.seize.Lock()
	defer h.seize.Unlock()
	for c := h.locals; c != nil; c = c.next {
		if c.slot == 0 || !pick(c) {
			continue
		}
		if l := c.local.Value(); l != nil {
			c.round = round
			atomic.StorePointer((*unsafe.Pointer)(unsafe.Pointer(&l.k)), unsafe.Pointer(&noCache))
			picked = append(picked, seizure{c, l})
		}
	}
	return picked
}

// dropOf is the last step of the call of seizeLocals with that number.
//
//go:norace
func (c *localCache) dropOf(round uint64) {
	race.Enter()
	defer race.Leave()
	c.h.seize.Lock()
	defer c.h.seize.Unlock()
	if c.round == round {
		c.drop()
	}
}

// anyLocal picks all.
func anyLocal(*localCache) bool { return true }
