package cheap

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testenv"
)

func TestFixedBlockChunks(t *testing.T) {
	for _, c := range []struct{ block, align, page, want int }{
		{8, 8, 0, 64 << 10}, {8, 8, 64 << 10, 64 << 10}, {8, 8, 64<<10 + 1, 128 << 10},
		{100 << 10, 16, 0, 128 << 10}, {16, 16, 1 << 20, 1 << 20}, {16, 1 << 20, 0, 1 << 20},
	} {
		a := newFake(t)
		f := newFixed(fakeAligned{a}, c.block, c.align, c.page)
		f.Malloc(1)
		if a.live() != c.want {
			t.Errorf("%+v: a chunk of %d bytes", c, a.live())
		}
		f.DestroyAll()
		if a.live() != 0 {
			t.Errorf("%+v: %d bytes held", c, a.live())
		}
	}
}

// TestFixedBlockTouchesNoFreshBlock: memory is written when it is handed out,
// not before.
func TestFixedBlockTouchesNoFreshBlock(t *testing.T) {
	testenv.Skip(t, "asan", "package asan, by cgo, is called for each block of an Arena and a FixedBlock; what they have not handed out may not be looked at")
	a := newFake(t)
	f := newFixed(a, 64, 0, 0)
	p := f.Malloc(64)
	chunk := unsafe.Slice((*byte)(p), 64<<10)
	for i, b := range chunk[wordSize:] {
		if b != 0xDB {
			t.Fatalf("byte %d of a new chunk is %#x", i+int(wordSize), b)
		}
	}
}

// TestFixedBlockGivesChunksBack pins how many chunks stay.
func TestFixedBlockGivesChunksBack(t *testing.T) {
	a := newFake(t)
	f := newFixed(a, 1024, 0, 0)
	var blocks []unsafe.Pointer
	for range 64 * 20 {
		blocks = append(blocks, f.Malloc(1))
	}
	if a.mallocs != 20 {
		t.Fatalf("%d chunks for 20", a.mallocs)
	}
	for _, p := range blocks {
		frees := a.frees
		if f.Free(p); a.frees == frees {
			continue
		}
		// The record of the chunk serves another FixedBlock.
		g := newFixed(newFake(t), 1024, 0, 0)
		other := g.Malloc(1)
		mustAccuse(t, "FixedBlock.Free", uintptr(other), func() { f.Free(other) }, "no block there")
		g.DestroyAll()
	}
	checkFixedBlock(t, f, 0)
	if len(f.all) > 3 || a.frees != 20-len(f.all) {
		t.Errorf("%d chunks left, %d given back", len(f.all), a.frees)
	}

	// On the brink of one more chunk, again and again.
	blocks = blocks[:0]
	for range 64 * 4 {
		blocks = append(blocks, f.Malloc(1))
	}
	n := a.mallocs
	for range 100 {
		p := f.Malloc(1)
		f.Free(p)
		f.Free(blocks[len(blocks)-1])
		blocks[len(blocks)-1] = f.Malloc(1)
	}
	if a.mallocs > n+1 {
		t.Errorf("%d chunks taken by a program on the brink", a.mallocs-n)
	}
}

// TestFixedBlockOldLinks makes a chunk of memory that was a chunk before. Its blocks do not look free, or
// Free would search the list for each.
func TestFixedBlockOldLinks(t *testing.T) {
	f := newFixed(newHeap(t, HeapOptions{}), 1024, 0, 0)
	for range 2 {
		var blocks []unsafe.Pointer
		for range 64 * 20 {
			p := f.Malloc(1)
			if c := f.cur; f.link(uintptr(p), *(*uintptr)(p))-c.base < c.size {
				t.Fatalf("the block at %p looks free", p)
			}
			blocks = append(blocks, p)
		}
		for _, p := range blocks {
			f.Free(p)
		}
	}
	f.Destroy()
}

// farAlloc has memory where there is none.
type farAlloc struct{ *fakeAlloc }

func (farAlloc) AlignedMalloc(size, align int) unsafe.Pointer {
	return osmem.Pointer(^uintptr(0) &^ (span.UnitSize - 1))
}
func (a farAlloc) Free(unsafe.Pointer) { a.frees++ }

func TestFixedBlockNoMemory(t *testing.T) {
	a := newFake(t)
	if wordSize == 8 { // the span map has no room for a chunk of farAlloc; the record serves again
		m, err := span.AllocMeta(fixedChunkSize)
		if err != nil {
			t.Fatal(err)
		}
		span.FreeMeta(m, fixedChunkSize)
		p := newFixed(farAlloc{a}, 1000, 0, 0).Malloc(1)
		if again, err := span.AllocMeta(fixedChunkSize); again != m || p != nil || a.frees != 1 {
			t.Errorf("%p; %d chunks given back; the record is %#x and was %#x; %v", p, a.frees, again, m, err)
		}
		span.FreeMeta(m, fixedChunkSize)
		a.frees = 0
	}
	f := newFixed(a, 1000, 0, 0)
	a.fail = true
	if p := f.Malloc(1); p != nil {
		t.Fatalf("Malloc without memory = %p", p)
	}
	a.fail = false
	var blocks []unsafe.Pointer
	for range 65 {
		blocks = append(blocks, f.Malloc(1))
	}
	a.fail = true
	for p := f.Malloc(1); p != nil; p = f.Malloc(1) {
		blocks = append(blocks, p)
	}
	for i := range 3 { // what comes back can be had again
		f.Free(blocks[i])
		if p := f.Malloc(1); p != blocks[i] {
			t.Fatalf("Malloc = %p, want %p", p, blocks[i])
		}
		if p := f.Malloc(1); p != nil {
			t.Fatalf("Malloc without memory = %p", p)
		}
	}
	for _, p := range blocks {
		f.Free(p)
	}
	if err := f.Destroy(); err != nil || a.live() != 0 {
		t.Errorf("%v, %d bytes held", err, a.live())
	}
}

// TestFixedBlockNoMetadata: the system refuses memory for a record.
func TestFixedBlockNoMetadata(t *testing.T) {
	a := fakeAligned{newFake(t)}
	f := newFixed(a, 64<<10, 0, 0)
	refused := errors.New("refused")
	refuse := func(osmem.Op, uintptr) error { return refused }
	// Use up what is left of the metadata, so that the next record needs more.
	var records []uintptr
	osmem.Fault.Store(&refuse)
	defer osmem.Fault.Store(nil)
	for {
		m, err := span.AllocMeta(fixedChunkSize)
		if err != nil {
			break
		}
		records = append(records, m)
	}
	p := f.Malloc(1)
	osmem.Fault.Store(nil)
	for _, m := range records {
		span.FreeMeta(m, fixedChunkSize)
	}
	if p != nil || a.live() != 0 {
		t.Errorf("Malloc = %p, %d bytes held", p, a.live())
	}
	if p := f.Malloc(1); p == nil {
		t.Error("the allocator did not get over it")
	}
	f.DestroyAll()
}

// TestFixedBlockNested: chunks within chunks, each found by its own allocator.
func TestFixedBlockNested(t *testing.T) {
	pages := newFixed(Default(), 256<<10, 256<<10, 1<<20)
	a := newFixed(pages, 64, 0, 128<<10)
	b := newFixed(pages, 64, 0, 256<<10)
	var blocks [2][]unsafe.Pointer
	for range 10_000 {
		blocks[0] = append(blocks[0], a.Malloc(1))
		blocks[1] = append(blocks[1], b.Malloc(1))
	}
	for i, f := range []*FixedBlock{a, b} {
		for _, p := range blocks[i] {
			if !f.Contains(p) || !pages.Contains(p) || []*FixedBlock{b, a}[i].Contains(p) {
				t.Fatalf("%p is not where it belongs", p)
			}
			f.Free(p)
		}
	}
	for _, f := range []*FixedBlock{a, b, pages} {
		checkFixedBlock(t, f, f.liveBlocks())
		if err := f.Destroy(); err != nil {
			t.Error(err)
		}
	}
}

// TestChunkOfFixedBlock gives the allocator below a FixedBlock the blocks of that
// FixedBlock. The first one has the address of the chunk, which is a live block there.
func TestChunkOfFixedBlock(t *testing.T) {
	const says = "is in a chunk that a FixedBlock has taken from a heap; pass its blocks to that FixedBlock"
	h, other := newHeap(t, HeapOptions{}), newHeap(t, HeapOptions{})
	l, otherLocal := h.NewLocal(), other.NewLocal()
	defer l.Destroy()
	defer otherLocal.Destroy()
	for _, inner := range []Allocator{h, l} {
		for range 4 { // the caches have room for blocks of the size of a chunk
			inner.Free(inner.Malloc(span.UnitSize))
		}
		for _, chunkSize := range []int{0, 1 << 20, span.OwnMapping} {
			f := newFixed(inner, 64, 0, chunkSize)
			var blocks []unsafe.Pointer
			for i := range int(f.chunkSize / f.stride) {
				p := f.Malloc(64)
				*(*int)(p) = i
				blocks = append(blocks, p)
			}
			for _, i := range []int{0, 1, len(blocks) - 1} {
				addr := uintptr(blocks[i])
				mustAccuseAll(t, h, l, addr, says)
				mustAccuseAll(t, h, l, addr+16, says)
				mustAccuseAll(t, other, otherLocal, addr, says)
				mustAccuse(t, "UsableSize", addr, func() { UsableSize(blocks[i]) }, says)
			}
			// The heap would give the memory out again.
			p := h.Malloc(int(f.chunkSize) - 100)
			clear(unsafe.Slice((*byte)(p), f.chunkSize-100))
			for i, p := range blocks {
				if *(*int)(p) != i {
					t.Fatalf("block %d has %d", i, *(*int)(p))
				}
				f.Free(p)
			}
			h.Free(p)
			checkFixedBlock(t, f, 0)
			if err := f.Destroy(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestChunkOfNestedFixedBlock is the same for a FixedBlock over another.
func TestChunkOfNestedFixedBlock(t *testing.T) {
	const says = "is in a chunk that another FixedBlock has taken from this one; pass its blocks to that FixedBlock"
	for _, size := range []int{64 << 10, 128 << 10} {
		pages := newFixed(Default(), size, size, 1<<20)
		pages.Free(pages.Malloc(1))
		f := newFixed(pages, 64, 0, size)
		p, q := f.Malloc(64), f.Malloc(64)
		*(*int)(q) = 7
		before := pages.Malloc(1)
		pages.Free(before) // the chunk is the last one that pages has freed in
		for range 2 {
			mustAccuse(t, "FixedBlock.Free", uintptr(p), func() { pages.Free(p) }, says)
			if !pages.Contains(p) {
				t.Errorf("%p is not in the outer allocator", p)
			}
		}
		mustAccuse(t, "FixedBlock.Free", uintptr(q), func() { pages.Free(q) }, "inside the block")
		for range 8 {
			if x := pages.Malloc(1); uintptr(x) == uintptr(p) {
				t.Fatalf("%p is given out again", x)
			} else {
				pages.Free(x)
			}
		}
		mustAccuse(t, "FixedBlock.Free", uintptr(before), func() { pages.Free(before) }, "free already")
		f.Free(p)
		f.Free(q)
		if err := f.Destroy(); err != nil {
			t.Error(err)
		}
		checkFixedBlock(t, pages, 0)
		if err := pages.Destroy(); err != nil {
			t.Error(err)
		}
	}
}

// TestFixedBlockFallback puts real tiers together.
func TestFixedBlockFallback(t *testing.T) {
	small := newFixed(Default(), 8, 8, 0)
	large := newFixed(Default(), 256, 0, 0)
	h, err := NewHeap(HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := NewFallback(small, NewFallback(large, h))
	var blocks []unsafe.Pointer
	for i := range 5000 {
		p := a.Malloc(i % 600)
		if i%600 > 0 {
			*(*byte)(p) = byte(i)
		}
		blocks = append(blocks, p)
	}
	for i, p := range blocks {
		if i%600 > 0 && *(*byte)(p) != byte(i) {
			t.Fatalf("block %d holds %d", i, *(*byte)(p))
		}
		a.Free(p)
	}
	for _, destroy := range []func() error{small.Destroy, large.Destroy, h.Destroy} {
		if err := destroy(); err != nil {
			t.Error(err)
		}
	}
}

// TestChunkOfDestroyedHeap destroys a heap under a FixedBlock. The memory of its chunks
// belongs to another heap afterwards, which frees its blocks there.
func TestChunkOfDestroyedHeap(t *testing.T) {
	below, h := newHeap(t, HeapOptions{}), newHeap(t, HeapOptions{})
	f := NewFixedBlock(below, FixedBlockOptions{BlockSize: 100, ChunkSize: 256 << 10})
	chunks := map[uintptr]bool{}
	for range 20_000 {
		chunks[uintptr(f.Malloc(1))&^(256<<10-1)] = true
	}
	below.DestroyAll()
	var large, small []unsafe.Pointer
	again := false
	for range 1000 {
		p, q := h.Malloc(100_000), h.Malloc(30_000)
		again = again || chunks[uintptr(p)&^(256<<10-1)]
		large, small = append(large, p), append(small, q)
	}
	if !again {
		t.Log("the memory was not used again")
	}
	for _, p := range large {
		inside := unsafe.Add(p, span.UnitSize)
		mustAccuse(t, "Heap.Free", uintptr(inside), func() { h.Free(inside) }, "is inside the block")
	}
	for _, p := range append(large, small...) {
		if !h.Owns(p) {
			t.Fatalf("the heap does not know its block at %p", p)
		}
		h.Free(p)
	}
}
