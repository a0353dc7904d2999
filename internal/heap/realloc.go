package heap

import (
	"errors"
	"math/bits"
	"runtime/debug"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// Realloc is cheap.Heap.Realloc.
func (h *Heap) Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer {
	p, _ := h.realloc("Heap.Realloc", ptr, size)
	return p
}

// TryRealloc is cheap.Heap.TryRealloc.
func (h *Heap) TryRealloc(ptr unsafe.Pointer, size int) (unsafe.Pointer, error) {
	return h.realloc("Heap.TryRealloc", ptr, size)
}

// realloc resizes a large block within its pages, and a small one within the P's cache. If that does
// not serve, reallocSlow does.
//
//go:norace
func (h *Heap) realloc(op string, ptr unsafe.Pointer, size int) (unsafe.Pointer, error) {
	if uint(size) > sizeclass.MaxSize {
		if h.hasPages(uintptr(ptr), uintptr(size)) {
			return ptr, nil
		}
	} else {
		var to uintptr
		slot := h.caches.Pin()
		if slot != 0 {
			to = cacheAt(slot).realloc(uintptr(ptr), uintptr(size), pinnedBytes)
		}
		h.caches.Unpin(slot)
		if to != 0 {
			return osmem.Pointer(to), nil
		}
	}
	to, err := h.reallocSlow(op, nil, ptr, size)
	if err != nil {
		h.refused(size, err)
	}
	return to, err
}

// hasPages reports whether p, which may be any number, is a large block of the heap whose size in
// whole pages is that of size bytes. The block cannot end meanwhile, as it is the caller's.
//
//go:norace
func (h *Heap) hasPages(p, size uintptr) bool {
	s := span.Lookup(p)
	return s != nil && s.LoadTag() == h.id<<span.KindBits|span.KindLarge && s.Base == p && s.Size-size < osmem.PageSize
}

// realloc resizes the small block at p, which may be any number, to size bytes: it leaves
// the block where it is, or takes another one from the cache, copies at most most bytes,
// and frees the one at p into the cache. It returns 0, and changes nothing,
// if p is not the start of a small block of the heap that is in use, or if the cache has
// no block or no room.
//
// It looks p up once, where Malloc, a copy and Free would look it up twice.
//
//go:norace
func (k *cache) realloc(p, size, most uintptr) (to uintptr) {
	table := span.TableOf(p)
	if race.Told || table == 0 { // the slow path tells the detector
		return 0
	}
	s := table.Record(p)
	c := s.LoadTag() - k.base
	if c >= sizeclass.Count || !startsBlock(s, p) {
		return 0
	}
	from := k.at(c)
	if block.At(p).IsFree(p, from.factor) {
		return 0
	}
	n, old := sizeclass.Of(int(size)), s.Size
	if staysInPlace(size, old) {
		return p
	}
	if size = min(size, old); size > most || from.puts >= from.takes {
		return 0
	}
	cc := k.class(n)
	if cc.due() {
		return 0
	}
	if to, _ = cc.pop(); to != 0 {
		copyBlock(osmem.Pointer(to), osmem.Pointer(p), size)
		from.push(p)
	}
	return to
}

// staysInPlace reports whether Realloc leaves a small block of old bytes where it is if
// it is to have size bytes: it fits, and a smaller class would not save half of it.
//
//go:norace
func staysInPlace(size, old uintptr) bool {
	return size <= old && uintptr(sizeclass.Classes[sizeclass.Of(int(size))].Size) > old/2
}

// A plan says how Realloc gives a block another size.
type plan struct {
	how      way
	s        *span.Span // the record of the block, or nil if the heap has a CheckLevel
	old      uintptr    // the size of the block
	fleeting bool       // the memory of the block may go if the program frees it, by mistake, meanwhile
}

// A way is what Realloc does with the block.
type way int

const (
	stay    way = iota // it serves as it is: its size class, or its pages, suffice
	resize             // it is extended or shrunk, or its pages move; it is copied if neither can be
	another            // it is copied to another block
)

// plan returns the plan for the block at p, which is to have size bytes. It panics if p is not the
// start of a live block of the heap.
//
//go:norace
func (h *Heap) plan(op string, p, size uintptr) plan {
	if h.checked != nil { // the block moves always, so that an old pointer is found
		return plan{another, nil, uintptr(h.checked.usable(op, p)), true}
	}
	s, v := judge(p, h.id)
	if v != blockLive {
		panicNotLive(op, p, v, s)
	}
	kind, old := s.LoadTag()&span.KindMask, s.Size
	small, large, how := size <= sizeclass.MaxSize, kind == span.KindLarge, another
	switch {
	case small && !large && staysInPlace(size, old), !small && large && old-size < osmem.PageSize:
		how = stay
	case small && isAlone(kind) && isAlone(uintptr(sizeclass.Of(int(size)))): // its unit is its own either way
		how = resize
	case !small && (large || isAlone(kind)) && size <= maxLarge:
		how = resize
	}
	return plan{how, s, old, kind >= sizeclass.Count}
}

// alignGrown returns the alignment of the block of size bytes that a block of old bytes is copied to. Blocks that grow in
// turn would be copied each time if they lay one behind the other. So a large one that grows by
// at most a half is placed such that it can grow to the next power of two of units, and others of its size begin behind.
// Not so if what lies between them would have memory, as a part of huge pages.
func (h *Heap) alignGrown(old, size uintptr) int {
	if h.huge || h.checked != nil || size <= max(old, sizeclass.MaxSize) || size-old > old/2 || size >= span.OwnMapping/4 {
		return sizeclass.Quantum
	}
	return span.UnitSize << bits.Len(uint(unitsOf(size)))
}

// reallocSlow is Realloc where the cache does not serve. The cache is that of l or, if l is nil, that
// of the P. If there is no memory for a copy, it tries once more without one: alloc has emptied the
// caches, and what did not suffice for another block may suffice for a larger one.
//
//go:noinline
//go:norace
func (h *Heap) reallocSlow(op string, l *Local, ptr unsafe.Pointer, size int) (to unsafe.Pointer, err error) {
	h.begin(op)
	var unseen unsafe.Pointer // a block that the program does not get if the rest panics
	defer func() {
		if unseen == nil {
			h.end()
			return
		}
		defer h.end()
		h.Free(unseen)
		if e := recover(); e != nil {
			panic(errs.Renamed(e, op)) // op is not that of Free
		}
	}()
	p := uintptr(ptr)
	if size < 0 {
		panicMisuse(op, p, "negative size %d", size)
	}
	var q uintptr
	if p == 0 {
		q, _, err = h.alloc(op, l, size, sizeclass.Quantum)
		return osmem.Pointer(q), err
	}
	plan := h.plan(op, p, uintptr(size))
	if plan.how == stay {
		return ptr, nil
	}
	if plan.how == resize && size <= sizeclass.MaxSize {
		if q = h.pickResized(sizeclass.Of(size)); q != 0 {
			plan.how = another
		}
	}
	for short := false; ; short = true {
		if plan.how == resize {
			if to = h.resize(plan.s, p, uintptr(size), short); to != nil {
				return to, nil
			}
		}
		if short {
			return nil, err
		}
		if q == 0 {
			align := h.alignGrown(plan.old, uintptr(size))
			q, _, err = h.alloc(op, l, size, align)
			if err != nil && align > sizeclass.Quantum && !errors.Is(err, errLimit) {
				q, _, err = h.alloc(op, l, size, sizeclass.Quantum) // there may be a gap, but no region
			}
		}
		if err == nil {
			break
		}
		if plan.s != nil && uintptr(size) <= plan.old {
			return ptr, nil // a smaller block would be better, but this one serves
		}
	}
	to = osmem.Pointer(q)
	unseen = to
	if n := min(plan.old, uintptr(size)); !plan.fleeting {
		copyBlock(to, ptr, n) // the units of small blocks stay readable
	} else if !copyFleeting(to, ptr, n) {
		panicMisuse(op, p, "the block at %#x lost its memory while it was copied; look for another goroutine that frees or resizes it", p)
	}
	if l == nil {
		h.Free(ptr)
	} else {
		l.Free(ptr)
	}
	unseen = nil
	return to, nil
}

// isAlone reports whether kind is that of a class whose blocks have a span each.
//
//go:norace
func isAlone(kind uintptr) bool {
	return kind < sizeclass.Count && sizeclass.Classes[kind].Blocks == 1
}

// resize resizes the block at p, whose record is s, without a copy. The block is large, or has a span for itself
// and is to be large or to have one still. resize returns nil, and changes nothing, if that is not possible,
// or, unless short says that there is no memory for a copy, if a copy is faster.
//
//go:norace
func (h *Heap) resize(s *span.Span, p, size uintptr, short bool) unsafe.Pointer {
	h.raceRelease(p)
	var to uintptr
	if size <= sizeclass.MaxSize {
		to = h.reclass(s, p, sizeclass.Of(int(size)))
	} else if to = h.resizeLarge(s, p, osmem.RoundPage(size), short); to != 0 {
		h.sampleLarge(to)
	}
	raceAcquire(to, block.New)
	return osmem.Pointer(to)
}

// copyFleeting is copyBlock from memory that may go meanwhile. It returns false if the copy faults. It
// takes 14 ns.
func copyFleeting(to, from unsafe.Pointer, n uintptr) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { ok = recover() == nil }()
	copyBlock(to, from, n)
	return
}

// copyBlock copies n bytes between two blocks that have as many or more.
//
//go:norace
func copyBlock(to, from unsafe.Pointer, n uintptr) {
	copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
}
