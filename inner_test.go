package cheap

import (
	"testing"
	"unsafe"
)

// A skewed is an AlignedAllocator that breaks its word: what AlignedMalloc returns is 16 bytes behind
// where it should be. Malloc aligns to plain.
type skewed struct {
	*fakeAlloc
	plain int
}

func (a skewed) AlignedMalloc(size, align int) unsafe.Pointer { return a.malloc(size, align, 16) }

func (a skewed) Malloc(size int) unsafe.Pointer { return a.malloc(size, a.plain, a.plain) }

// TestInnerAlignsToLess has an inner allocator of an Arena and of a FixedBlock return blocks that
// are not aligned as they were to be. The blocks above are aligned and apart all the same, or a
// panic says what is wrong.
func TestInnerAlignsToLess(t *testing.T) {
	inner := skewed{newFake(t), 16}
	a := NewArena(inner, 0)
	for _, align := range []int{32, 4096, 1 << 16} {
		if p := a.AlignedMalloc(1<<17, align); uintptr(p)%uintptr(align) != 0 {
			t.Errorf("%p of the arena is no multiple of %d", p, align)
		}
	}
	a.FreeAll()
	f := NewFixedBlock(inner, FixedBlockOptions{BlockSize: 64, Align: 64})
	for range 3000 { // several chunks
		if p := f.Malloc(64); p == nil || uintptr(p)%64 != 0 {
			t.Fatalf("%p of the FixedBlock is no multiple of 64", p)
		}
	}
	if err := f.DestroyAll(); err != nil || len(inner.blocks) != 0 {
		t.Errorf("DestroyAll: %v; %d blocks are left", err, len(inner.blocks))
	}

	inner.plain = 4
	f = NewFixedBlock(inner, FixedBlockOptions{BlockSize: 64})
	wantMisuse(t, "FixedBlock.Malloc", func() { f.Malloc(64) }, "no multiple of 8")
	if err := f.Destroy(); err != nil || len(inner.blocks) != 0 {
		t.Errorf("Destroy: %v; %d blocks are left", err, len(inner.blocks))
	}
}
