package heap

import (
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// A Local is a cheap.Local.
type Local struct {
	_ noCopy

	// k is the cache, off the Go heap, or noCache. It is loaded by Malloc, Free, Local.cache and Local.enter
	// only: local_cache.go says who may write to it.
	k *cache

	// The unit of the block that was freed last, and the record of that unit.
	// The record of a unit never changes, so this pair is never stale. It saves
	// a look-up that the next Malloc would have to wait for. No other goroutine
	// touches lastUnit, so race.Write of it stands for a use of the Local.
	lastUnit uintptr
	last     uintptr

	base uintptr // the tag of the heap's spans, less the class

	h      *Heap
	c      *localCache
	life   *Life
	closed bool

	in     bool  // the goroutine may be in the cache; see local_cache.go
	misses uint8 // number of slow paths that will not ask for a cache; see mostMisses
}

// A noCopy makes go vet report copies of a type that contains it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// A Life is an object that only its owner refers to: a Local, or an arena of the pool.
// It becomes unreachable with its owner. The program may set a finalizer on a Local,
// and the finalizer may use the Local. A weak pointer to the Local is nil before the
// finalizer runs; a weak pointer to the Life is nil only afterwards.
type Life [16]byte

// NewLocal is cheap.Heap.NewLocal.
func (h *Heap) NewLocal() *Local {
	h.mustBeOpen("Heap.NewLocal")
	l := h.newLocal()
	l.life = new(Life)
	l.c.local = weak.Make(l)
	l.c.dropped = gcwatch.AddCleanup(l.life, (*localCache).giveBack, l.c)
	l.enter(true)
	l.leave()
	return l
}

// Malloc is cheap.Local.Malloc.
//
//go:norace
//go:nosplit
//go:nocheckptr
//go:noinline
func (l *Local) Malloc(size int) unsafe.Pointer {
	race.Write(unsafe.Pointer(&l.lastUnit))
	if uint(size) <= sizeclass.MaxSize {
		c := uintptr(sizeclass.Of(size))
		k := atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&l.k))) // here the section begins: no calls
		cc := (*cacheClass)(unsafe.Add(k, unsafe.Offsetof(cache{}.classes)+c*cacheClassSize))
		if p := cc.head; p != 0 && cc.takes < cc.sampleAt {
			b := (*block.Block)(unsafe.Add(unsafe.Pointer(nil), p)) // block.At
			link := b.Link
			// A block of a destroyed heap has no canary any more.
			if b.Canary == (link<<1|link>>63^uint64(p))*cc.factor { // block.Checksum
				cc.head = uintptr(link &^ uint64(block.StateBits))
				cc.takes++
				b.Canary = 0
				raceAcquire(p, block.StateOf(link))
				return osmem.Pointer(p)
			}
		}
	}
	p, _ := l.allocSlow("Local.Malloc", size, sizeclass.Quantum)
	return osmem.Pointer(p)
}

// TryMalloc is cheap.Local.TryMalloc.
//
//go:norace
func (l *Local) TryMalloc(size int) (unsafe.Pointer, error) {
	if uint(size) <= sizeclass.MaxSize {
		if p := l.takeCached(sizeclass.Of(size)); p != 0 {
			return osmem.Pointer(p), nil
		}
	}
	p, err := l.allocSlow("Local.TryMalloc", size, sizeclass.Quantum)
	return osmem.Pointer(p), err
}

// takeCached returns a block of class c from the list of the cache, or 0 if there is none.
//
//go:norace
func (l *Local) takeCached(c uint8) (p uintptr) {
	race.Write(unsafe.Pointer(&l.lastUnit))
	l.in = true
	var was block.State
	if cc := l.cache().class(c); !cc.due() {
		p, was = cc.pop()
	}
	l.in = false
	raceAcquire(p, was)
	return p
}

// Free is cheap.Local.Free.
//
//go:norace
//go:nosplit
//go:nocheckptr
//go:noinline
func (l *Local) Free(ptr unsafe.Pointer) {
	race.Write(unsafe.Pointer(&l.lastUnit))
	p := uintptr(ptr)
	l.h.raceRelease(p)
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
			k := atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&l.k))) // here the section begins: no calls
			cc := (*cacheClass)(unsafe.Add(k, unsafe.Offsetof(cache{}.classes)+c*cacheClassSize))
			b := (*block.Block)(unsafe.Add(unsafe.Pointer(nil), p)) // block.At
			link, puts := b.Link, cc.puts
			if b.Canary^(link<<1|link>>63^uint64(p))*cc.factor > block.SortedBit { // block.IsFree
				if puts < cc.takes { // cacheClass.push
					link = uint64(cc.head)
					b.Link, b.Canary = link, (link<<1|link>>63^uint64(p))*cc.factor
					cc.puts = puts + 1
					cc.head = p
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
	l.in = false // the caller may have left it set
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

// allocSlow is Malloc if the list of the cache is empty: see Heap.allocSlow.
//
//go:noinline
//go:norace
func (l *Local) allocSlow(op string, size, align int) (uintptr, error) {
	l.mustBeOpen(op)
	return l.h.allocSlow(op, l, size, align)
}

// empty gives the blocks in the cache back to the heap.
//
//go:norace
func (l *Local) empty() {
	race.Enter()
	if k := l.enter(false); k != nil {
		l.h.empty(k)
		l.in = false
	}
	race.Leave()
	l.h.mustBeUndamaged(0)
}

// freeSlow is Free if the list of the cache is full, and for mistakes.
//
//go:noinline
//go:norace
func (l *Local) freeSlow(p uintptr) {
	l.mustBeOpen("Local.Free")
	l.h.freeSlow("Local.Free", l, p)
}

// Calloc is cheap.Local.Calloc.
func (l *Local) Calloc(count, size int) unsafe.Pointer {
	p, _ := l.allocZeroed("Local.Calloc", count, size)
	return p
}

// TryCalloc is cheap.Local.TryCalloc.
func (l *Local) TryCalloc(count, size int) (unsafe.Pointer, error) {
	return l.allocZeroed("Local.TryCalloc", count, size)
}

//go:norace
func (l *Local) allocZeroed(op string, count, size int) (unsafe.Pointer, error) {
	race.Write(unsafe.Pointer(&l.lastUnit))
	if n, small := smallProduct(count, size); small && n <= sizeclass.MaxSize {
		l.in = true
		if p := l.cache().allocZeroed(n); p != 0 {
			l.in = false
			return osmem.Pointer(p), nil
		}
	}
	l.mustBeOpen(op)
	return l.h.allocZeroed(op, l, count, size)
}

// AlignedMalloc is cheap.Local.AlignedMalloc.
func (l *Local) AlignedMalloc(size, align int) unsafe.Pointer {
	const op = "Local.AlignedMalloc"
	MustBePowerOfTwo(op, align)
	if size < 0 {
		panicMisuse(op, 0, "negative size %d", size)
	}
	if c, ok := alignedClass(size, align); ok {
		if p := l.takeCached(c); p != 0 {
			return osmem.Pointer(p)
		}
	}
	p, _ := l.allocSlow(op, size, align)
	return osmem.Pointer(p)
}

// Realloc is cheap.Local.Realloc.
func (l *Local) Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer {
	p, _ := l.realloc("Local.Realloc", ptr, size)
	return p
}

// TryRealloc is cheap.Local.TryRealloc.
func (l *Local) TryRealloc(ptr unsafe.Pointer, size int) (unsafe.Pointer, error) {
	return l.realloc("Local.TryRealloc", ptr, size)
}

//go:norace
func (l *Local) realloc(op string, ptr unsafe.Pointer, size int) (unsafe.Pointer, error) {
	race.Write(unsafe.Pointer(&l.lastUnit))
	if uint(size) <= sizeclass.MaxSize && span.Ready() { // as in Free
		l.in = true
		if to := l.cache().realloc(uintptr(ptr), uintptr(size), sizeclass.MaxSize/2); to != 0 {
			l.in = false
			return osmem.Pointer(to), nil
		}
	}
	l.mustBeOpen(op)
	to, err := l.h.reallocSlow(op, l, ptr, size)
	if err != nil {
		l.h.refused(size, err)
	}
	return to, err
}

// UsableSize is cheap.Local.UsableSize.
func (l *Local) UsableSize(ptr unsafe.Pointer) int {
	l.mustBeOpen("Local.UsableSize")
	return l.h.usableSize("Local.UsableSize", ptr)
}

// Destroy is cheap.Local.Destroy.
//
//go:norace
func (l *Local) Destroy() error {
	race.Write(unsafe.Pointer(&l.lastUnit))
	if l.h == nil {
		l.mustBeOpen("Local.Destroy")
	}
	if l.closed {
		return errDestroyed
	}
	l.k, l.closed = &noCache, true
	l.c.dropped.Stop()
	l.c.giveBack()
	return nil
}
