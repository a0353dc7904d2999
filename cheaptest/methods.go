package cheaptest

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// checkAligned requests many alignments. An allocator may return nil for some, but each
// block that it returns is aligned.
func checkAligned(t *trial) {
	a := t.a.(cheap.AlignedAllocator)
	var all set
	got := 0
	for align := 1; align <= 1<<16; align *= 2 {
		for _, size := range []int{0, 1, align - 1, align, align + 1, 3 * align, 1000} {
			if size > t.maxSize {
				continue
			}
			p := a.AlignedMalloc(size, align)
			if p == nil {
				continue
			}
			got++
			if uintptr(p)%uintptr(align) != 0 {
				t.Fatalf("AlignedMalloc(%d, %d) returned %#x", size, align, uintptr(p))
			}
			all.add(t, t.take("AlignedMalloc", p, size, got))
		}
	}
	if got == 0 {
		t.Errorf("AlignedMalloc returned nil for each size and alignment")
	}
	for _, align := range []int{0, 3, -8, 24, math.MinInt} {
		if _, panicked := panics(func() { a.AlignedMalloc(8, align) }); !panicked {
			t.Errorf("AlignedMalloc with an alignment of %d did not panic", align)
		}
	}
	if _, panicked := panics(func() { a.AlignedMalloc(-1, 8) }); !panicked {
		t.Errorf("AlignedMalloc of -1 bytes did not panic")
	}
	for _, b := range all.blocks {
		t.free(b)
	}
	t.finish()
}

// checkBounded tests an allocator with a largest size.
func checkBounded(t *trial) {
	a := t.a.(cheap.BoundedAllocator)
	if t.maxSize < 0 {
		t.Fatalf("MaxSize is %d", t.maxSize)
	}
	b := t.malloc(min(t.maxSize, largest), 1)
	for _, at := range []int{0, b.size / 2, max(b.size-1, 0)} {
		if !a.Contains(unsafe.Add(b.ptr, at)) { // within the block
			t.Errorf("Contains is false for byte %d of a block of %d", at, b.size)
		}
	}
	other := stranger(t)
	for name, p := range map[string]unsafe.Pointer{"nil": nil, "Go memory": unsafe.Pointer(new(int64)), "the block of a heap": other.ptr} {
		if a.Contains(p) {
			t.Errorf("Contains is true for %s", name)
		}
	}
	other.free()
	if a.MaxSize() != t.maxSize {
		t.Errorf("MaxSize was %d and is %d", t.maxSize, a.MaxSize())
	}
	if t.maxSize < math.MaxInt {
		// Malloc of a size that is too large panics or returns nil.
		var p unsafe.Pointer
		if _, panicked := panics(func() { p = a.Malloc(t.maxSize + 1) }); !panicked && p != nil {
			t.Errorf("Malloc of %d bytes, more than MaxSize, returned a block", t.maxSize+1)
		}
	}
	t.free(b)
	t.finish()
}

// A foreign block is one of another allocator than the tested one.
type foreign struct {
	ptr  unsafe.Pointer
	heap *cheap.Heap
}

func stranger(t *trial) foreign {
	heap, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return foreign{heap.Malloc(64), heap}
}

func (f foreign) free() { f.heap.DestroyAll() }

func checkCalloc(t *trial) {
	a := t.a.(cheap.CallocAllocator)
	for mark, size := range t.sizes() {
		t.free(t.malloc(size, mark)) // so that there is something to clear
		p := a.Calloc(1, size)
		if p == nil {
			t.Fatalf("Calloc of %d bytes returned nil", size)
		}
		for i, c := range unsafe.Slice((*byte)(p), size) { // all of the block
			if c != 0 {
				t.Fatalf("byte %d of %d from Calloc is %d", i, size, c)
			}
		}
		t.free(t.take("Calloc", p, size, mark))
	}
	if t.maxSize >= 3000 {
		t.free(t.take("Calloc", a.Calloc(100, 30), 3000, 1))
	}
	for _, c := range [][2]int{{math.MaxInt, 2}, {math.MaxInt, math.MaxInt}, {1 << (bits.UintSize / 2), 1 << (bits.UintSize / 2)}, {math.MaxInt/2 + 1, 4}} {
		var p unsafe.Pointer
		if _, panicked := panics(func() { p = a.Calloc(c[0], c[1]) }); panicked || p != nil {
			t.Errorf("Calloc(%d, %d) did not return nil", c[0], c[1])
		}
	}
	for _, c := range [][2]int{{-1, 1}, {1, -1}, {-1, -1}} {
		if _, panicked := panics(func() { a.Calloc(c[0], c[1]) }); !panicked {
			t.Errorf("Calloc(%d, %d) did not panic", c[0], c[1])
		}
	}
	t.finish()
}

func checkRealloc(t *trial) {
	a := t.a.(cheap.ReallocAllocator)
	neighbour := t.malloc(min(100, t.maxSize), 3)
	b := t.take("Realloc", a.Realloc(nil, 1), 1, 1) // of nil, which is Malloc
	for _, size := range t.sizes() {
		for _, to := range []int{size, size / 2, min(size*2, t.maxSize, largest)} {
			b = t.resize(a, b, to)
		}
	}
	// A Realloc that returns nil does not change the block.
	if p := a.Realloc(b.ptr, math.MaxInt); p != nil && bits.UintSize == 64 {
		t.Fatalf("Realloc to %d bytes returned a block; want nil", math.MaxInt)
	} else if p != nil {
		b.ptr = p
	}
	t.verify(b)
	if _, panicked := panics(func() { a.Realloc(b.ptr, -1) }); !panicked {
		t.Errorf("Realloc to -1 bytes did not panic")
	}
	t.free(b)
	t.free(neighbour)
	t.finish()
}

// resize resizes a block by Realloc, verifies its contents, and fills it anew.
func (t *trial) resize(a cheap.ReallocAllocator, b block, size int) block {
	t.Helper()
	moved := t.look("Realloc", a.Realloc(b.ptr, size), size, b.mark)
	if damage := moved.damage(b.size); damage != "" {
		t.Fatalf("after Realloc from %d to %d bytes: %s", b.size, size, damage)
	}
	moved.mark++
	moved.fill()
	return moved
}

func checkUsableSize(t *trial) {
	a := t.a.(cheap.UsableSizeAllocator)
	var all set
	for mark, size := range t.sizes() {
		b := t.malloc(size, mark)
		usable := a.UsableSize(b.ptr)
		if usable < size {
			t.Fatalf("UsableSize of a block of %d bytes is %d", size, usable)
		}
		b.size = usable // all of it may be used
		b.fill()
		all.add(t, b)
	}
	for _, b := range all.blocks {
		t.free(b)
	}
	t.finish()
}

func checkTryMalloc(t *trial) {
	a := t.a.(cheap.TryAllocator)
	for mark, size := range t.sizes() {
		p, err := a.TryMalloc(size)
		if err != nil {
			t.Fatalf("TryMalloc of %d bytes: %v", size, err)
		}
		t.free(t.take("TryMalloc", p, size, mark))
	}
	if t.maxSize == math.MaxInt {
		p, err := a.TryMalloc(math.MaxInt)
		switch {
		case p == nil && !errors.Is(err, cheap.ErrNoMemory) && !errors.Is(err, cheap.ErrLimit):
			t.Errorf("TryMalloc of more than there is returned the error %v; want one that wraps ErrNoMemory or ErrLimit", err)
		case p != nil && (err != nil || bits.UintSize == 64):
			t.Errorf("TryMalloc of more than there is returned a block, and the error %v", err)
		}
		t.a.Free(p)
	}
	t.finish()
}

// checkReuse allocates and frees so often that an allocator has to reuse freed blocks.
func checkReuse(t *trial) {
	const live = 8
	for _, size := range []int{0, 16, 100, 3000, 40_000} {
		if size > t.maxSize {
			continue
		}
		rounds := 2000
		if size > 100 {
			rounds = 200 // writing to them takes long enough
		}
		seen := map[unsafe.Pointer]bool{}
		for round := range rounds {
			var blocks [live]block
			for i := range blocks {
				blocks[i] = t.malloc(size, round+i)
				seen[blocks[i].ptr] = true
			}
			for _, b := range blocks {
				t.free(b)
			}
		}
		if len(seen) > rounds*live/2 {
			t.Errorf("%d blocks of %d bytes, %d at a time, had %d different addresses", rounds*live, size, live, len(seen))
		}
	}
	t.finish()
}

// checkMisuse calls Free with pointers that are not live blocks.
func checkMisuse(t *trial) {
	size := min(100, t.maxSize)
	keep := t.malloc(size, 1)
	other := stranger(t)
	wrong := func(what string, p unsafe.Pointer) {
		t.Helper()
		value, panicked := panics(func() { t.a.Free(p) })
		if !panicked {
			t.Fatalf("Free of %s did not panic", what)
		}
		if fmt.Sprint(value) == "" {
			t.Errorf("Free of %s panicked without a word", what)
		}
		t.verify(keep)
		t.free(t.malloc(size, 2))
	}
	for range 3 {
		b := t.malloc(size, 2)
		t.free(b)
		wrong("a block that is free", b.ptr)
	}
	var blocks []block
	for i := range 100 {
		blocks = append(blocks, t.malloc(size, i))
	}
	for _, b := range blocks {
		t.free(b)
	}
	for _, i := range []int{0, 50, 99} {
		value, panicked := panics(func() { t.a.Free(blocks[i].ptr) })
		if !panicked {
			t.Fatalf("Free of a block that is free, one of %d, did not panic: %v", len(blocks), value)
		}
	}
	for _, at := range []int{1, 8, size - 1} {
		if at > 0 && at < size {
			p := unsafe.Add(keep.ptr, at) // within the block
			wrong(fmt.Sprintf("byte %d of a block", at), p)
		}
	}
	wrong("a block of another heap", other.ptr)
	wrong("Go memory", unsafe.Pointer(new([100]byte)))
	other.free()
	t.free(keep)
	t.finish()
}
