package leaktest

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cheaptest"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// plainAllocator hides the optional methods of an allocator.
type plainAllocator struct{ cheap.Allocator }

// TestAllocator runs the conformance suite over heaps, with and without optional methods, and
// over a FixedBlock.
func TestAllocator(t *testing.T) {
	heap := func(t testing.TB) *cheap.Heap {
		h, err := cheap.NewHeap(cheap.HeapOptions{})
		testcall.Must(t, err)
		return h
	}
	g := cheaptest.Guarantees{Concurrent: true, Reuses: true, CountsLive: true, DetectsMisuse: true, Align: 16}
	t.Run("heap", func(t *testing.T) {
		t.Parallel()
		cheaptest.TestAllocator(t, func(t testing.TB) (cheap.Allocator, func() error) {
			h := heap(t)
			return NewAllocator(h), h.Destroy
		}, g)
	})
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		cheaptest.TestAllocator(t, func(t testing.TB) (cheap.Allocator, func() error) {
			h := heap(t)
			return NewAllocator(plainAllocator{h}), h.Destroy
		}, g)
	})
	t.Run("bounded", func(t *testing.T) {
		t.Parallel()
		cheaptest.TestAllocator(t, func(t testing.TB) (cheap.Allocator, func() error) {
			f := cheap.NewFixedBlock(heap(t), cheap.FixedBlockOptions{BlockSize: 64})
			return NewBoundedAllocator(f), f.Destroy
		}, cheaptest.Guarantees{Reuses: true, DetectsMisuse: true})
	})
}

//go:noinline
func buffer(a cheap.Allocator, n int) unsafe.Pointer { return a.Malloc(n) }

//go:noinline
func release(a cheap.Allocator, p unsafe.Pointer) { a.Free(p) }

// panics returns what f panics with as text.
func panics(t *testing.T, f func()) (text string) {
	t.Helper()
	e, ok := testcall.Catch(f).(*cheap.MisuseError)
	if !ok {
		t.Error("no MisuseError")
		return ""
	}
	return e.Error()
}

func mustSay(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}

func TestAssertSize(t *testing.T) {
	a := NewAllocator(cheap.Default())
	f := new(fake)
	a.AssertSize(f, 0)
	p := buffer(a, 100)
	q, r := buffer(a, 50), a.Calloc(10, 1)
	a.AssertSize(f, 160)
	mustFail(t, f.failed)
	a.AssertSize(f, 0)
	mustFail(t, f.failed, "leaktest: 160 bytes are allocated, want 0:\n"+
		"1 block of 100 bytes, allocated by\ngithub.com/cheapgo/cheap/inspect/leaktest.buffer\n",
		"1 block of 50 bytes, allocated by\n", "allocator_test.go:81\n", "1 block of 10 bytes, allocated by\ngithub.com/cheapgo/cheap/inspect/leaktest.TestAssertSize\n")
	a.Free(p)
	a.Free(q)
	f.failed = nil
	for range 25 {
		a.Free(r)
		r = a.Malloc(10)
	}
	a.AssertSize(f, 1)
	mustFail(t, f.failed, "10 bytes are allocated, want 1")
	a.Free(r)
	if a.Size() != 0 {
		t.Errorf("%d bytes are left", a.Size())
	}
	a.AssertSize(t, 0)
}

// TestAssertSizeListsFew has more stacks than a message lists.
func TestAssertSizeListsFew(t *testing.T) {
	a := NewAllocator(cheap.Default())
	var all []unsafe.Pointer
	for n := 32; n < 64; n++ {
		testcall.Site(n, func() { all = append(all, a.Malloc(n)) })
	}
	f := new(fake)
	a.AssertSize(f, 0)
	mustFail(t, f.failed, "1520 bytes are allocated", "1 block of 63 bytes, ", "and by 12 other stacks")
	for _, p := range all {
		a.Free(p)
	}
}

// TestAllocatorNamesBothStacks frees twice, in places that differ.
func TestAllocatorNamesBothStacks(t *testing.T) {
	a := NewAllocator(cheap.Default())
	p := buffer(a, 100)
	mustSay(t, panics(t, func() { a.Free(unsafe.Add(p, 8)) }), "cheap: leaktest.Allocator.Free: ", "is 8 bytes inside of a block of 100 bytes", "leaktest.buffer\n")
	mustSay(t, panics(t, func() { a.Realloc(unsafe.Add(p, 115), 1) }), "Allocator.Realloc: ", "is 115 bytes inside of")
	mustSay(t, panics(t, func() { a.Free(unsafe.Pointer(t)) }), "is no block of this allocator")
	release(a, p)
	mustSay(t, panics(t, func() { a.Free(p) }), "the block of 100 bytes is freed already; it was allocated by\n", "leaktest.buffer\n", "and freed by\ngithub.com/cheapgo/cheap/inspect/leaktest.release\n")
	mustSay(t, panics(t, func() { a.UsableSize(p) }), "Allocator.UsableSize: ", "freed already")
	a.AssertSize(t, 0)
	a.Free(nil)
	if a.UsableSize(nil) != 0 {
		t.Error("nil has a size")
	}
}

// TestAllocatorFindsDamage writes behind blocks.
func TestAllocatorFindsDamage(t *testing.T) {
	a := NewAllocator(cheap.Default())
	for _, off := range []int{100, 107, 115} {
		p := buffer(a, 100)
		at := (*byte)(unsafe.Add(p, off))
		*at ^= 1
		f := new(fake)
		a.AssertSize(f, 100)
		mustFail(t, f.failed, "behind a block of 100 bytes was written to; it was allocated by\n", "leaktest.buffer\n")
		mustSay(t, panics(t, func() { a.Free(p) }), "behind the block of 100 bytes was written to", "leaktest.buffer\n")
		*at ^= 1
		a.Free(p)
	}
}

// TestAllocatorFills reads blocks that are new, and one that is freed.
func TestAllocatorFills(t *testing.T) {
	inner := &keeping{Allocator: cheap.Default()}
	a := NewAllocator(inner)
	p := (*[100]byte)(a.Malloc(100))
	if p[0] != newByte || p[99] != newByte {
		t.Errorf("a new block has %#x", *p)
	}
	q := (*[200]byte)(a.Realloc(unsafe.Pointer(p), 200))
	if q[99] != newByte || q[199] != newByte || unsafe.Pointer(q) == unsafe.Pointer(p) || p[0] != freedByte || p[99] != freedByte {
		t.Errorf("after Realloc the blocks have %#x and %#x", *p, *q)
	}
	a.Free(unsafe.Pointer(q))
	if r := (*[100]byte)(a.Calloc(4, 25)); *r != [100]byte{} {
		t.Errorf("a block of Calloc has %#x", *r)
	}
	for _, p := range inner.freed {
		cheap.Free(p)
	}
}

// A keeping allocator frees later.
type keeping struct {
	cheap.Allocator
	freed []unsafe.Pointer
}

func (k *keeping) Free(p unsafe.Pointer) { k.freed = append(k.freed, p) }

// TestAllocatorWithoutMemory asks for more than there is.
func TestAllocatorWithoutMemory(t *testing.T) {
	h, err := cheap.NewHeap(cheap.HeapOptions{Limit: 1 << 20})
	testcall.Must(t, err)
	for _, inner := range []cheap.Allocator{h, plainAllocator{h}} {
		a := NewAllocator(inner)
		for _, size := range []int{1 << 30, math.MaxInt, math.MaxInt - border, math.MaxInt - border + 1} {
			if _, err := a.TryMalloc(size); !errors.Is(err, cheap.ErrNoMemory) && !errors.Is(err, cheap.ErrLimit) {
				t.Errorf("%d bytes: %v", size, err)
			}
			if a.Malloc(size) != nil || a.Calloc(size, 2) != nil || a.AlignedMalloc(size, 64) != nil || a.Realloc(nil, size) != nil {
				t.Errorf("%d bytes were allocated", size)
			}
		}
		p := a.Malloc(10)
		if a.Realloc(p, 1<<30) != nil {
			t.Error("Realloc has found memory")
		}
		a.Free(p)
		a.AssertSize(t, 0)
	}
	for _, f := range []func(){
		func() { NewAllocator(nil) },
		func() { NewBoundedAllocator(cheap.NewFixedBlock(h, cheap.FixedBlockOptions{BlockSize: 8})) },
		func() { NewAllocator(h).Malloc(-1) },
		func() { NewAllocator(h).Calloc(-1, 8) },
		func() { NewAllocator(h).AlignedMalloc(8, 3) },
	} {
		mustSay(t, panics(t, f), "cheap: leaktest.")
	}
	testcall.Want(t, h.Destroy())
}
