package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// The attacks that give the heap a wrong pointer, or a wrong size.
var freeAttacks = []attack{
	{"a block is freed twice", func(a *attacked) {
		a.h.Free(a.p)
		a.h.Free(a.p)
	}, ""},
	{"a block is freed twice, another one is freed between", func(a *attacked) {
		a.h.Free(a.p)
		a.h.Free(a.behind)
		a.h.Free(a.p)
	}, ""},
	{"a block is freed twice, a thousand others are freed between", func(a *attacked) {
		all := a.mallocs(min(1000, 128<<20/a.size)) // or as many as no quarantine has room for
		a.h.Free(a.p)
		for _, p := range all {
			a.h.Free(p)
		}
		a.h.Free(a.p)
	}, ""},
	{"a block is freed twice, by two goroutines one after the other", func(a *attacked) {
		elsewhere(func() { a.h.Free(a.p) })
		elsewhere(func() { a.h.Free(a.p) })
	}, ""},
	{"a block is freed twice, the second time on another P", func(a *attacked) {
		a.h.Free(a.p)
		onAnotherP(func() { a.h.Free(a.p) })
	}, ""},
	{"a block is freed twice, the second time by a Local", func(a *attacked) {
		l := a.h.NewLocal()
		l.Free(l.Malloc(a.size))
		a.h.Free(a.p)
		l.Free(a.p)
	}, ""},
	{"a block is freed twice, Trim runs between", func(a *attacked) {
		a.h.Free(a.p)
		a.h.Trim()
		a.h.Free(a.p)
	}, ""},
	{"a block is freed twice, its memory is part of blocks of another size by then", func(a *attacked) {
		a.h.Free(a.inOtherBlock())
	}, ""},
	{"a block is freed, allocated again, and freed by its first owner", func(a *attacked) {
		a.h.Free(a.p)
		for range min(10_000, 128<<20/a.size) { // a checked heap does not hand it out, and fills the others
			if p := a.malloc(); p == a.p {
				break
			}
		}
		a.h.Free(a.p)
	}, "the address is that of a live block"},
	{"Free of a block that Realloc has moved", func(a *attacked) {
		a.move()
		a.h.Free(a.p)
	}, ""},
	{"Realloc of a freed block", func(a *attacked) {
		a.h.Free(a.p)
		a.h.Realloc(a.p, 2*a.size)
	}, ""},
	{"UsableSize of a freed block", func(a *attacked) {
		a.h.Free(a.p)
		a.h.UsableSize(a.p)
	}, ""},
	{"Free of the middle of a block", func(a *attacked) { a.h.Free(unsafe.Add(a.p, a.size/2&^7)) }, ""},
	{"Free of the last byte of a block", func(a *attacked) { a.h.Free(unsafe.Add(a.p, a.size-1)) }, ""},
	{"Free of an address that is not a multiple of 8", func(a *attacked) { a.h.Free(unsafe.Add(a.p, 3)) }, ""},
	{"Realloc of the middle of a block", func(a *attacked) { a.h.Realloc(unsafe.Add(a.p, a.size/2&^7), a.size) }, ""},
	{"UsableSize of an address that is not a multiple of 8", func(a *attacked) { a.h.UsableSize(unsafe.Add(a.p, 1)) }, ""},
	{"Free of memory of the heap that was never handed out", func(a *attacked) { a.h.Free(a.neverHandedOut()) }, ""},
	{"UsableSize of memory of the heap that was never handed out", func(a *attacked) { a.h.UsableSize(a.neverHandedOut()) }, ""},
	{"Free of an address 1 GiB behind a block", func(a *attacked) { a.h.Free(osmem.Pointer(uintptr(a.p) + 1<<30)) }, ""},
	{"Free of a block of another heap", func(a *attacked) {
		other, _ := NewHeap(HeapOptions{})
		other.Free(a.p)
	}, ""},
	{"Heap.Free of a block that a FixedBlock has cut", func(a *attacked) {
		f := NewFixedBlock(a.h, FixedBlockOptions{BlockSize: a.size})
		f.Malloc(a.size)
		a.h.Free(f.Malloc(a.size))
	}, ""},
	{"Heap.Free of a block of an Arena", func(a *attacked) {
		arena := NewArena(a.h, 64<<10)
		arena.Malloc(16)
		a.h.Free(arena.Malloc(a.size))
		arena.Destroy()
	}, "a block that is larger than a quarter of a chunk has a block of the heap to itself; Destroy of the arena panics"},
	{"Free of Go memory", func(a *attacked) { a.h.Free(unsafe.Pointer(new([4096]byte))) }, ""},
	{"Realloc of Go memory", func(a *attacked) { a.h.Realloc(unsafe.Pointer(new([4096]byte)), a.size) }, ""},
	{"Free of a local variable", func(a *attacked) {
		var local [64]byte
		a.h.Free(unsafe.Pointer(&local))
	}, ""},
	{"Free of memory that the program has mapped", func(a *attacked) {
		p, _ := osmem.Map(16 * osmem.PageSize)
		a.h.Free(osmem.Pointer(p + 8*osmem.PageSize))
	}, ""},
	{"Free of a page without access", func(a *attacked) {
		p, _ := osmem.Reserve(16*osmem.PageSize, osmem.PageSize)
		a.h.Free(osmem.Pointer(p + 8*osmem.PageSize))
	}, ""},
	{"Free of a number, 0x123456789000", func(a *attacked) { a.h.Free(osmem.Pointer(uintptr(0x1234_5678) << (12 * (unsafe.Sizeof(a.p) / 8)))) }, ""},
	{"Free of the number 1", func(a *attacked) { a.h.Free(osmem.Pointer(1)) }, ""},
	{"Realloc of the number 1", func(a *attacked) { a.h.Realloc(osmem.Pointer(1), a.size) }, ""},
	{"UsableSize of the number 1", func(a *attacked) { a.h.UsableSize(osmem.Pointer(1)) }, ""},
	{"Free of a pointer that was read from a new block", func(a *attacked) {
		a.h.Free(osmem.Pointer(*(*uintptr)(a.malloc())))
	}, "a new large block, or a guarded one, is zero where the system had the page: Free of nil"},
	{"Free of a block after Destroy", func(a *attacked) {
		a.h.DestroyAll()
		a.h.Free(a.p)
	}, ""},
	{"Malloc of a negative size", func(a *attacked) { a.h.Malloc(-a.size) }, ""},
	{"Malloc of a size that no system has", func(a *attacked) { mustBeNil(a.h.Malloc(int(^uint(0)>>1) - a.size)) }, ""},
	{"Realloc to a size that no system has", func(a *attacked) { mustBeNil(a.h.Realloc(a.p, int(^uint(0)>>1)-a.size)) }, "the block stays as it is"},
	{"Calloc of a product that overflows", func(a *attacked) { mustBeNil(a.h.Calloc(int(^uint(0)>>1), a.size)) }, ""},
	{"AlignedMalloc with an alignment of 24", func(a *attacked) { a.h.AlignedMalloc(a.size, 24) }, ""},
}

// move lets Realloc move the block.
func (a *attacked) move() unsafe.Pointer {
	q := a.h.Realloc(a.p, 3*a.size)
	if q == a.p || q == nil {
		panic("the block was not moved")
	}
	return q
}

// neverHandedOut returns an address in the span of the block, or behind it, where no
// block was handed out yet.
func (a *attacked) neverHandedOut() unsafe.Pointer {
	if a.size > span.UnitSize {
		return unsafe.Add(a.behind, a.size)
	}
	return unsafe.Add(a.p, span.UnitSize/2)
}

// inOtherBlock returns the address of a block that was freed, and whose memory the heap
// has handed out again as the inside of a larger block.
func (a *attacked) inOtherBlock() unsafe.Pointer {
	freed := map[unsafe.Pointer]bool{}
	for _, p := range a.mallocs(2*span.UnitSize/a.size + 5) {
		freed[p] = true
	}
	for p := range freed {
		a.h.Free(p)
	}
	a.h.Trim()
	for range 1000 {
		q := a.h.Malloc(3 * a.size)
		if p := unsafe.Add(q, a.size); freed[p] {
			return p
		}
		if heap.Checks() || a.side != noSide {
			return unsafe.Add(q, a.size) // the freed blocks are in quarantine, or lie alone
		}
	}
	panic("the memory was not used again")
}

// mustBeNil panics with errRefusal if p is nil.
func mustBeNil(p unsafe.Pointer) {
	if p == nil {
		panic(errRefusal)
	}
}
