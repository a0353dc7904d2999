package cheap

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// A Local is a cache of a [Heap] that belongs to one goroutine, for loops in
// which the price of staying on a P, about half of Malloc and Free, counts.
//
// Its methods must not be called by two goroutines at the same time. Blocks are
// the heap's: they may be freed by the Heap, by any Local of it, and in any
// goroutine, and outlive the Local.
//
// Close gives the free blocks that a Local holds back to the heap. One that is
// dropped does so when the collector finds it unreachable; until then they
// serve nobody.
type Local struct {
	h      *Heap
	k      *cache // off the Go heap, or noCache
	c      *localCache
	closed bool
}

// localCache is what must outlive a Local that is dropped.
type localCache struct {
	h     *Heap
	slot  uintptr     // of cache, or 0; under h.seize
	flush atomic.Bool // the heap asks for the blocks

	next, prev *localCache // in the list of those that are open; under h.seize
}

// noCache has no blocks and no room, so that a Local that has it takes the slow
// path. Nothing is ever written to it.
var noCache = cache{lastUnit: ^uintptr(0)}

// NewLocal returns a Local of h. If there is no memory for its cache, a few
// KiB, or the limit is met, it does without, and is no faster than the heap.
//
//go:norace
func (h *Heap) NewLocal() *Local {
	h.check("Heap.NewLocal")
	if race.On {
		race.Enter()
		defer race.Leave()
	}
	l := &Local{h: h, k: &noCache, c: &localCache{h: h}}
	if !h.account.Take(cacheBytes, h.limit) {
		return l
	}
	h.seize.Lock()
	defer h.seize.Unlock()
	slot, err := newCache(h.id)
	if err == nil && h.closed.Load() {
		freeCache(slot)
		err = ErrDestroyed
	}
	if err != nil {
		h.account.Give(cacheBytes)
		return l
	}
	l.k, l.c.slot = cacheAt(slot), slot
	if l.c.next = h.locals; l.c.next != nil {
		l.c.next.prev = l.c
	}
	h.locals = l.c
	runtime.AddCleanup(l, (*localCache).close, l.c)
	return l
}

// Malloc is [Heap.Malloc].
//
//go:norace
//go:nosplit
func (l *Local) Malloc(size int) unsafe.Pointer {
	if uint(size) <= sizeclass.MaxSize {
		c := l.k.class(sizeclass.Of(size))
		if p := c.head; p != 0 {
			b := blockAt(p)
			next := b.next
			// A block of a heap that has been destroyed has no mark any more.
			if was := b.odd(p, next); was <= zeroed|carved {
				c.head = next
				c.takes++
				b.mark = 0
				runtime.KeepAlive(l) // or its cleanup might empty the cache now
				if instrumented {
					handedOut(p, was)
				}
				return osmem.Pointer(p)
			}
		}
	}
	return l.mallocSlow(size)
}

// Free is [Heap.Free].
//
//go:norace
//go:nosplit
func (l *Local) Free(ptr unsafe.Pointer) {
	p := uintptr(ptr)
	if instrumented {
		l.h.freeing(p)
	}
	k := l.k
	var s *span.Span
	if p>>span.UnitShift == k.lastUnit {
		s = span.At(k.last)
	} else {
		if !l.cached() {
			goto slow
		}
		if s = span.Find(p); s == nil {
			goto slow
		}
		k.lastUnit, k.last = p>>span.UnitShift, s.Addr()
	}
	// A span of a heap that has been destroyed is nobody's.
	if class := s.LoadTag() - k.base; class < sizeclass.Count {
		if startsBlock(s, p) {
			if b := blockAt(p); b.odd(p, b.next) > zeroed|carved {
				if k.class(uint8(class)).push(p) {
					runtime.KeepAlive(l)
					return
				}
			}
		}
	}
slow:
	l.freeSlow(p)
}

// check panics when l cannot be used, and does what the heap has asked for.
//
//go:norace
func (l *Local) check(op string) {
	if l.h == nil {
		misuse(op, 0, "the Local was not made by Heap.NewLocal")
	}
	l.h.check(op)
	if l.closed {
		misuse(op, 0, "the Local has been closed")
	}
	if l.c.flush.Load() && l.c.flush.Swap(false) {
		l.empty()
	}
}

// mallocSlow is Malloc where the list is empty.
//
//go:noinline
//go:norace
func (l *Local) mallocSlow(size int) unsafe.Pointer {
	l.check("Local.Malloc")
	if uint(size) > sizeclass.MaxSize || !l.cached() {
		return osmem.Pointer(l.malloc("Local.Malloc", size, sizeclass.Quantum))
	}
	p, was, err := l.refill(sizeclass.Of(size))
	if err != nil {
		return osmem.Pointer(l.malloc("Local.Malloc", size, sizeclass.Quantum))
	}
	account.Notify()
	if instrumented {
		handedOut(p, was)
	}
	return osmem.Pointer(p)
}

// malloc allocates past the cache, and where there is no memory once more with
// the cache emptied.
func (l *Local) malloc(op string, size, align int) uintptr {
	p, _, err := l.h.malloc(op, size, align)
	if err != nil && l.cached() {
		l.empty()
		p, _, _ = l.h.malloc(op, size, align)
	}
	return p
}

// empty gives the blocks in the cache back to the heap.
//
//go:norace
func (l *Local) empty() {
	if race.On {
		race.Enter()
		defer race.Leave()
	}
	if written := l.h.empty(l.k); written != 0 {
		panicWritten(written)
	}
}

// refill returns a block of a class where the list is empty.
//
//go:norace
func (l *Local) refill(class uint8) (p uintptr, was uint64, err error) {
	if race.On {
		race.Enter()
		defer race.Leave()
	}
	h, k := l.h, l.k
	c := k.class(class)
	p, was, written, lost := c.popOrSpare()
	if written != 0 {
		h.lose(class, lost)
		panicWritten(written)
	}
	if p == 0 {
		var list uintptr
		var n int
		want := max(1, grown(class, int(c.batch)))
		p, was, list, n, err = h.classes[class].get(h, class, want, false)
		if err == errSettle {
			if written := h.settle(k); written != 0 {
				panicWritten(written)
			}
			p, was, list, n, err = h.classes[class].get(h, class, want, true)
		}
		if err != nil {
			if w, ok := err.(writtenError); ok {
				panicWritten(uintptr(w))
			}
			return 0, 0, err
		}
		if n > 0 {
			c.fill(list, n, want)
		}
		h.afterGrowth()
	}
	runtime.KeepAlive(l)
	return p, was, nil
}

// freeSlow is Free where there is no room or something is wrong.
//
//go:noinline
//go:norace
func (l *Local) freeSlow(p uintptr) {
	l.check("Local.Free")
	if p == 0 {
		return
	}
	if race.On {
		race.Enter()
		defer race.Leave()
	}
	h := l.h
	tag := h.mustOwn("Local.Free", p).LoadTag()
	if tag&span.KindMask == span.KindLarge || sizeclass.Classes[uint8(tag)].Batch == 0 || !l.cached() {
		h.freeSlow("Local.Free", p)
		return
	}
	class := uint8(tag)
	k := l.k
	over := k.class(class).makeRoom(class)
	if !k.free(p) {
		h.mustOwn("Local.Free", p)
	}
	if over.n != 0 {
		if written := h.classes[class].put(h, over); written != 0 {
			panicWritten(written)
		}
	}
	runtime.KeepAlive(l)
}

// Calloc is [Heap.Calloc].
func (l *Local) Calloc(count, size int) unsafe.Pointer {
	n := product("Local.Calloc", count, size)
	if n < 0 || n > sizeclass.MaxSize {
		l.check("Local.Calloc")
		return l.h.Calloc(count, size)
	}
	ptr := l.Malloc(n)
	if ptr == nil {
		return nil
	}
	return zero(uintptr(ptr), n, 0)
}

// AlignedMalloc is [Heap.AlignedMalloc].
func (l *Local) AlignedMalloc(size, align int) unsafe.Pointer {
	checkAlign("Local.AlignedMalloc", align)
	if size < 0 {
		misuse("Local.AlignedMalloc", 0, "negative size %d", size)
	}
	if size <= sizeclass.MaxSize && align <= sizeclass.MaxSize {
		if c, ok := alignedClass(size, align); ok {
			return l.Malloc(int(sizeclass.Classes[c].Size))
		}
	}
	l.check("Local.AlignedMalloc")
	return osmem.Pointer(l.malloc("Local.AlignedMalloc", size, align))
}

// Realloc is [Heap.Realloc].
func (l *Local) Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer {
	l.check("Local.Realloc")
	return l.h.realloc("Local.Realloc", ptr, size, l.Malloc, l.Free)
}

// Close gives the free blocks that l holds back to the heap. Blocks in use stay
// as they are. Every other use of l after Close panics; a second Close does
// nothing.
func (l *Local) Close() {
	if l.h == nil {
		l.check("Local.Close")
	}
	l.k, l.closed = &noCache, true
	l.c.close()
}

// cached says whether l has a cache.
func (l *Local) cached() bool { return l.k != &noCache }

// Destroy is Close. It makes a Local an [Allocator].
func (l *Local) Destroy() error {
	l.Close()
	return nil
}

// close gives the blocks and the cache back. It runs once with effect.
//
//go:norace
func (c *localCache) close() {
	if race.On {
		race.Enter()
		defer race.Leave()
	}
	h := c.h
	h.seize.Lock()
	defer h.seize.Unlock()
	slot := c.slot
	if slot == 0 {
		return
	}
	c.slot = 0
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		h.locals = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	if h.closed.Load() {
		freeCache(slot)
		return
	}
	h.account.Give(cacheBytes)
	h.empty(cacheAt(slot)) // what somebody has written to is lost: this may be a cleanup, which nobody can guard
	h.gone.mallocs += cacheAt(slot).mallocs()
	freeCache(slot)
}
