package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// GoodSize returns the usable size, in bytes, of the block that a [Heap]
// returns for a request of size bytes: the block size of its size class, or, for
// more than 32 KiB, whole pages of the operating system. Above 128 bytes the
// block is at most an eighth larger than size, or less than a page larger where pages
// have more than 4 KiB: with pages of 64 KiB a block of 33 KiB takes 64. It is not for
// AlignedMalloc, whose blocks may be larger. GoodSize panics if size is negative, or
// so large that rounding it up overflows.
func GoodSize(size int) int {
	if size < 0 {
		panicMisuse("GoodSize", 0, "negative size %d", size)
	}
	if size <= sizeclass.MaxSize {
		return int(sizeclass.Classes[sizeclass.Of(size)].Size)
	}
	rounded := int(osmem.RoundPage(uintptr(size)))
	if rounded <= 0 {
		panicMisuse("GoodSize", 0, "%d bytes, rounded up to pages, overflow an int", size)
	}
	return rounded
}

// UsableSize returns the size in bytes of the block at ptr, a live block of any
// heap of this package. It may be larger than the size that was asked for; the
// caller may use all of it. UsableSize returns 0 for nil, and panics if ptr is
// not the start of a live block of a heap.
func UsableSize(ptr unsafe.Pointer) int {
	if ptr == nil {
		return 0
	}
	s, v := judge(uintptr(ptr), anyHeap)
	if h := checkedHeapOf(s); h != nil {
		return h.checked.usable("UsableSize", uintptr(ptr))
	}
	if v != blockLive {
		panicNotLive("UsableSize", uintptr(ptr), v, s)
	}
	return int(s.Size)
}

// UsableSize returns the size in bytes of the block at ptr, which may be larger
// than the size that was asked for; the caller may use all of it. It returns 0
// for nil. It panics if ptr is not the start of a live block of this heap; see
// [Heap.Free].
func (h *Heap) UsableSize(ptr unsafe.Pointer) int { return h.usableSize("Heap.UsableSize", ptr) }

func (h *Heap) usableSize(op string, ptr unsafe.Pointer) int {
	if ptr == nil {
		return 0
	}
	h.mustBeOpen(op)
	if h.checked != nil {
		return h.checked.usable(op, uintptr(ptr))
	}
	return int(h.mustOwn(op, uintptr(ptr)).Size)
}

// Owns reports whether ptr is the start of a live block of this heap. ptr may
// have any value.
func (h *Heap) Owns(ptr unsafe.Pointer) bool {
	const op = "Heap.Owns"
	h.mustBeOpen(op)
	if h.checked != nil {
		return h.checked.owns(op, uintptr(ptr))
	}
	_, v := judge(uintptr(ptr), h.id)
	return v == blockLive
}

// Calloc returns a zeroed block for count elements of size bytes each. It returns
// nil if there is no memory, as [Heap.Malloc] does, and if the product overflows.
// Memory that comes fresh from the operating system is zero already; Calloc does
// not write to it again.
func (h *Heap) Calloc(count, size int) unsafe.Pointer {
	if p := h.allocZeroedCached(count, size); p != nil {
		return p
	}
	p, _ := h.allocZeroed("Heap.Calloc", count, size)
	return p
}

// TryCalloc is like [Heap.Calloc], but returns an error instead of nil. The error wraps
// [ErrLimit] or [ErrNoMemory].
func (h *Heap) TryCalloc(count, size int) (unsafe.Pointer, error) {
	if p := h.allocZeroedCached(count, size); p != nil {
		return p, nil
	}
	return h.allocZeroed("Heap.TryCalloc", count, size)
}

// pinnedBytes is how many bytes a goroutine clears or copies at most while it is pinned.
// That takes about as long as Malloc and Free.
const pinnedBytes = 4 << 10

// allocZeroedCached is Calloc from the list of the P's cache. It returns nil if that does not
// serve.
//
//go:norace
func (h *Heap) allocZeroedCached(count, size int) unsafe.Pointer {
	n, small := smallProduct(count, size)
	if !small || n > pinnedBytes {
		return nil
	}
	var p uintptr
	slot := h.caches.Pin()
	if slot != 0 {
		p = cacheAt(slot).allocZeroed(n)
	}
	h.caches.Unpin(slot)
	return osmem.Pointer(p)
}

// smallProduct returns count × size and true, if neither is negative or above 65,535.
func smallProduct(count, size int) (n uint, ok bool) {
	return uint(count) * uint(size), uint(count)|uint(size) < 1<<16
}

// allocZeroed takes a block from the list of the class of n bytes, and clears n bytes of it.
// It returns 0 if the list has none.
//
// The block is taken and cleared by the owner of the cache, so Destroy, which seizes the
// cache, waits until it is cleared.
//
//go:norace
func (k *cache) allocZeroed(n uint) uintptr {
	cc := k.class(sizeclass.Of(int(n)))
	if race.Told || cc.due() { // the slow path tells the detector of the block before it is cleared
		return 0
	}
	p, was := cc.pop()
	if p != 0 {
		zero(p, int(n), was)
	}
	return p
}

func (h *Heap) allocZeroed(op string, count, size int) (unsafe.Pointer, error) {
	n, ok := mustMul(op, count, size)
	ptr, err := h.tryAllocZeroed(op, n, ok)
	h.refused(n, err)
	return ptr, err
}

// tryAllocZeroed is allocZeroed of n bytes without a call of HeapOptions.OnLimit.
func (h *Heap) tryAllocZeroed(op string, n int, ok bool) (unsafe.Pointer, error) {
	h.begin(op)
	defer h.end()
	if !ok {
		return nil, noMemory(errTooLarge)
	}
	p, was := h.takeCached(n)
	if p == 0 {
		var err error
		if p, was, err = h.alloc(op, nil, n, sizeclass.Quantum); err != nil {
			return nil, err
		}
	}
	return zero(p, n, was), nil
}

// takeCached returns a block of size bytes from the list of the P's cache, and what its
// canary said. p is 0 if there is none.
//
//go:norace
func (h *Heap) takeCached(size int) (p uintptr, was blockState) {
	if uint(size) > sizeclass.MaxSize {
		return 0, 0
	}
	slot := h.caches.Pin()
	if slot != 0 {
		if cc := cacheAt(slot).class(sizeclass.Of(size)); !cc.due() {
			p, was = cc.pop()
		}
	}
	h.caches.Unpin(slot)
	handedOut(p, was)
	return p, was
}

// begin and end enclose the code that writes to a block between taking it and
// returning it. Destroy waits for that code.
//
//go:norace
func (h *Heap) begin(op string) {
	race.Enter()
	h.busy.Add(1)
	if h.closed.Load() || h.id == 0 {
		h.panicNotBegun(op)
	}
	race.Leave()
}

// panicNotBegun is the end of begin where the heap is not open. It is apart from begin so that the
// compiler can inline that.
//
//go:noinline
//go:norace
func (h *Heap) panicNotBegun(op string) {
	h.busy.Add(-1)
	race.Leave()
	h.panicNotOpen(op)
}

// end ends what begin began.
//
//go:norace
func (h *Heap) end() {
	race.Enter()
	h.busy.Add(-1)
	race.Leave()
}

// zero clears the first n bytes of the block at p, whose canary said was.
//
//go:norace
func zero(p uintptr, n int, was blockState) unsafe.Pointer {
	if was&stateZeroed != 0 {
		n = min(n, sizeclass.Quantum)
	}
	ptr := osmem.Pointer(p)
	// A block of a heap with a CheckLevel begins behind its header, so it need not begin or end
	// with a page.
	if was&stateZeroed == 0 && n >= span.OwnMapping && span.Hollow(p, uintptr(n)) {
		return ptr // pages that the program does not touch take no memory
	}
	clear(unsafe.Slice((*byte)(ptr), n)) // the block has n bytes or more
	return ptr
}

// AlignedMalloc is like [Heap.Malloc], for an address that is a multiple of align.
// It panics if align is not a power of two.
func (h *Heap) AlignedMalloc(size, align int) unsafe.Pointer {
	mustBePowerOfTwo("Heap.AlignedMalloc", align)
	if size >= 0 && size <= sizeclass.MaxSize {
		if c, ok := alignedClass(size, align); ok {
			if p, _ := h.takeCached(int(sizeclass.Classes[c].Size)); p != 0 {
				return osmem.Pointer(p)
			}
		}
	}
	p, _ := h.allocSlow("Heap.AlignedMalloc", nil, size, align)
	return osmem.Pointer(p)
}

// Realloc resizes the block at ptr to at least size bytes and returns its address,
// which changes if the block cannot be resized in place. The contents are kept,
// up to the smaller of the two sizes. If there is no memory, Realloc returns nil
// and the block at ptr stays as it is.
//
// A nil ptr makes it Malloc. A size of 0 gives a block of size 0; it does not
// free. Realloc panics if ptr is not the start of a live block of this heap; see
// [Heap.Free]. A block from AlignedMalloc keeps its alignment only as long as it
// stays in place.
//
// A large block that cannot grow in place needs room for both sizes under the limit,
// because it is copied. On Linux a block of 16 MiB or more (1 MiB on 32-bit systems)
// needs room for the difference only: its pages move to other addresses.
func (h *Heap) Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer {
	if p := h.reallocCached(ptr, size); p != nil {
		return p
	}
	p, _ := h.realloc("Heap.Realloc", nil, ptr, size)
	return p
}

// TryRealloc is like [Heap.Realloc], but returns an error instead of nil. The error
// wraps [ErrLimit] or [ErrNoMemory].
func (h *Heap) TryRealloc(ptr unsafe.Pointer, size int) (unsafe.Pointer, error) {
	if p := h.reallocCached(ptr, size); p != nil {
		return p, nil
	}
	return h.realloc("Heap.TryRealloc", nil, ptr, size)
}

// reallocCached is Realloc of a small block within the P's cache. It returns nil if that
// does not serve.
//
//go:norace
func (h *Heap) reallocCached(ptr unsafe.Pointer, size int) unsafe.Pointer {
	if uint(size) > sizeclass.MaxSize {
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

// realloc resizes the small block at p, which may be any number, to size bytes: it leaves
// the block where it is, or takes another one from the cache, copies at most as many bytes
// as it is told, and frees the one at p into the cache. It returns 0, and changes nothing,
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
	if blockAt(p).isFree(p, from.factor) {
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

// realloc is Realloc. The cache is that of l or, if l is nil, that of the P.
func (h *Heap) realloc(op string, l *Local, ptr unsafe.Pointer, size int) (unsafe.Pointer, error) {
	to, err := h.tryRealloc(op, l, ptr, size)
	h.refused(size, err)
	return to, err
}

// tryRealloc is realloc without a call of HeapOptions.OnLimit.
//
//go:norace
func (h *Heap) tryRealloc(op string, l *Local, ptr unsafe.Pointer, size int) (unsafe.Pointer, error) {
	if h.checked != nil {
		return h.checked.realloc(op, ptr, size)
	}
	h.mustBeOpen(op)
	if size < 0 {
		panicMisuse(op, uintptr(ptr), "negative size %d", size)
	}
	if ptr == nil {
		to, _, err := h.alloc(op, l, size, sizeclass.Quantum)
		return osmem.Pointer(to), err
	}
	p := uintptr(ptr)
	s := h.mustOwn(op, p)
	old := s.Size
	kind := s.LoadTag() & span.KindMask
	large := kind == span.KindLarge
	if !large && staysInPlace(uintptr(size), old) {
		return ptr, nil
	}
	h.begin(op)
	defer h.end()
	resizable := large && size > sizeclass.MaxSize && uintptr(size) <= maxLarge
	if resizable {
		if osmem.RoundPage(uintptr(size)) == old {
			return ptr, nil
		}
		if to := h.resize(s, p, uintptr(size)); to != nil {
			return to, nil
		}
	}
	q, _, err := h.alloc(op, l, size, sizeclass.Quantum)
	if err != nil {
		if uintptr(size) <= old {
			return ptr, nil // a smaller block would be better, but this one serves
		}
		// alloc has emptied the caches. What did not suffice for another block may
		// suffice for a larger one.
		if resizable {
			if to := h.resize(s, p, uintptr(size)); to != nil {
				return to, nil
			}
		}
		return nil, err
	}
	to := osmem.Pointer(q)
	copyBlock(to, ptr, min(old, uintptr(size)))
	switch {
	case kind == span.KindGuarded:
		h.freeMoved(op, p, to)
	case l == nil:
		h.Free(ptr)
	default:
		l.Free(ptr)
	}
	return to, nil
}

// resize resizes the large block at p, whose record is s, without a copy. It returns nil,
// and changes nothing, if that is not possible.
//
//go:norace
func (h *Heap) resize(s *span.Span, p, size uintptr) unsafe.Pointer {
	h.freeing(p)
	to := h.resizeLarge(s, p, osmem.RoundPage(size))
	if to != 0 {
		h.sampleLarge(to)
	}
	handedOut(to, stateNew)
	return osmem.Pointer(to)
}

// copyBlock copies n bytes between two blocks that have as many or more.
//
//go:norace
func copyBlock(to, from unsafe.Pointer, n uintptr) {
	copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
}
