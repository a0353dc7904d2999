package cheap

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/cleanup"
	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// A Local is a cache of a [Heap] for one goroutine. It does not pin the goroutine
// to its P, which is about half of the cost of Heap.Malloc and Heap.Free. It is
// for hot loops.
//
// Several goroutines must not call methods of one Local at the same time. The
// blocks belong to the heap: the Heap, any Local of it, and any goroutine may free
// them, and they stay valid when the Local is destroyed.
//
// Destroy returns the cached blocks to the heap. If a Local becomes unreachable
// without Destroy, its cached blocks return after the next garbage collection, and
// are not available until then.
type Local struct {
	h *Heap
	k *cache // off the Go heap, or noCache

	// The unit of the block that was freed last, and the record of that unit.
	// The record of a unit never changes, so this pair is never stale. It saves
	// a look-up that the next Malloc would have to wait for.
	lastUnit uintptr
	last     uintptr

	base uintptr // the tag of the heap's spans, less the class

	c      *localCache
	life   *life
	closed bool
}

// A life is an object that only one other refers to, a Local or an arena of the pool,
// and whose end stands for that of the other. A program may set a finalizer on a Local,
// which uses the Local once more. A weak pointer to the Local itself would be nil
// before that; one to its life is nil afterwards.
type life [16]byte

// localCache is the part of a Local that must outlive it if it is dropped.
type localCache struct {
	h     *Heap
	slot  uintptr     // of cache, or 0; under h.seize
	flush atomic.Bool // the heap asks for the blocks

	next, prev *localCache // in the list of the open ones; under h.seize

	dropped cleanup.Handle // of giveBack; used by the Local's goroutine
}

// noCache has no blocks and no room, so a Local with it takes the slow path.
// It is never written to.
var noCache cache

// NewLocal returns a Local of h. If there is no memory for its cache, a few KiB, or
// the limit is reached, the Local has no cache and is no faster than the heap.
func (h *Heap) NewLocal() *Local {
	h.mustBeOpen("Heap.NewLocal")
	l := h.newLocal()
	if l.cached() {
		l.life = new(life)
		l.c.dropped = cleanup.Add(l.life, (*localCache).giveBack, l.c)
	}
	return l
}

// newLocal returns a Local whose cache is not given back when the Local is dropped.
//
//go:norace
func (h *Heap) newLocal() *Local {
	if h.checked != nil {
		return &Local{h: h, k: &noCache, c: &localCache{h: h}, lastUnit: ^uintptr(0), base: h.id << span.KindBits}
	}
	return h.newCachedLocal()
}

// newCachedLocal is newLocal of a heap with a CheckLevel, too.
//
//go:norace
func (h *Heap) newCachedLocal() *Local {
	if race.Told {
		race.Enter()
		defer race.Leave()
	}
	l := &Local{h: h, k: &noCache, c: &localCache{h: h}, lastUnit: ^uintptr(0), base: h.id << span.KindBits}
	if !h.account.Take(cacheBytes) {
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
	return l
}

// Malloc is [Heap.Malloc].
//
//go:norace
//go:nosplit
func (l *Local) Malloc(size int) unsafe.Pointer {
	if uint(size) <= sizeclass.MaxSize {
		cc := l.k.at(uintptr(sizeclass.Of(size)))
		if p := cc.head; p != 0 && cc.takes < cc.sampleAt {
			b := blockAt(p)
			link := b.link
			// A block of a destroyed heap has no mark any more.
			if b.mark == seal(p, link, cc.factor) {
				cc.head = nextOf(link)
				cc.takes++
				b.mark = 0
				runtime.KeepAlive(l) // or its cleanup might empty the cache now
				if instrumented {
					l.h.handedOut(p, stateOf(link))
				}
				return osmem.Pointer(p)
			}
		}
	}
	p, _ := l.mallocSlow("Local.Malloc", size)
	return osmem.Pointer(p)
}

// TryMalloc is [Heap.TryMalloc].
func (l *Local) TryMalloc(size int) (unsafe.Pointer, error) {
	return l.tryMalloc("Local.TryMalloc", size)
}

//go:norace
func (l *Local) tryMalloc(op string, size int) (unsafe.Pointer, error) {
	if uint(size) <= sizeclass.MaxSize {
		if cc := l.k.class(sizeclass.Of(size)); !cc.due() {
			if p, was := cc.pop(); p != 0 {
				runtime.KeepAlive(l) // as in Malloc
				if instrumented {
					l.h.handedOut(p, was)
				}
				return osmem.Pointer(p), nil
			}
		}
	}
	p, err := l.mallocSlow(op, size)
	return osmem.Pointer(p), err
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
	var s *span.Span
	if p>>span.UnitShift == l.lastUnit {
		s = span.At(l.last)
	} else {
		if !span.Ready() { // the system had no memory for a cache, nor for the map
			goto slow
		}
		table := span.TableOf(p)
		if table == 0 {
			goto slow
		}
		s = table.Record(p)
		l.lastUnit, l.last = p>>span.UnitShift, s.Addr()
	}
	// A span of a destroyed heap has no tag.
	if c := s.LoadTag() - l.base; c < sizeclass.Count {
		if startsBlock(s, p) {
			cc := l.k.at(c)
			if !blockAt(p).isFree(p, cc.factor) {
				if cc.push(p) {
					runtime.KeepAlive(l)
					return
				}
			}
		}
	}
slow:
	l.freeSlow(p)
}

// mustBeOpen panics if l or its heap is destroyed. It also empties the cache if the
// heap has asked for that.
//
//go:norace
func (l *Local) mustBeOpen(op string) {
	if l.h == nil {
		panicMisuse(op, 0, "the Local was not made by Heap.NewLocal")
	}
	l.h.mustBeOpen(op)
	if l.closed {
		panicMisuse(op, 0, "the Local is destroyed")
	}
	if l.c.flush.Load() && l.c.flush.Swap(false) {
		l.empty()
	}
}

// mallocSlow is Malloc where the list is empty.
//
//go:noinline
//go:norace
func (l *Local) mallocSlow(op string, size int) (uintptr, error) {
	p, err := l.tryMallocSlow(op, size)
	l.h.refused(size, err)
	return p, err
}

// tryMallocSlow is mallocSlow without a call of HeapOptions.OnLimit.
//
//go:norace
func (l *Local) tryMallocSlow(op string, size int) (uintptr, error) {
	l.mustBeOpen(op)
	if uint(size) <= sizeclass.MaxSize && l.cached() {
		p, was, err := l.h.refill(l.k, sizeclass.Of(size))
		runtime.KeepAlive(l)
		if err == nil {
			l.h.finish(p, was)
			return p, nil
		}
	}
	return l.tryPastCache(op, size, sizeclass.Quantum)
}

// malloc allocates past the cache. If there is no memory it empties the cache and
// tries again.
func (l *Local) malloc(op string, size, align int) (uintptr, error) {
	p, err := l.tryPastCache(op, size, align)
	l.h.refused(size, err)
	return p, err
}

// tryPastCache is malloc without a call of HeapOptions.OnLimit.
func (l *Local) tryPastCache(op string, size, align int) (uintptr, error) {
	p, _, err := l.h.tryMalloc(op, size, align)
	if err != nil && l.cached() {
		l.empty()
		p, _, err = l.h.tryMalloc(op, size, align)
	}
	return p, err
}

// empty gives the blocks in the cache back to the heap.
//
//go:norace
func (l *Local) empty() {
	if race.Told {
		race.Enter()
	}
	l.h.empty(l.k)
	if race.Told {
		race.Leave()
	}
	l.h.mustBeUndamaged(0)
	runtime.KeepAlive(l)
}

// freeSlow is Free where there is no room, and for mistakes.
//
//go:noinline
//go:norace
func (l *Local) freeSlow(p uintptr) {
	l.mustBeOpen("Local.Free")
	k := l.k
	if !l.cached() {
		k = nil
	}
	l.h.freeSlow("Local.Free", k, p)
	runtime.KeepAlive(l)
}

// Calloc is [Heap.Calloc].
func (l *Local) Calloc(count, size int) unsafe.Pointer {
	p, _ := l.calloc("Local.Calloc", count, size)
	return p
}

// TryCalloc is [Heap.TryCalloc].
func (l *Local) TryCalloc(count, size int) (unsafe.Pointer, error) {
	return l.calloc("Local.TryCalloc", count, size)
}

//go:norace
func (l *Local) calloc(op string, count, size int) (unsafe.Pointer, error) {
	if n, small := smallProduct(count, size); small && n <= sizeclass.MaxSize && !instrumented {
		if p := l.k.calloc(n); p != 0 {
			runtime.KeepAlive(l) // as in Malloc
			return osmem.Pointer(p), nil
		}
	}
	n, ok := mustMul(op, count, size)
	if !ok || n > sizeclass.MaxSize {
		l.mustBeOpen(op)
		return l.h.calloc(op, count, size)
	}
	ptr, err := l.tryMalloc(op, n)
	if err != nil {
		return nil, err
	}
	return zero(uintptr(ptr), n, 0), nil
}

// AlignedMalloc is [Heap.AlignedMalloc].
func (l *Local) AlignedMalloc(size, align int) unsafe.Pointer {
	const op = "Local.AlignedMalloc"
	mustBePowerOfTwo(op, align)
	if size < 0 {
		panicMisuse(op, 0, "negative size %d", size)
	}
	if size <= sizeclass.MaxSize && align <= sizeclass.MaxSize && l.h.checked == nil {
		if c, ok := alignedClass(size, align); ok {
			p, _ := l.tryMalloc(op, int(sizeclass.Classes[c].Size))
			return p
		}
	}
	l.mustBeOpen(op)
	p, _ := l.malloc(op, size, align)
	return osmem.Pointer(p)
}

// Realloc is [Heap.Realloc].
func (l *Local) Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer {
	p, _ := l.realloc("Local.Realloc", ptr, size)
	return p
}

// TryRealloc is [Heap.TryRealloc].
func (l *Local) TryRealloc(ptr unsafe.Pointer, size int) (unsafe.Pointer, error) {
	return l.realloc("Local.TryRealloc", ptr, size)
}

//go:norace
func (l *Local) realloc(op string, ptr unsafe.Pointer, size int) (unsafe.Pointer, error) {
	if uint(size) <= sizeclass.MaxSize && !instrumented && span.Ready() { // as in Free
		if to := l.k.realloc(uintptr(ptr), uintptr(size), sizeclass.MaxSize); to != 0 {
			runtime.KeepAlive(l) // as in Malloc
			return osmem.Pointer(to), nil
		}
	}
	l.mustBeOpen(op)
	return l.h.realloc(op, ptr, size, l.mallocForRealloc, l.Free)
}

// mallocForRealloc is TryMalloc without a call of HeapOptions.OnLimit.
func (l *Local) mallocForRealloc(size int) (unsafe.Pointer, error) {
	p, err := l.tryMallocSlow("Local.TryMalloc", size)
	return osmem.Pointer(p), err
}

// UsableSize is [Heap.UsableSize].
func (l *Local) UsableSize(ptr unsafe.Pointer) int {
	l.mustBeOpen("Local.UsableSize")
	return l.h.usableSize("Local.UsableSize", ptr)
}

// Destroy returns the cached blocks of l to the heap. Live blocks stay as they are:
// they belong to the heap. A second Destroy returns [ErrDestroyed]; any other use
// of l after Destroy panics.
func (l *Local) Destroy() error {
	if l.h == nil {
		l.mustBeOpen("Local.Destroy")
	}
	if l.closed {
		return ErrDestroyed
	}
	l.k, l.closed = &noCache, true
	l.c.dropped.Stop()
	l.c.giveBack()
	return nil
}

// cached reports whether l has a cache.
func (l *Local) cached() bool { return l.k != &noCache }

// giveBack gives the blocks and the cache back. Only the first call has an effect.
// It is called when the Local was dropped, too.
//
//go:norace
func (c *localCache) giveBack() {
	if race.Told {
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
	h.empty(cacheAt(slot))
	h.gone.mallocs += cacheAt(slot).mallocs()
	freeCache(slot)
}
