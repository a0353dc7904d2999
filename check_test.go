//go:build cheap_check

package cheap

import (
	"errors"
	"fmt"
	"math/bits"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/shadow"
	"github.com/cheapgo/cheap/internal/span"
	"github.com/cheapgo/cheap/internal/testcall"
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
	f := newFixed(Default(), 64, 0, 0)
	p := f.Malloc(64)
	f.Free(p)
	*(*byte)(unsafe.Add(p, 50)) = 1
	wantMisuse(t, "FixedBlock.Malloc", func() { f.Malloc(1) }, "byte 50")
	f.DestroyAll()
}

// TestWriteToFreedBlock: with checks, a write to a freed block of any size below that of
// a mapping is found anywhere in the block, when the memory is allocated again. A freed
// mapping is not there any more.
func TestWriteToFreedBlock(t *testing.T) {
	const unit = span.UnitSize
	sizes := append([]int{20_000, 24_000, 32_769, 40_000, unit, unit + 1, 3 * unit, 1_000_000, span.OwnMapping - unit}, someSizes...)
	for _, size := range sizes {
		usable := GoodSize(size)
		for _, off := range []int{-1, 0, 7, 8, 15, 16, 17, usable / 2, usable - 1} { // -1: no write
			if off >= usable || off == 7 && bits.UintSize == 32 { // between link and mark
				continue
			}
			t.Run(fmt.Sprintf("size=%d/offset=%d", size, off), func(t *testing.T) {
				testWriteToFreed(t, size, off, size)
				if size > 10_000 && size < span.OwnMapping/2 {
					testWriteToFreed(t, size, off, 1000) // in blocks of another size
				}
			})
		}
	}
}

// testWriteToFreed writes to byte off of a freed block of size bytes, and allocates its
// memory again in blocks of other bytes.
func testWriteToFreed(t *testing.T, size, off, other int) {
	h, err := NewHeap(HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.DestroyAll(); err != nil {
			t.Error(err)
		}
	}()
	l := h.NewLocal() // all free blocks are in one cache
	defer l.Destroy()
	p := l.Malloc(size)
	shadow.Fill(p, size, 5)
	usable := uintptr(h.UsableSize(p))
	l.Free(p)
	if off >= 0 {
		*(*byte)(unsafe.Add(p, off)) ^= 0x42
	}
	// The first units that other tests have left are handed out before.
	var found any
	for again, n := uintptr(0), 0; found == nil && again < usable; n++ {
		if n > 64<<20/max(other, 16) {
			t.Fatalf("the block at %p is not allocated again", p)
		}
		found = testcall.Catch(func() {
			q := l.Malloc(other)
			if d := uintptr(q) - uintptr(p); d < usable {
				again += uintptr(h.UsableSize(q))
			} else if uintptr(p)-uintptr(q) < uintptr(h.UsableSize(q)) {
				again = usable
			}
			if off < 0 {
				shadow.Fill(q, other, 6)
			}
		})
	}
	var m *MisuseError
	if e, _ := found.(error); (off >= 0) != errors.As(e, &m) {
		t.Errorf("allocated again in blocks of %d bytes: %v", other, found)
	}
	if off >= 0 { // the program can go on
		q := l.Malloc(size)
		shadow.Fill(q, size, 7)
		l.Free(q)
	}
}

// TestWriteToCutTail: with checks, a write to what Realloc has cut off a large block is
// found, whether the block grows again or another one gets the memory.
func TestWriteToCutTail(t *testing.T) {
	const unit = span.UnitSize
	page := int(osmem.PageSize) // at most a unit
	for _, row := range []struct{ before, after int }{{3 * unit, unit}, {4 * unit, 3*unit - page}, {2 * unit, 2*unit - page}} {
		for _, off := range []int{-1, row.after, row.before - 1} {
			for _, grow := range []bool{true, false} {
				h, err := NewHeap(HeapOptions{})
				if err != nil {
					t.Fatal(err)
				}
				makeRoom(t, h, 8)
				p := h.Malloc(row.before)
				if q := h.Realloc(p, row.after); q != p {
					t.Fatal("the block has moved")
				}
				shadow.Fill(p, row.after, 5)
				if off >= 0 {
					*(*byte)(unsafe.Add(p, off)) ^= 0x42
				}
				found := testcall.Catch(func() {
					if grow {
						h.Realloc(p, row.before)
						return
					}
					h.Free(p) // fills what is left, and not what was cut off
					h.Malloc(row.before)
				})
				var m *MisuseError
				if e, _ := found.(error); errors.As(e, &m) != (off >= 0) {
					t.Errorf("%+v, write at %d, grow %v: %v", row, off, grow, found)
				}
				if err := shadow.Check(p, row.after, 5); grow && err != nil {
					t.Error(err)
				}
				if err := h.DestroyAll(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
