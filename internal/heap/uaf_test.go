package heap_test

import (
	"slices"
	"testing"
	"unsafe"

	. "github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// TestUseAfterFree uses freed blocks of twelve sizes. Where the canary is, nothing is
// left of what the program had there. A write to one byte of the first 16 is a panic when the block
// is about to be used again.
func TestUseAfterFree(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	for _, size := range []int{8, 9, 16, 20, 32, 33, 48, 64, 65, 129, 255, 256} {
		h := NewHeap(t, Options{})
		l := h.NewLocal() // all free blocks are in one cache
		const seen = sizeclass.Quantum
		for off := range seen {
			var kept [5]unsafe.Pointer
			for i := range kept {
				kept[i] = l.Malloc(size)
			}
			p := kept[off%len(kept)]
			b := unsafe.Slice((*byte)(p), seen)
			for i := range b {
				b[i] = 0x77
			}
			l.Free(p)
			if mark := b[8:16]; !slices.ContainsFunc(mark, func(c byte) bool { return c != 0x77 }) || slices.Contains(b[16:], 0x77) {
				t.Errorf("%d bytes: a freed block has what it had before: %#x", size, b)
			}
			b[off] ^= 0x42
			var found *MisuseError
			for range 5000 {
				v := testcall.Catch(func() { kept[off%len(kept)] = l.Malloc(size) })
				if v != nil {
					found, _ = v.(*MisuseError)
					kept[off%len(kept)] = nil
					break
				}
				if kept[off%len(kept)] == p {
					break
				}
				l.Free(kept[off%len(kept)])
			}
			if found == nil || found.Addr != uintptr(p) {
				t.Fatalf("%d bytes, byte %d was written to: %v", size, off, found)
			}
			testheap.FreeAll(h, kept[:])
		}
		l.Destroy()
		h.DestroyAll()
	}
}

// TestUseAfterFreeOfRing frees the nodes of a ring, each of which has a pointer to the one
// before, and goes on to use them. None of them is handed out again. Some nodes stay in
// use, so that no span goes back.
func TestUseAfterFreeOfRing(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	const n, size = 5000, 64
	h, err := New(Options{})
	testcall.Must(t, err)
	defer h.DestroyAll()
	l := h.NewLocal()
	defer l.Destroy()
	ring := make([]unsafe.Pointer, n)
	for i := range ring {
		ring[i] = l.Malloc(size)
	}
	words := func(i int) []uintptr { return unsafe.Slice((*uintptr)(ring[i]), size/unsafe.Sizeof(uintptr(0))) }
	for i := range ring {
		for j := range words(i) {
			words(i)[j] = uintptr(ring[(i+n-1)%n])
		}
	}
	used := func(i int) bool { return i%500 == 0 }
	for i, p := range ring {
		if !used(i) {
			l.Free(p)
		}
	}
	for i := range ring {
		if used(i) {
			continue
		}
		words(i)[0] ^= 0x55 // every one
	}
	panics := 0
	live := map[unsafe.Pointer]bool{}
	for range 2 * n {
		v := testcall.Catch(func() {
			if p := l.Malloc(size); live[p] {
				t.Fatalf("%p is handed out twice", p)
			} else {
				live[p] = true
			}
		})
		if _, ok := v.(*MisuseError); ok {
			panics++
		} else if v != nil {
			t.Fatal(v)
		}
	}
	for _, p := range ring {
		if live[p] {
			t.Fatalf("%p was written to after it was freed, and is handed out", p)
		}
	}
	if panics == 0 {
		t.Error("nothing was noticed")
	}
	for p := range live {
		h.Free(p)
	}
}
