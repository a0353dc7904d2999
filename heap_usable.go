package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/sizeclass"
)

// GoodSize returns the usable size, in bytes, of the block that a [Heap]
// returns for a request of size bytes: the block size of its size class, or, for
// more than 64 KiB, whole pages of the operating system. Above 128 bytes the
// block is at most an eighth larger than size, or less than a page larger where pages
// have more than 4 KiB: with pages of 64 KiB a block of 65 KiB takes 128. It is not for
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
