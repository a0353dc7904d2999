package heap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
)

// GoodSize is cheap.GoodSize.
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

// UsableSize is cheap.UsableSize.
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

// UsableSize is cheap.Heap.UsableSize.
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

// Owns is cheap.Heap.Owns.
func (h *Heap) Owns(ptr unsafe.Pointer) bool {
	const op = "Heap.Owns"
	h.mustBeOpen(op)
	if h.checked != nil {
		return h.checked.owns(op, uintptr(ptr))
	}
	_, v := judge(uintptr(ptr), h.id)
	return v == blockLive
}
