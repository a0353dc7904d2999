//go:build cheap_check

package cheap

import (
	"testing"
	"unsafe"
)

// TestFreedIsFilled: with checks, what an arena has freed holds nothing that
// looks like data.
func TestFreedIsFilled(t *testing.T) {
	wantFilled := func(p unsafe.Pointer) {
		t.Helper()
		if v := *(*uint32)(p); v != 0xDFDFDFDF {
			t.Errorf("freed memory holds %#x", v)
		}
	}
	a := NewArena(newFake(t), 1024)
	write := func() unsafe.Pointer {
		p := a.Malloc(200)
		*(*uint32)(p) = 1
		return p
	}
	kept := write()
	m := a.Mark()
	blocks := []unsafe.Pointer{write(), write(), write(), write(), write(), write(), write()}
	a.Release(m)
	for _, p := range blocks {
		wantFilled(p)
	}
	if *(*uint32)(kept) != 1 {
		t.Error("a live block was filled")
	}
	a.Reset()
	wantFilled(kept)

	a = GetArena()
	p := write()
	a.Put()
	wantFilled(p)
}

// TestFixedBlockWriteBehindLink: with checks, a write after free is found
// anywhere in the block.
func TestFixedBlockWriteBehindLink(t *testing.T) {
	f := mustFixed(t, Default(), 64, 0, 0)
	p := f.Malloc(64)
	f.Free(p)
	*(*byte)(unsafe.Add(p, 50)) = 1
	wantMisuse(t, "FixedBlock.Malloc", func() { f.Malloc(1) }, "byte 50")
	f.DestroyAll()
}
