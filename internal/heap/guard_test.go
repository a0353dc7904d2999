//go:build !cheap_gomem

package heap_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	. "github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/watch/guard"
)

// withGuard sets the rate for a test.
func withGuard(t testing.TB, rate int64) {
	old := guard.SetRate(rate)
	t.Cleanup(func() { guard.SetRate(old) })
}

// isGuarded reports whether the block at p is in use and guarded.
func isGuarded(p unsafe.Pointer) bool {
	b, _, ok := guard.Find(uintptr(p))
	return ok && b.Live && b.Start == uintptr(p)
}

// misuseOf returns the text of the MisuseError that f panics with.
func misuseOf(t testing.TB, f func()) string {
	t.Helper()
	m, ok := testcall.Catch(f).(*MisuseError)
	if !ok {
		t.Error("no MisuseError")
		return ""
	}
	return m.Reason
}

var byteRead byte

// read and write touch one byte at an address that may be any.
func readByte(p unsafe.Pointer, at int)  { byteRead = *(*byte)(unsafe.Add(p, at)) }
func writeByte(p unsafe.Pointer, at int) { *(*byte)(unsafe.Add(p, at)) ^= 0xFF }

// guardedSizes are usable sizes of blocks.
var guardedSizes = []int{16, 48, 1024, 3584, 4096, 8192, 32768}

// eachWay calls f with each pair of Malloc and Free that a heap has.
func eachWay(t *testing.T, f func(t *testing.T, h *Heap, malloc func(int) unsafe.Pointer, free func(unsafe.Pointer))) {
	t.Run("heap", func(t *testing.T) {
		h := NewHeap(t, Options{})
		f(t, h, h.Malloc, h.Free)
	})
	t.Run("local", func(t *testing.T) {
		h := NewHeap(t, Options{})
		l := h.NewLocal()
		defer l.Destroy()
		f(t, h, l.Malloc, l.Free)
	})
	t.Run("try", func(t *testing.T) {
		h := NewHeap(t, Options{})
		malloc := func(n int) unsafe.Pointer {
			p, err := h.TryMalloc(n)
			testcall.Must(t, err)
			return p
		}
		f(t, h, malloc, h.Free)
	})
}

// faultOf returns the address that the system says of a fault at byte i of the block at p. On
// s390x that is of the page.
func faultOf(p unsafe.Pointer, i int) uintptr {
	addr := uintptr(p) + uintptr(i)
	if runtime.GOARCH == "s390x" {
		addr &^= osmem.PageSize - 1
	}
	return addr
}

// TestGuardedFaults guards each block. Each byte of it can be used. One byte behind its end or
// before its start faults, or is found by Free, and one of the two faults. After the free
// each byte faults.
func TestGuardedFaults(t *testing.T) {
	withGuard(t, 1)
	eachWay(t, func(t *testing.T, h *Heap, malloc func(int) unsafe.Pointer, free func(unsafe.Pointer)) {
		for _, size := range guardedSizes {
			ends := map[string]int{}
			for range 40 {
				p := malloc(size)
				if !isGuarded(p) || UsableSize(p) != size || uintptr(p)%uintptr(size&-size) != 0 {
					t.Fatalf("%d bytes at %p: guarded %v, usable %d", size, p, isGuarded(p), UsableSize(p))
				}
				clear(unsafe.Slice((*byte)(p), size))
				over := testheap.FaultAt(t, func() { writeByte(p, size) })
				under := testheap.FaultAt(t, func() { writeByte(p, -1) })
				ends[fmt.Sprint(over != 0, under != 0)]++
				if over != 0 && over != faultOf(p, size) || under != 0 && under != faultOf(p, -1) {
					t.Errorf("the block is at %p, the faults are at %#x and %#x", p, over, under)
				}
				if testheap.FaultAt(t, func() { readByte(p, size) }) != over || testheap.FaultAt(t, func() { readByte(p, -1) }) != under {
					t.Error("reads differ from writes")
				}
				switch {
				case over == 0:
					if m := misuseOf(t, func() { free(p) }); !strings.Contains(m, fmt.Sprintf("behind its end: 1 bytes from byte %d on", size)) || !hasStacks(m) {
						t.Errorf("one byte over: %s", m)
					}
				case under == 0:
					if m := misuseOf(t, func() { free(p) }); !strings.Contains(m, "before its start: 1 bytes from byte -1 on") || !hasStacks(m) {
						t.Errorf("one byte under: %s", m)
					}
				default:
					free(p)
				}
				for _, at := range []int{0, size / 2, size - 1} {
					if got, want := testheap.FaultAt(t, func() { writeByte(p, at) }), faultOf(p, at); got != want {
						t.Errorf("a write to byte %d after the free faults at %#x, want %#x", at, got, want)
					}
				}
				if m := misuseOf(t, func() { free(p) }); !strings.Contains(m, "free already") || !hasStacks(m) {
					t.Errorf("a double free: %s", m)
				}
			}
			whole := size%int(osmem.PageSize) == 0
			if whole && ends["true true"] != 40 || !whole && (ends["true false"] == 0 || ends["false true"] == 0 || ends["false false"] > 0) {
				t.Errorf("%d bytes: faults over and under: %v", size, ends)
			}
		}
		if s := h.Stats(); s.Blocks != 0 || s.Bytes != 0 || s.Mallocs != s.Frees || s.Mallocs != int64(40*len(guardedSizes)) {
			t.Errorf("stats %+v", s)
		}
	})
}

// hasStacks reports whether a report has the stacks of an allocation and a free in this file.
func hasStacks(m string) bool {
	m, _, _ = strings.Cut(m, "\nor look for") // of an earlier block in the slot
	_, freed, ok := strings.Cut(m, "\nfreed by")
	return ok && strings.Contains(m, "\nallocated by\n\tgithub.com/cheapgo/cheap/internal/heap_test.") &&
		strings.Count(m, "guard_test.go:") >= 2 && strings.Contains(freed, "guard_test.go:")
}

// TestGuardedVerdicts frees what is no start of a block, in and beside guarded blocks.
func TestGuardedVerdicts(t *testing.T) {
	withGuard(t, 1)
	h, other := NewHeap(t, Options{}), NewHeap(t, Options{})
	p := h.Malloc(64)
	for want, f := range map[string]func(){
		"is inside the block":     func() { h.Free(unsafe.Add(p, 8)) },
		"is beside the block":     func() { h.Free(unsafe.Add(p, 80)) },
		"belongs to another heap": func() { other.Free(p) },
		"8 bytes after its start": func() { h.UsableSize(unsafe.Add(p, 8)) },
	} {
		m, _, _ := strings.Cut(misuseOf(t, f), "\nor look for") // of an earlier block in the slot
		if !strings.Contains(m, want) || !strings.Contains(m, "allocated by") || strings.Contains(m, "freed by") {
			t.Errorf("want %q, got %s", want, m)
		}
	}
	if !h.Owns(p) || h.Owns(unsafe.Add(p, 8)) || other.Owns(p) || UsableSize(p) != 64 {
		t.Error("Owns or UsableSize is wrong")
	}
	done := make(chan bool)
	go func() { h.Free(p); close(done) }()
	<-done
	if h.Owns(p) {
		t.Error("the heap owns a freed block")
	}
	if m := misuseOf(t, func() { h.Free(p) }); !strings.Contains(m, "freed by, in another goroutine,") {
		t.Errorf("a double free: %s", m)
	}
	if m := misuseOf(t, func() { h.Realloc(p, 100) }); !strings.Contains(m, "free already") {
		t.Errorf("a Realloc after the free: %s", m)
	}
}

// TestGuardedRealloc resizes guarded blocks, which moves what they have.
func TestGuardedRealloc(t *testing.T) {
	withGuard(t, 1)
	h := NewHeap(t, Options{})
	p := (*[32]byte)(h.Calloc(4, 8))
	if *p != [32]byte{} || !isGuarded(unsafe.Pointer(p)) {
		t.Fatal("Calloc returns another block")
	}
	p[31] = 7
	q := (*[32]byte)(h.Realloc(unsafe.Pointer(p), 5000))
	if q[31] != 7 || !isGuarded(unsafe.Pointer(q)) {
		t.Error("the contents are lost, or the new block is not guarded")
	}
	if testheap.FaultAt(t, func() { readByte(unsafe.Pointer(p), 0) }) == 0 {
		t.Error("the old block can be read")
	}
	if same := h.Realloc(unsafe.Pointer(q), 5001); same != unsafe.Pointer(q) {
		t.Error("a Realloc that fits moves the block")
	}
	big := h.Realloc(unsafe.Pointer(q), 1<<20)
	if (*[32]byte)(big)[31] != 7 {
		t.Error("the contents are lost on the way to a large block")
	}
	h.Free(big)
	for _, align := range []int{16, 64, 4096, 32768} {
		p := h.AlignedMalloc(align, align)
		if uintptr(p)%uintptr(align) != 0 || !isGuarded(p) {
			t.Errorf("AlignedMalloc of %d: %p, guarded %v", align, p, isGuarded(p))
		}
		h.Free(p)
	}
	if s := h.Stats(); s.Blocks != 0 || s.Bytes != 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestGuardedReuse uses up all slots. Further blocks are ordinary, and slots come back in the
// order of the frees.
func TestGuardedReuse(t *testing.T) {
	withGuard(t, 1)
	h := NewHeap(t, Options{})
	held := h.Stats().Held
	var blocks []unsafe.Pointer
	n := 0
	for range guard.MostSlots + 50 {
		p := h.Malloc(100)
		*(*int)(p) = len(blocks)
		blocks = append(blocks, p)
		if isGuarded(p) {
			n++
		}
	}
	if least := 60; n < least || n > guard.MostSlots || isGuarded(blocks[len(blocks)-1]) {
		t.Fatalf("%d blocks are guarded, want %d to %d", n, least, guard.MostSlots)
	}
	if s := h.Stats(); s.Blocks != int64(len(blocks)) || s.Bytes != int64(len(blocks))*112 || s.Held-held < int64(n)*guard.Cost(112) {
		t.Errorf("stats %+v with %d guarded blocks", s, n)
	}
	for i, p := range blocks {
		if *(*int)(p) != i {
			t.Fatal("two blocks overlap")
		}
		h.Free(p)
	}
	if now := h.Stats().Held; now-held >= int64(n)*guard.Cost(112)/2 {
		t.Errorf("the heap holds %d bytes more with all blocks freed", now-held)
	}
	unit := func(p unsafe.Pointer) uintptr { return uintptr(p) / span.UnitSize }
	for i := range n {
		p := h.Malloc(16)
		if !isGuarded(p) || unit(p) != unit(blocks[i]) {
			t.Fatalf("block %d is at %p, want the slot of %p", i, p, blocks[i])
		}
		h.Free(p)
		if testheap.FaultAt(t, func() { readByte(p, 0) }) == 0 {
			t.Fatal("a freed block can be read")
		}
	}
	if s := h.Stats(); s.Blocks != 0 || s.Bytes != 0 || s.Mallocs != int64(len(blocks)+n) {
		t.Errorf("stats %+v", s)
	}
}
