package cheaparrow_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cheapgo/cheap"
	cheaparrow "github.com/cheapgo/cheap/x/arrow"
)

// verifyAlign checks a buffer of an allocator with an Align, up to its capacity.
func verifyAlign(t testing.TB, b []byte, align, size, n int) {
	t.Helper()
	if size < align {
		align = 64
	}
	if p := uintptr(unsafe.Pointer(unsafe.SliceData(b))); p%uintptr(align) != 0 {
		t.Fatalf("%d bytes at %#x, which is no multiple of %d", size, p, align)
	}
	if len(b) != size || cap(b) != (size+align-1)/align*align {
		t.Fatalf("%d bytes, capacity %d; want %d", len(b), cap(b), size)
	}
	all(t, b[n:cap(b)], 0)
}

// TestAlign allocates and reallocates with several alignments, also in a heap that checks its blocks.
func TestAlign(t *testing.T) {
	for _, align := range []int{64, 128, 4096, 16384, 1 << 20} {
		for _, check := range []cheap.CheckLevel{cheap.CheckNone, cheap.CheckBlocks} {
			t.Run(fmt.Sprint(align, " ", check), func(t *testing.T) {
				mem := newAllocator(t, cheap.HeapOptions{Check: check})
				mem.Align = align
				sizes := []int{1, 64, 100, 4095, 4096, 5000, 16384, 16385, 40 << 10, 1 << 20, 1<<20 + 1}
				for _, before := range sizes {
					for _, after := range sizes {
						dirty(mem, before, after)
						b, other := mem.Allocate(before), mem.Allocate(before)
						verifyAlign(t, b, align, before, 0)
						verifyAlign(t, other, align, before, 0)
						fill(b[:cap(b)], 0x55)
						b = mem.Reallocate(after, b)
						kept := min(before, after)
						verifyAlign(t, b, align, after, kept)
						all(t, b[:kept], 0x55)
						mem.Free(b)
						mem.Free(other)
					}
				}
			})
		}
	}
}

// TestAlignArray builds an array whose values a consumer may take by pages.
func TestAlignArray(t *testing.T) {
	mem := newAllocator(t, cheap.HeapOptions{})
	mem.Align = 16384
	checked := memory.NewCheckedAllocator(mem)
	defer checked.AssertSize(t, 0)
	for range 20 {
		b := array.NewInt64Builder(checked)
		for i := range 100_000 {
			b.Append(int64(i))
		}
		a := b.NewInt64Array()
		values := a.Data().Buffers()[1].Bytes()
		if p := uintptr(unsafe.Pointer(unsafe.SliceData(values))); p%16384 != 0 || cap(values)%16384 != 0 {
			t.Errorf("the values are at %#x, and have a capacity of %d", p, cap(values))
		}
		b.Release()
		a.Release()
	}
}

func TestAlignMisuse(t *testing.T) {
	panicOf := func(f func()) (err error) {
		defer func() { err, _ = recover().(error) }()
		f()
		return nil
	}
	mem := newAllocator(t, cheap.HeapOptions{})
	misuse := new(cheap.MisuseError)
	for _, align := range []int{-64, 1, 32, 96, 4095} {
		mem.Align = align
		if err := panicOf(func() { mem.Allocate(9) }); !errors.As(err, &misuse) {
			t.Errorf("Align %d: %v", align, err)
		}
	}
	mem.Align = 4096
	b := mem.Allocate(5000)
	if err := panicOf(func() { mem.Reallocate(math.MaxInt, b) }); !errors.Is(err, cheap.ErrNoMemory) {
		t.Errorf("all of the memory: %v", err)
	}
	mem.Free(b)
	if err := panicOf(func() { mem.Reallocate(6000, b) }); !errors.As(err, &misuse) {
		t.Errorf("a buffer that is free: %v", err)
	}
	if n := mem.Heap.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks are left", n)
	}
}

// TestPurposes counts the bytes of each purpose by a heap of its own.
func TestPurposes(t *testing.T) {
	var build, probe memory.Allocator
	for name, mem := range map[string]*memory.Allocator{"arrow build side": &build, "arrow probe side": &probe} {
		a := newAllocator(t, cheap.HeapOptions{Name: name})
		*mem = cheaparrow.Allocator{Heap: a.Heap}
	}
	b := build.Allocate(1 << 20)
	defer build.Free(b)
	live := map[string]int64{}
	for _, h := range cheap.Heaps() {
		live[h.Name()] += h.Stats().Bytes
	}
	if live["arrow build side"] < 1<<20 || live["arrow probe side"] != 0 {
		t.Errorf("%v", live)
	}
}
