package cheaptest

import (
	"errors"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// largest is the largest size for which the checks require a block.
const largest = 1 << 20

// sizes returns sizes that the allocator accepts: small ones, and those around powers
// of two.
func (t *trial) sizes() []int {
	var sizes []int
	for n := range 130 {
		sizes = append(sizes, n)
	}
	for n := 256; n <= largest; n *= 2 {
		sizes = append(sizes, n-1, n, n+1)
	}
	return slices.DeleteFunc(append(sizes, min(t.maxSize, largest)), func(n int) bool { return n > t.maxSize })
}

// checkSizes has blocks of many sizes live at once, and frees some before the
// others.
func checkSizes(t *trial) {
	var all set
	for mark, size := range t.sizes() {
		all.add(t, t.malloc(size, mark))
	}
	for i, b := range all.blocks {
		if i%2 == 0 {
			t.free(b)
		}
	}
	for i, b := range all.blocks {
		if i%2 != 0 {
			t.free(b)
		}
	}
	t.finish()
}

func checkZero(t *trial) {
	var all set
	for i := range 1000 {
		all.add(t, t.malloc(0, i))
		all.add(t, t.malloc(min(i, t.maxSize), i))
	}
	for _, b := range all.blocks {
		t.free(b)
	}
	t.finish()
}

func checkNegative(t *trial) {
	before := t.malloc(min(100, t.maxSize), 1)
	for _, size := range []int{-1, -16, math.MinInt} {
		if _, panicked := panics(func() { t.a.Malloc(size) }); !panicked {
			t.Errorf("Malloc of %d bytes did not panic", size)
		}
	}
	after := t.malloc(min(100, t.maxSize), 2)
	t.free(after)
	t.free(before)
	t.finish()
}

func checkFreeNil(t *trial) {
	t.a.Free(nil)
	b := t.malloc(min(100, t.maxSize), 1)
	t.a.Free(nil)
	t.free(b)
	t.a.Free(nil)
	t.finish()
}

// checkTooLarge requests more memory than a 64-bit system has. A 32-bit system may
// have it.
func checkTooLarge(t *trial) {
	before := t.malloc(min(100, t.maxSize), 1)
	for _, size := range []int{math.MaxInt, math.MaxInt - 1, math.MaxInt - 15, math.MaxInt - 1<<16} {
		if size > t.maxSize {
			continue // see checkBounded
		}
		p := t.a.Malloc(size)
		if p != nil && bits.UintSize == 64 {
			t.Fatalf("Malloc of %d bytes returned a block; want nil", size)
		}
		t.a.Free(p)
	}
	after := t.malloc(min(100, t.maxSize), 2)
	t.free(after)
	t.free(before)
	t.finish()
}

// checkDestroy destroys an allocator that has never been used. If it guarantees to
// count live blocks, checkDestroy also uses it after that.
func checkDestroy(t *trial) {
	t.finish()
	if !t.guarantees.CountsLive {
		return
	}
	if err := t.destroy(); !errors.Is(err, cheap.ErrDestroyed) {
		t.Errorf("a second Destroy returned %v; want %v", err, cheap.ErrDestroyed)
	}
	if _, panicked := panics(func() { t.a.Malloc(1) }); !panicked {
		t.Errorf("Malloc after Destroy did not panic")
	}
}

// checkLive destroys an allocator with live blocks. If Destroy returns an error, the
// blocks are unchanged, and Destroy succeeds after they are freed.
func checkLive(t *trial) {
	const n = 100
	var all set
	for i := range n {
		all.add(t, t.malloc(min(24, t.maxSize), i)) // of one size, so that all are in one tier
	}
	for _, b := range all.blocks[:n/2] {
		t.free(b)
	}
	live := slices.Clone(all.blocks[n/2:])
	for len(live) > 0 {
		err := t.destroy()
		if err == nil {
			if t.guarantees.CountsLive {
				t.Fatalf("Destroy returned nil with %d live blocks", len(live))
			}
			return // Destroy need not find them, and they are invalid now
		}
		if e, ok := errors.AsType[*cheap.LiveError](err); t.guarantees.CountsLive && !ok {
			t.Fatalf("Destroy with live blocks returned %v; want a LiveError", err)
		} else if t.guarantees.CountsLive && e.Blocks != int64(len(live)) {
			t.Fatalf("Destroy says that %d blocks are live; want %d", e.Blocks, len(live))
		}
		for _, b := range live {
			t.verify(b)
		}
		more := set{slices.Clone(live)} // the allocator still works
		b := t.malloc(min(24, t.maxSize), n)
		more.add(t, b)
		t.free(b)
		keep := len(live) / 2
		for _, b := range live[keep:] {
			t.free(b)
		}
		live = live[:keep]
	}
	t.finish()
}

// checkHelpers calls the functions of package cheap that take an allocator.
func checkHelpers(t *trial) {
	const s = "some text"
	if t.maxSize < 64 {
		t.finish()
		return
	}
	str := cheap.CString(t.a, s)
	raw := cheap.CBytes(t.a, []byte(s))
	array := cheap.CStrings(t.a, []string{s, ""})
	if str == nil || raw == nil || array == nil {
		t.Fatalf("no memory for strings")
	}
	if got := cheap.GoString(str); got != s {
		t.Errorf("CString made %q of %q", got, s)
	}
	if got := string(unsafe.Slice((*byte)(raw), len(s))); got != s { // CBytes copied len(s) bytes
		t.Errorf("CBytes made %q of %q", got, s)
	}
	for i, want := range []string{s, ""} {
		// The array has three pointers.
		p := *(*unsafe.Pointer)(unsafe.Add(array, i*int(unsafe.Sizeof(array))))
		if got := cheap.GoString(p); got != want {
			t.Errorf("CStrings made %q of %q", got, want)
		}
	}
	for _, p := range []unsafe.Pointer{array, raw, str} {
		t.a.Free(p)
	}

	dirty := t.malloc(64, 1)
	t.free(dirty)
	if p := cheap.New[[8]int64](t.a); p == nil || *p != [8]int64{} {
		t.Errorf("New returned %v; want zeros", p)
	} else {
		t.a.Free(unsafe.Pointer(p))
	}
	slice := cheap.MakeSlice[uint16](t.a, 0, 4)
	var err error
	for i := range min(1000, t.maxSize/4) {
		if slice, err = cheap.Append(t.a, slice, uint16(i)); err != nil {
			t.Fatalf("Append: %v", err)
		}
	}
	for i, v := range slice {
		if v != uint16(i) {
			t.Fatalf("element %d of an appended slice is %d", i, v)
		}
	}
	cheap.FreeSlice(t.a, slice)
	t.finish()
}

// checkCollector has blocks that only other blocks point to, as in structures of C,
// and collects. The blocks do not change.
func checkCollector(t *trial) {
	const n = 2000
	size := int(unsafe.Sizeof(pointer(nil))) + 40
	if size > t.maxSize {
		t.finish()
		return
	}
	word := int(unsafe.Sizeof(pointer(nil)))
	var head unsafe.Pointer
	for i := range n {
		b := t.malloc(size, i)
		b.behind(word).fill()
		*(*uintptr)(b.ptr) = uintptr(head) // a number: it must not need a write barrier
		head = b.ptr
	}
	for range 2 {
		runtime.GC()
		garbage(1 << 20)
		t.free(t.malloc(size, 0)) // the allocator still works
	}
	for i := n - 1; i >= 0; i-- {
		if head == nil {
			t.Fatalf("a chain of %d blocks ends after %d", n, n-1-i)
		}
		next := *(*unsafe.Pointer)(head)
		t.verify(block{head, size, i}.behind(word))
		t.a.Free(head)
		head = next
	}
	t.finish()
}

// garbage makes n bytes of garbage, in pieces of the size of blocks.
func garbage(n int) {
	var pieces [][]byte
	for range n / 64 {
		pieces = append(pieces, make([]byte, 64))
	}
	runtime.KeepAlive(pieces)
}

// checkGoroutines has a goroutine allocate blocks that another one frees, one at a
// time: no allocator is bound to a goroutine or a thread.
func checkGoroutines(t *trial) {
	baton := make(chan []block)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				t.Errorf("in another goroutine: panic: %v", v)
			}
		}()
		for blocks := range baton {
			for i, b := range blocks {
				if damage := b.damage(b.size); damage != "" {
					t.Errorf("in another goroutine: %s", damage)
				}
				t.a.Free(b.ptr)
				blocks[i] = block{t.a.Malloc(b.size), b.size, b.mark + 1}
				if blocks[i].ptr == nil {
					t.Errorf("in another goroutine: Malloc of %d bytes returned nil", b.size)
					continue
				}
				blocks[i].fill()
			}
			baton <- blocks
		}
	}()
	for round := range 10 {
		var blocks []block
		for i, size := range t.sizes() {
			if size <= 1<<16 {
				blocks = append(blocks, t.malloc(size, round+i))
			}
		}
		select {
		case baton <- blocks:
		case <-done:
			return // it has reported why
		}
		select {
		case blocks = <-baton:
		case <-done:
			return
		}
		for _, b := range blocks {
			if b.ptr != nil {
				t.free(b)
			}
		}
	}
	close(baton)
	<-done
	t.finish()
}
