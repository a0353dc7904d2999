//go:build cheap_check

package cheap

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
	"github.com/cheapgo/cheap/internal/testcall"
)

// TestDamageInBody writes to a freed block, behind its mark, and looks whether the panic
// names the bytes from the first to the last that changed. A write of zeros is a write.
func TestDamageInBody(t *testing.T) {
	const unit = span.UnitSize
	for _, size := range []int{32, 64, 1024, 4096, 20_000, 32_768, 40_000, unit, 5 * unit, 1 << 20} {
		least := 0 // a large block has no mark
		if size <= sizeclass.MaxSize {
			least = sizeclass.Quantum
		}
		for _, row := range [][2]int{{least, least + 1}, {least + 3, least + 7}, {size / 2, size/2 + 8}, {size - 1, size}, {least, size}, {least + 2, size - 3}} {
			for _, value := range []byte{0, 0x42} {
				if value == 0 && row[1]-row[0] > int(osmem.PageSize)/2 && size > sizeclass.MaxSize {
					continue // like a page that the system has had
				}
				t.Run(fmt.Sprintf("size=%d/bytes=%d-%d/value=%#x", size, row[0], row[1], value), func(t *testing.T) {
					testDamageInBody(t, size, row[0], row[1], value)
				})
			}
		}
	}
}

func testDamageInBody(t *testing.T, size, from, to int, value byte) {
	h, err := NewHeap(HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.DestroyAll()
	l := h.NewLocal()
	defer l.Destroy()
	l.Malloc(size) // keeps the span
	p := l.Malloc(size)
	usable := h.UsableSize(p)
	b := unsafe.Slice((*byte)(p), size)
	fill(b, 0x77)
	l.Free(p)
	if value == 0 {
		clear(b[from:to])
	} else {
		b[from], b[to-1] = value, value
	}
	found, _ := testcall.Catch(func() {
		for range max(100, 64<<20/size) {
			if l.Malloc(size) == p {
				return
			}
		}
	}).(*MisuseError)
	want := fmt.Sprintf("the free block at %#x (%d bytes) was written to after it was freed: %d bytes from byte %d on;", p, usable, to-from, from)
	if found == nil || found.Addr != uintptr(p) || !strings.HasPrefix(found.Reason, want) {
		t.Errorf("%v, want %s", found, want)
	}
}

// TestDamageInSpan writes to a freed block of a span that goes back, which is noticed
// then, and to a span that is free, which is noticed when blocks are carved from it.
func TestDamageInSpan(t *testing.T) {
	for _, size := range []int{16, 48, 1000, 5000} {
		for _, value := range []byte{0, 0x42} {
			for _, off := range []int{0, 4, 16, 30, size - 1} {
				if off >= size || value == 0 && (size == 16 || off < 16) { // a byte of a link may be 0
					continue
				}
				for _, back := range []bool{false, true} {
					h, err := NewHeap(HeapOptions{})
					if err != nil {
						t.Fatal(err)
					}
					setDecay(t, -1)
					p := h.Malloc(size)
					fill(bytesAt(uintptr(p), uintptr(size)), 0x77)
					usable := h.UsableSize(p)
					h.Free(p)
					if back {
						h.reclaim() // not what is idle
					}
					*(*byte)(unsafe.Add(p, off)) = value
					found, _ := testcall.Catch(func() {
						h.reclaim()
						h.mustBeUndamaged(0)
						for range 3000 {
							h.Malloc(size)
						}
					}).(*MisuseError)
					want := fmt.Sprintf("the free block at %#x (%d bytes) was written to after it was freed: 1 bytes from byte %d on;", p, usable, off)
					if found == nil || found.Addr != uintptr(p) || !strings.HasPrefix(found.Reason, want) {
						t.Errorf("size %d, %#x at %d, the span is back: %v: %v, want %s", size, value, off, back, found, want)
					}
					h.DestroyAll()
				}
			}
		}
	}
}

// TestFills looks what is in a block that is handed out, and in one that is free, of each
// size class and of large sizes, however it was allocated.
func TestFills(t *testing.T) {
	sizes := []int{40_000, span.UnitSize, 300_000, 1 << 20}
	for _, c := range sizeclass.Classes {
		sizes = append(sizes, int(c.Size))
	}
	h := newHeap(t, HeapOptions{})
	l := h.NewLocal()
	defer l.Destroy()
	for name, malloc := range map[string]func(size int) unsafe.Pointer{
		"Heap.Malloc":         h.Malloc,
		"Heap.TryMalloc":      func(size int) unsafe.Pointer { p, _ := h.TryMalloc(size); return p },
		"Heap.AlignedMalloc":  func(size int) unsafe.Pointer { return h.AlignedMalloc(size, 16) },
		"Heap.Realloc":        func(size int) unsafe.Pointer { return h.Realloc(nil, size) },
		"Local.Malloc":        l.Malloc,
		"Local.TryMalloc":     func(size int) unsafe.Pointer { p, _ := l.TryMalloc(size); return p },
		"Local.AlignedMalloc": func(size int) unsafe.Pointer { return l.AlignedMalloc(size, 16) },
		"Local.Realloc":       func(size int) unsafe.Pointer { return l.Realloc(nil, size) },
	} {
		for _, size := range sizes {
			first := uintptr(0)
			if size <= sizeclass.MaxSize {
				first = sizeclass.Quantum
			}
			mustBe := func(when string, p unsafe.Pointer, patterns ...byte) {
				t.Helper()
				all := bytesAt(uintptr(p)+first, uintptr(size)-first)
				for _, pattern := range patterns {
					if from, to := others(all, pattern); from == to {
						return
					}
				}
				t.Errorf("%s, %d bytes, %s: byte %d is %#x; want one of %#x everywhere", name, size, when, first, all[0], patterns)
			}
			for range 3 {
				p := malloc(size)
				mustBe("new", p, patternNew, 0) // 0: fresh from the system
				fill(bytesAt(uintptr(p), uintptr(size)), 0x77)
				h.Free(p)
				mustBe("freed", p, patternFree)
			}
		}
	}
}
