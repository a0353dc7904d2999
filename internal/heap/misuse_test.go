package heap

import (
	"fmt"
	"math/bits"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// Memory that is no heap's.
var (
	global    [64]byte
	globalPtr = new(int)
)

// foreignWords returns what a heap says of addr, which is no address of one of its blocks. The system
// may give Go, C or a test the addresses of a mapping that a heap of another test has given back, and
// on 32-bit systems a number may be an address that such a heap has.
func foreignWords(addr uintptr) string {
	s := span.Lookup(addr)
	switch {
	case s == nil || s.LoadTag() == 0 && atomic.LoadUintptr(&s.Was) == 0:
		return "it is not from a heap"
	case s.LoadTag() == 0:
		return "a heap has given back"
	case atomic.LoadUintptr(&s.Chunk) != 0:
		return "in a chunk that a FixedBlock has taken"
	}
	return "belongs to another heap"
}

// returnedMapping returns an address in a mapping that a heap has given back.
func returnedMapping(t *testing.T) uintptr {
	h := NewHeap(t, Options{})
	p := h.Malloc(int(span.OwnMapping))
	if p == nil {
		t.Fatal("no memory")
	}
	h.Free(p)
	testcall.Must(t, h.Destroy())
	return uintptr(p)
}

// TestForeignPointers gives the heap what no heap gave out, or what one has given back.
func TestForeignPointers(t *testing.T) {
	h, l := NewHeapAndLocal(t, Options{})
	returned := returnedMapping(t)
	if words := foreignWords(returned); words != "a heap has given back" {
		t.Fatalf("the record of a mapping that a heap has given back: %s", words)
	}
	mapped, err := osmem.Map(osmem.RoundPage(1))
	testcall.Must(t, err)
	onGoHeap := make([]uint64, 1000)
	onStack := 0
	text := "a string in the program"

	for round := range 2 { // before the heap has any memory, and after
		var foreign []uintptr
		for _, n := range []uint64{
			1, 2, 8, 16, 255, 4095, 4096, 65535, 65536, 65552, 1 << 20,
			1<<31 - 1, 1 << 31, 1<<32 - 1, 1<<32 - 16, 1 << 32,
			1<<46 + 16, 1<<47 - 16, 1 << 47, 1<<47 + 16, 1<<48 - 16, 1 << 48, 1<<48 + 16, 1 << 52, 1 << 56, 1<<57 + 32, 1 << 63,
			0xffff_8000_0000_0000, 0xffff_ffff_8000_0000, 0xffff_ffff_ffff_fff0, 1<<64 - 1,
		} {
			if bits.Len64(n) <= bits.UintSize {
				foreign = append(foreign, uintptr(n))
			}
		}
		for i, addr := range foreign {
			words := []string{foreignWords(addr)}
			if addr < 4096 {
				words = append(words, "a small number")
			}
			if round == 0 || i%4 == 0 {
				MustAccuseAll(t, h, l, addr, words...)
			}
		}
		for _, p := range []*uint64{&onGoHeap[0], &onGoHeap[499]} {
			words := []string{foreignWords(uintptr(unsafe.Pointer(p)))}
			// Other tests have allocators on Go memory, and leave them.
			if words[0] == "it is not from a heap" && span.FindChunk(uintptr(unsafe.Pointer(p))) == 0 {
				words = append(words, "Go pointer")
			}
			MustAccuseAll(t, h, l, uintptr(unsafe.Pointer(p)), words...)
		}
		for _, addr := range []uintptr{uintptr(unsafe.Pointer(globalPtr)), mapped, mapped + 16, returned} {
			MustAccuseAll(t, h, l, addr, foreignWords(addr))
		}
		MustAccuseAll(t, h, l, uintptr(unsafe.Pointer(&global[16])), "it is not from a heap")
		MustAccuseAll(t, h, l, uintptr(unsafe.Pointer(unsafe.StringData(text))), "it is not from a heap")

		// A stack moves when it grows, so this pointer is passed on as one.
		stack := unsafe.Pointer(&onStack)
		if v, ok := testcall.Catch(func() { h.Free(stack) }).(*MisuseError); !ok || !strings.Contains(v.Reason, foreignWords(uintptr(stack))) {
			t.Errorf("free of a stack pointer: %v", v)
		}
		h.Free(h.Malloc(100))
		h.Free(h.Malloc(100_000))
	}
	runtime.KeepAlive(onGoHeap)
}

// TestFreeMeetsWatcher frees a sampled block in a goroutine that does not see yet that the heap is
// watched. The call ends as soon as it does.
func TestFreeMeetsWatcher(t *testing.T) {
	if checkAll != CheckNone {
		return // each heap is watched from its start
	}
	testheap.WithRate(t, 1)
	h := newCheckedHeap(t, Options{})
	p := h.Malloc(100)
	if span.Find(uintptr(p)).LoadTag()&span.KindSampled == 0 {
		t.Fatal("the block is not sampled")
	}
	h.watched.Store(false)
	freed := make(chan any, 1)
	go func() { freed <- testcall.Catch(func() { h.freeSlow("Heap.Free", nil, uintptr(p)) }) }()
	testwait.Until(t, "the goroutine looks at the block", func() bool { return testheap.IsIn("(*Heap).freeSlow") })
	h.watched.Store(true)
	if v := <-freed; v != nil {
		t.Error(v)
	}
}

// TestOtherHeapsBlock gives a heap what another one gave out.
func TestOtherHeapsBlock(t *testing.T) {
	h, other := NewHeap(t, Options{}), NewHeap(t, Options{})
	l := h.NewLocal()
	defer l.Destroy()
	for _, size := range []int{0, 16, 1000, 30_000, 100_000, span.OwnMapping} {
		p := other.Malloc(size)
		for _, off := range []uintptr{0, 1, 16} {
			MustAccuseAll(t, h, l, uintptr(p)+off, "belongs to another heap")
		}
		if size > 0 {
			*(*byte)(p)++ // it is still there
		}
		other.Free(p)
	}
}

// TestInsideOfBlock gives a heap pointers into its own blocks.
func TestInsideOfBlock(t *testing.T) {
	h, l := NewHeapAndLocal(t, Options{})
	for _, size := range []int{16, 100, 1000, 5000, 32768, 40_000, 100_000, 1_000_000, span.OwnMapping + 1} {
		p := h.Malloc(size)
		block := fmt.Sprintf("inside the block at %#x (%d bytes)", uintptr(p), h.UsableSize(p))
		usable := h.UsableSize(p)
		for _, off := range []int{1, 2, 3, 4, 8, 15, 16, 17, 32, usable / 2, usable - 16, usable - 1, span.UnitSize, span.UnitSize + 16} {
			if off > 0 && off < usable {
				MustAccuseAll(t, h, l, uintptr(p)+uintptr(off), block, fmt.Sprintf("%d bytes after its start", off))
			}
		}
		h.Free(p)
	}
}

// TestBadSizes gives sizes and alignments that no block can have: panics where
// the number makes no sense, nil where it is only too large.
func TestBadSizes(t *testing.T) {
	h, l := NewHeapAndLocal(t, Options{})
	const least, most = -1 << (bits.UintSize - 1), 1<<(bits.UintSize-1) - 1

	for _, size := range []int{-1, -16, least, least + 1} {
		for op, f := range map[string]func(){
			"Heap.Malloc":         func() { h.Malloc(size) },
			"Heap.TryMalloc":      func() { _, _ = h.TryMalloc(size) },
			"Heap.AlignedMalloc":  func() { h.AlignedMalloc(size, 16) },
			"Heap.Realloc":        func() { h.Realloc(nil, size) },
			"Heap.Calloc":         func() { h.Calloc(size, 1) },
			"Local.Malloc":        func() { l.Malloc(size) },
			"Local.AlignedMalloc": func() { l.AlignedMalloc(size, 16) },
			"Local.Realloc":       func() { l.Realloc(nil, size) },
			"Local.Calloc":        func() { l.Calloc(1, size) },
			"GoodSize":            func() { GoodSize(size) },
		} {
			MustAccuse(t, op, 0, f, "negative")
		}
	}
	for _, align := range []int{0, -1, 3, 24, 4097, -16, least, most} {
		MustAccuse(t, "Heap.AlignedMalloc", 0, func() { h.AlignedMalloc(16, align) }, "power of two")
		MustAccuse(t, "Local.AlignedMalloc", 0, func() { l.AlignedMalloc(16, align) }, "power of two")
	}
	MustAccuse(t, "NewHeap", 0, func() { _, _ = New(Options{Limit: -1}) }, "negative")

	p := h.Malloc(100)
	MustAccuse(t, "Heap.Realloc", uintptr(p), func() { h.Realloc(p, -1) }, "negative")
	MustAccuse(t, "Heap.TryRealloc", uintptr(p), func() { _, _ = h.TryRealloc(p, -1) }, "negative")

	for _, size := range []int{most, most - 1, most - 4095, most - 65536} {
		if q := h.Malloc(size); q != nil {
			t.Errorf("Malloc(%#x) = %p", size, q)
		}
		if q, err := h.TryMalloc(size); q != nil || err == nil {
			t.Errorf("TryMalloc(%#x) = %p, %v", size, q, err)
		}
		if q := l.Malloc(size); q != nil {
			t.Errorf("Local.Malloc(%#x) = %p", size, q)
		}
		if q := h.Realloc(p, size); q != nil {
			t.Errorf("Realloc to %#x = %p", size, q)
		}
		if q := h.AlignedMalloc(size, 1<<20); q != nil {
			t.Errorf("AlignedMalloc(%#x) = %p", size, q)
		}
		if q := h.Calloc(size, 2); q != nil {
			t.Errorf("Calloc(%#x, 2) = %p", size, q)
		}
		if q := l.Calloc(4, size); q != nil {
			t.Errorf("Local.Calloc(4, %#x) = %p", size, q)
		}
	}
	if q := h.AlignedMalloc(16, 1<<(bits.UintSize-2)); q != nil {
		t.Errorf("AlignedMalloc aligned to a quarter of the address space = %p", q)
	}
	h.Free(p)
}

// TestFreeNil frees nothing, in every way.
func TestFreeNil(t *testing.T) {
	h := NewHeap(t, Options{})
	l := h.NewLocal()
	h.Free(nil)
	l.Free(nil)
	if n := h.UsableSize(nil); n != 0 {
		t.Errorf("UsableSize(nil) = %d", n)
	}
	if h.Owns(nil) {
		t.Error("Owns(nil)")
	}
	l.Destroy()
	if s := h.Stats(); s.Mallocs != 0 || s.Frees != 0 {
		t.Errorf("%+v", s)
	}
}

// TestZeroHeap uses a heap and a Local that were not made by their functions.
func TestZeroHeap(t *testing.T) {
	const says = "not made by"
	var h Heap
	MustAccuse(t, "Heap.Malloc", 0, func() { h.Malloc(1) }, says)
	MustAccuse(t, "Heap.Calloc", 0, func() { h.Calloc(1, 1) }, says)
	MustAccuse(t, "Heap.Free", 0, func() { h.Free(unsafe.Pointer(&global)) }, says)
	MustAccuse(t, "Heap.Owns", 0, func() { h.Owns(nil) }, says)
	MustAccuse(t, "Heap.Trim", 0, func() { h.Trim() }, says)
	MustAccuse(t, "Heap.Destroy", 0, func() { _ = h.Destroy() }, says)
	MustAccuse(t, "Heap.NewLocal", 0, func() { h.NewLocal() }, says)
}
