package heap

import (
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
	if p := h.reallocCached(ptr, size); p != nil {
		return p
	}
	p, _ := h.realloc("Heap.Realloc", nil, ptr, size)
	return p
}

// TryRealloc is cheap.Heap.TryRealloc.
func (h *Heap) TryRealloc(ptr unsafe.Pointer, size int) (unsafe.Pointer, error) {
	if p := h.reallocCached(ptr, size); p != nil {
		return p, nil
	}
	return h.realloc("Heap.TryRealloc", nil, ptr, size)
}

// reallocCached is Realloc of a small block within the P's cache, and of a large block within its
// pages. It returns nil if that does not serve.
//
//go:norace
func (h *Heap) reallocCached(ptr unsafe.Pointer, size int) unsafe.Pointer {
	if uint(size) > sizeclass.MaxSize {
		if h.hasPages(uintptr(ptr), uintptr(size)) {
			return ptr
		}
		return nil
	}
	var to uintptr
	slot := h.caches.Pin()
	if slot != 0 {
		to = cacheAt(slot).realloc(uintptr(ptr), uintptr(size), pinnedBytes)
	}
	h.caches.Unpin(slot)
	return osmem.Pointer(to)
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
type plan int

const (
	stay    plan = iota // the block serves as it is: its size class, or its pages, suffice
	resize              // it is extended or shrunk, or its pages move; it is copied if neither can be
	another             // it is copied to another block
)

// planOf returns the plan for a block of old bytes, with the kind of its span, that is to have size
// bytes.
//
//go:norace
func planOf(kind, old, size uintptr) plan {
	large := kind == span.KindLarge
	switch {
	case size <= sizeclass.MaxSize:
		switch {
		case large:
		case staysInPlace(size, old):
			return stay
		case isAlone(kind) && isAlone(uintptr(sizeclass.Of(int(size)))): // its unit is its own either way
			return resize
		}
	case large && old-size < osmem.PageSize:
		return stay
	case (large || isAlone(kind)) && size <= maxLarge:
		return resize
	}
	return another
}

// realloc is Realloc. The cache is that of l or, if l is nil, that of the P.
//
//go:norace
func (h *Heap) realloc(op string, l *Local, ptr unsafe.Pointer, size int) (to unsafe.Pointer, err error) {
	if h.checked != nil {
		to, err = h.checked.realloc(op, ptr, size)
	} else {
		to, err = h.tryRealloc(op, l, ptr, size)
	}
	if err != nil {
		h.refused(size, err)
	}
	return to, err
}

// tryRealloc is realloc without a call of HeapOptions.OnLimit. If there is no memory for a copy, it
// tries once more without one: alloc has emptied the caches, and what did not suffice for another block
// may suffice for a larger one.
//
//go:norace
func (h *Heap) tryRealloc(op string, l *Local, ptr unsafe.Pointer, size int) (unsafe.Pointer, error) {
	h.mustBeOpen(op)
	p := uintptr(ptr)
	if size < 0 {
		panicMisuse(op, p, "negative size %d", size)
	}
	if p == 0 {
		to, _, err := h.alloc(op, l, size, sizeclass.Quantum)
		return osmem.Pointer(to), err
	}
	s, v := judge(p, h.id)
	if v != blockLive {
		panicNotLive(op, p, v, s)
	}
	old, kind := s.Size, s.LoadTag()&span.KindMask
	how := planOf(kind, old, uintptr(size))
	if how == stay {
		return ptr, nil
	}
	h.begin(op)
	defer h.end()
	var q uintptr
	var err error
	if how == resize && size <= sizeclass.MaxSize {
		if q = h.pickResized(sizeclass.Of(size)); q != 0 {
			how = another
		}
	}
	for short := false; ; short = true {
		if how == resize {
			if to := h.resize(s, p, uintptr(size), short); to != nil {
				return to, nil
			}
		}
		if short {
			return nil, err
		}
		if q == 0 {
			q, _, err = h.alloc(op, l, size, sizeclass.Quantum)
		}
		if err == nil {
			to := osmem.Pointer(q)
			h.move(op, l, to, ptr, min(old, uintptr(size)), kind >= sizeclass.Count)
			return to, nil
		}
		if uintptr(size) <= old {
			return ptr, nil // a smaller block would be better, but this one serves
		}
	}
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

// move copies n bytes of the block at from to the block at to, which is new, and frees the one at from.
// If that panics, the program does not get the block at to, and move frees that instead. Another
// goroutine may free or resize the block at from meanwhile, by mistake; fleeting says that its memory
// may go then. The units of small blocks stay readable.
func (h *Heap) move(op string, l *Local, to, from unsafe.Pointer, n uintptr, fleeting bool) {
	moved := false
	defer func() {
		if moved {
			return
		}
		h.Free(to)
		if e := recover(); e != nil {
			panic(errs.Renamed(e, op)) // op is not that of Free
		}
	}()
	if !fleeting {
		copyBlock(to, from, n)
	} else if !copyFleeting(to, from, n) {
		panicMisuse(op, uintptr(from), "the block at %#x lost its memory while it was copied; look for another goroutine that frees or resizes it", from)
	}
	if l == nil {
		h.Free(from)
	} else {
		l.Free(from)
	}
	moved = true
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
