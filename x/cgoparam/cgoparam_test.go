package cgoparam

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cheaptest"
	"github.com/cheapgo/cheap/internal/testwait"
)

// The signatures of the original.
var (
	_ func() *Allocator                             = GetAlloc
	_ func(*Allocator)                              = ReturnAlloc
	_ func(*Allocator, int) unsafe.Pointer          = (*Allocator).Malloc
	_ func(*Allocator, string) unsafe.Pointer       = (*Allocator).CString
	_ func(*Allocator, []byte) unsafe.Pointer       = (*Allocator).CBytes
	_ interface{ Malloc(size int) unsafe.Pointer }  = (*Allocator)(nil)
	_ interface{ CBytes(b []byte) unsafe.Pointer }  = (*Allocator)(nil)
	_ interface{ CString(s string) unsafe.Pointer } = (*Allocator)(nil)
)

func bytesAt(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

func TestStringsAndBytes(t *testing.T) {
	alloc := GetAlloc()
	defer ReturnAlloc(alloc)
	long := strings.Repeat("longer than a chunk ", 5000)
	for _, s := range []string{"", "x", "WOW STRING", long} {
		if p := alloc.CString(s); cheap.GoString(p) != s || bytesAt(p, len(s)+1)[len(s)] != 0 {
			t.Errorf("CString of %d bytes is another string", len(s))
		}
		if p := alloc.CBytes([]byte(s)); p == nil || string(bytesAt(p, len(s))) != s {
			t.Errorf("CBytes of %d bytes are others", len(s))
		}
	}
	if alloc.CBytes(nil) == nil {
		t.Error("CBytes of nil is nil")
	}
}

// TestManySizes has the cases of the original: blocks that together exceed its
// page, a block larger than the rest of the page, a block larger than the page.
func TestManySizes(t *testing.T) {
	for range 3 {
		alloc := GetAlloc()
		var blocks [][]byte
		for i, size := range []int{1, 100, 1000, 900, 900, 900, 900, 1200, 4096, 5000, 100_000, 0, 7, 8, 9} {
			p := alloc.Malloc(size)
			if uintptr(p)%16 != 0 {
				t.Errorf("%d bytes at %p", size, p)
			}
			b := bytesAt(p, size)
			for j := range b {
				b[j] = byte(i)
			}
			blocks = append(blocks, b)
		}
		for i, b := range blocks {
			if want := bytes.Repeat([]byte{byte(i)}, len(b)); !bytes.Equal(b, want) {
				t.Errorf("block %d of %d bytes was written to by another", i, len(b))
			}
		}
		ReturnAlloc(alloc)
	}
}

func TestNoMemory(t *testing.T) {
	alloc := GetAlloc()
	defer ReturnAlloc(alloc)
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, cheap.ErrNoMemory) {
			t.Errorf("panic value %v; want an error that wraps ErrNoMemory", err)
		}
		if alloc.Malloc(1000) == nil {
			t.Error("nil after there was no memory")
		}
	}()
	for range 8 { // one of them may be had where an int has 32 bits
		if alloc.Malloc(math.MaxInt) == nil {
			t.Fatal("nil")
		}
	}
}

func TestUseAfterReturn(t *testing.T) {
	alloc := GetAlloc()
	alloc.Malloc(1)
	ReturnAlloc(alloc)
	for name, use := range map[string]func(){
		"Malloc":      func() { alloc.Malloc(1) },
		"a large one": func() { alloc.Malloc(1 << 20) },
		"size 0":      func() { alloc.Malloc(0) },
		"CString":     func() { alloc.CString("") },
		"CBytes":      func() { alloc.CBytes([]byte("b")) },
		"ReturnAlloc": func() { ReturnAlloc(alloc) },
	} {
		func() {
			defer func() {
				v := recover()
				if e, ok := v.(*cheap.MisuseError); !ok || !strings.Contains(e.Reason, "given back") {
					t.Errorf("%s after ReturnAlloc: panic value %v; want a MisuseError", name, v)
				}
			}()
			use()
		}()
	}
	for range 20 { // until the pool gives out the same again
		if again := GetAlloc(); again == alloc {
			if alloc.Malloc(100) == nil {
				t.Error("nil from one that was taken again")
			}
			ReturnAlloc(again)
			return
		}
	}
}

func TestNegativeSize(t *testing.T) {
	alloc := GetAlloc()
	defer ReturnAlloc(alloc)
	defer func() {
		if e, ok := recover().(*cheap.MisuseError); !ok {
			t.Errorf("panic value %v; want a MisuseError", e)
		}
	}()
	alloc.Malloc(-1)
}

// TestDropped drops Allocators that were never returned, and waits until all their
// memory is freed: first chunks, further ones, large blocks.
func TestDropped(t *testing.T) {
	const n = 50
	heap := cheap.Default()
	runtime.GC()
	before := heap.Stats().Blocks
	done := make(chan int64)
	go func() { // not on this goroutine's stack
		for range n {
			alloc := GetAlloc()
			for range 40 {
				alloc.Malloc(1000)
			}
			alloc.Malloc(1 << 20)
		}
		done <- heap.Stats().Blocks
	}()
	if now := <-done; now < before+n {
		t.Fatalf("%d blocks before, %d with %d allocators in use", before, now, n)
	}
	testwait.Until(t, fmt.Sprintf("the blocks are no more than before: %d", before), func() bool {
		runtime.GC()
		return heap.Stats().Blocks <= before
	})
}

func TestCosts(t *testing.T) {
	smallBatch()
	if n := testing.AllocsPerRun(100, smallBatch); n != 0 {
		t.Errorf("%v Go allocations", n)
	}
	calls := runtime.NumCgoCall()
	multipage()
	if n := runtime.NumCgoCall() - calls; n != 0 {
		t.Errorf("%d cgo calls", n)
	}
}

// TestHammer has goroutines take allocators, write to their blocks, wait, and
// verify the contents.
func TestHammer(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				alloc := GetAlloc()
				want := fmt.Sprint(g, " ", i)
				var all []unsafe.Pointer
				for range 1 + i%30 {
					all = append(all, alloc.CString(want))
					alloc.Malloc(i * 3)
				}
				runtime.Gosched()
				for _, p := range all {
					if got := cheap.GoString(p); got != want {
						t.Errorf("%q became %q", want, got)
						return
					}
				}
				ReturnAlloc(alloc)
			}
		})
	}
	wg.Wait()
}

// adapter makes an Allocator a cheap.Allocator: Malloc returns nil if there is no
// memory, Free does nothing, and Destroy is ReturnAlloc.
type adapter struct{ alloc *Allocator }

func (a adapter) Malloc(size int) (p unsafe.Pointer) {
	defer func() {
		if v := recover(); v != nil {
			if err, ok := v.(error); !ok || !errors.Is(err, cheap.ErrNoMemory) {
				panic(v)
			}
		}
	}()
	return a.alloc.Malloc(size)
}

func (a adapter) Free(unsafe.Pointer) {}

func (a adapter) Destroy() error {
	ReturnAlloc(a.alloc)
	return nil
}

func TestConformance(t *testing.T) {
	cheaptest.TestAllocator(t, func(testing.TB) cheap.Allocator { return adapter{GetAlloc()} }, cheaptest.Guarantees{Align: 16})
}
