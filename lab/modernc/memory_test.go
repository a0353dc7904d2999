package memory

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cheaptest"
)

// An adapter makes an Allocator a cheap.Allocator. It adds blocks for a size of 0, and
// the count of live blocks that Destroy needs, which the API of modernc.org/memory does
// not have.
type adapter struct {
	a    Allocator
	live map[unsafe.Pointer]bool
	done bool
}

func (d *adapter) Malloc(size int) unsafe.Pointer {
	if d.done {
		panic("used after Destroy")
	}
	if size == 0 {
		size = 1
	}
	p, err := d.a.UnsafeMalloc(size)
	if (err != nil) != (p == nil) {
		panic(fmt.Sprintf("UnsafeMalloc returned %p and %v", p, err))
	}
	if p != nil {
		d.live[p] = true
	}
	return p
}

func (d *adapter) Free(p unsafe.Pointer) {
	if err := d.a.UnsafeFree(p); err != nil {
		panic(err)
	}
	delete(d.live, p)
}

func (d *adapter) UsableSize(p unsafe.Pointer) int { return UnsafeUsableSize(p) }

func (d *adapter) Destroy() error {
	if d.done {
		return cheap.ErrDestroyed
	}
	if n := len(d.live); n > 0 {
		return &cheap.LiveError{Op: "adapter.Destroy", Blocks: n}
	}
	d.done = true
	return d.a.Close()
}

func TestConformance(t *testing.T) {
	cheaptest.TestAllocator(t, func(testing.TB) cheap.Allocator {
		return &adapter{live: map[unsafe.Pointer]bool{}}
	}, cheaptest.Guarantees{Reuses: true, CountsLive: true, DetectsMisuse: true, Align: 16})
}

// newAllocator returns an Allocator that is closed when the test ends, after which no
// memory may be left.
func newAllocator(t testing.TB) *Allocator {
	t.Helper()
	a := new(Allocator)
	t.Cleanup(func() {
		h := a.heap
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if *a != (Allocator{}) {
			t.Errorf("Close left %+v", *a)
		}
		if h != nil && isOpen(h) {
			t.Error("Close left the heap on the list")
		}
	})
	return a
}

func isOpen(h *cheap.Heap) bool {
	heaps.mu.RLock()
	defer heaps.mu.RUnlock()
	return slices.Contains(heaps.list, h)
}

// must fails the test if there is an error, and returns the value beside it.
func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// catch returns the panic value of f, or nil.
func catch(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

func TestNothing(t *testing.T) {
	a := newAllocator(t)
	for name, f := range map[string]func() ([]byte, error){
		"Malloc(0)":       func() ([]byte, error) { return a.Malloc(0) },
		"Calloc(0)":       func() ([]byte, error) { return a.Calloc(0) },
		"Realloc(nil, 0)": func() ([]byte, error) { return a.Realloc(nil, 0) },
		"Free(nil)":       func() ([]byte, error) { return nil, a.Free(nil) },
		"Free(empty)":     func() ([]byte, error) { return nil, a.Free([]byte{}) },
		"UnsafeFree":      func() ([]byte, error) { return nil, a.UnsafeFree(nil) },
		"UintptrFree":     func() ([]byte, error) { return nil, a.UintptrFree(0) },
		"Trim":            func() ([]byte, error) { return nil, a.Trim() },
		"Close":           func() ([]byte, error) { return nil, a.Close() },
	} {
		if b, err := f(); b != nil || err != nil {
			t.Errorf("%s: %v, %v", name, b, err)
		}
	}
	if n := UsableSize(nil) + UnsafeUsableSize(nil) + UintptrUsableSize(0); n != 0 {
		t.Errorf("nothing has a usable size of %d", n)
	}
	if a.heap != nil {
		t.Error("there is a heap, and no block was asked for")
	}
}

func TestRefusedSizes(t *testing.T) {
	a := newAllocator(t)
	block := must[unsafe.Pointer](t)(a.UnsafeMalloc(100))
	*(*byte)(block) = 7
	for _, size := range []int{math.MaxInt, math.MaxInt - 100} {
		for name, f := range map[string]func() (unsafe.Pointer, error){
			"Malloc":  func() (unsafe.Pointer, error) { return a.UnsafeMalloc(size) },
			"Calloc":  func() (unsafe.Pointer, error) { return a.UnsafeCalloc(size) },
			"Realloc": func() (unsafe.Pointer, error) { return a.UnsafeRealloc(block, size) },
			"first":   func() (unsafe.Pointer, error) { return new(Allocator).refused(t, size) },
		} {
			if p, err := f(); p != nil || !errors.Is(err, cheap.ErrNoMemory) || !strings.Contains(err.Error(), fmt.Sprint(size)) {
				t.Errorf("%s(%d): %p, %v; want an error that wraps ErrNoMemory and has the size", name, size, p, err)
			}
		}
		if b, err := a.Malloc(size); b != nil || err == nil {
			t.Errorf("Malloc(%d): %d bytes, %v", size, len(b), err)
		}
	}
	for name, f := range map[string]func(){
		"Malloc":       func() { a.Malloc(-1) },
		"Calloc":       func() { a.Calloc(-1) },
		"Realloc(nil)": func() { a.Realloc(nil, -1) },
		"first":        func() { new(Allocator).UintptrMalloc(math.MinInt) },
	} {
		if v := catch(f); v == nil {
			t.Errorf("%s of a negative size did not panic", name)
		}
	}
	// A size_t of C can be negative as an int.
	if p, err := a.UnsafeRealloc(block, -1); p != nil || !errors.Is(err, cheap.ErrNoMemory) {
		t.Errorf("UnsafeRealloc(p, -1): %p, %v", p, err)
	}
	if *(*byte)(block) != 7 || UnsafeUsableSize(block) < 100 {
		t.Error("a block was lost to a Realloc that was refused")
	}
	a.UnsafeFree(block)
}

// refused is UnsafeMalloc of an Allocator that is closed afterwards.
func (a *Allocator) refused(t *testing.T, size int) (unsafe.Pointer, error) {
	t.Cleanup(func() { a.Close() })
	return a.UnsafeMalloc(size)
}

// TestSlices: the capacity of a slice is the whole block. The block is found from any
// slice that begins at the same byte.
func TestSlices(t *testing.T) {
	a := newAllocator(t)
	for _, size := range []int{1, 15, 16, 17, 100, 4096, 32 << 10, 32<<10 + 1, 1 << 20} {
		b := must[[]byte](t)(a.Malloc(size))
		if len(b) != size || cap(b) != cheap.GoodSize(size) || cap(b) != UsableSize(&b[0]) {
			t.Errorf("Malloc(%d): %d bytes of %d, usable %d", size, len(b), cap(b), UsableSize(&b[0]))
		}
		for i := range b {
			b[i] = byte(i)
		}
		c := must[[]byte](t)(a.Realloc(b[:0], 3*size))
		if len(c) != 3*size {
			t.Errorf("Realloc(%d): %d bytes", 3*size, len(c))
		}
		for i, x := range c[:size] {
			if x != byte(i) {
				t.Fatalf("Realloc from %d to %d changed byte %d", size, 3*size, i)
			}
		}
		clear(c[:cap(c)])
		if err := a.Free(c[:1:cap(c)]); err != nil {
			t.Error(err)
		}
		z := must[[]byte](t)(a.Calloc(size))
		if !bytes.Equal(z, make([]byte, size)) {
			t.Errorf("Calloc(%d) is not zero", size)
		}
		for i := range z {
			z[i] = 0xff // so that the next block has to be cleared
		}
		if r, err := a.Realloc(z[:0], 0); r != nil || err != nil {
			t.Errorf("Realloc to 0: %v, %v", r, err)
		}
		if z = must[[]byte](t)(a.Calloc(size)); !bytes.Equal(z, make([]byte, size)) {
			t.Errorf("Calloc(%d) of used memory is not zero", size)
		}
		a.Free(z)
	}
	if n := a.heap.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks are left", n)
	}
}

func TestUsableSizeFindsTheAllocator(t *testing.T) {
	type block struct {
		p    uintptr
		size int
	}
	var blocks []block
	allocators := make([]*Allocator, 5)
	for i := range allocators {
		allocators[i] = newAllocator(t)
		size := 1000 << i
		p := must[uintptr](t)(allocators[i].UintptrMalloc(size))
		blocks = append(blocks, block{p, cheap.GoodSize(size)})
		for k, b := range blocks {
			if n := UintptrUsableSize(b.p); n != b.size {
				t.Errorf("with %d allocators the block of the %d. has %d bytes, want %d", i+1, k, n, b.size)
			}
		}
	}
	for i, a := range allocators {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		for _, b := range blocks[i+1:] {
			if n := UintptrUsableSize(b.p); n != b.size {
				t.Errorf("with %d allocators closed, %d bytes, want %d", i+1, n, b.size)
			}
		}
		v := catch(func() { UintptrUsableSize(blocks[i].p) })
		if e, ok := v.(*cheap.MisuseError); !ok || e.Addr != blocks[i].p {
			t.Errorf("the size of a block of a closed Allocator: %v", v)
		}
	}
}

// TestHammerUsableSize: Allocators are made and closed in some goroutines while others call
// UsableSize.
func TestHammerUsableSize(t *testing.T) {
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 200 {
				var a Allocator
				size := 1 + 37*g + i
				p, err := a.UintptrMalloc(size)
				if err != nil {
					t.Error(err)
					return
				}
				for range 20 {
					if n := UintptrUsableSize(p); n != cheap.GoodSize(size) {
						t.Errorf("%d bytes, want %d", n, cheap.GoodSize(size))
						return
					}
				}
				a.Close()
			}
		})
	}
	all.Wait()
}

func TestMisuse(t *testing.T) {
	a, b := newAllocator(t), newAllocator(t)
	live := must[uintptr](t)(a.UintptrMalloc(100))
	freed := must[uintptr](t)(a.UintptrMalloc(200))
	a.UintptrFree(freed)
	others := must[uintptr](t)(b.UintptrMalloc(100))
	goMemory := new([64]byte)
	for what, p := range map[string]uintptr{
		"a free block":           freed,
		"the inside of a block":  live + 16,
		"a block of another":     others,
		"Go memory":              uintptr(unsafe.Pointer(goMemory)),
		"a number":               12345,
		"an impossible address":  math.MaxUint - 7,
		"a block of an odd size": live + 1,
	} {
		for op, f := range map[string]func(){
			"Free":       func() { a.UintptrFree(p) },
			"Realloc":    func() { a.UintptrRealloc(p, 10) },
			"UsableSize": func() { UintptrUsableSize(p) },
		} {
			if op == "UsableSize" && p == others {
				continue // UsableSize accepts a block of any Allocator
			}
			v := catch(f)
			if e, ok := v.(*cheap.MisuseError); !ok || e.Addr != p {
				t.Errorf("%s of %s: panic value %v, want a MisuseError about %#x", op, what, v, p)
			}
		}
	}
	for op, f := range map[string]func(){
		"Free":    func() { new(Allocator).UintptrFree(live) },
		"Realloc": func() { new(Allocator).UintptrRealloc(live, 10) },
	} {
		if e, ok := catch(f).(*cheap.MisuseError); !ok || e.Addr != live {
			t.Errorf("%s of a block by an Allocator that has none did not say so", op)
		}
	}
	if UintptrUsableSize(live) < 100 {
		t.Error("the live block has come to harm")
	}
}

// TestCopy: two copies, which a program makes to replace an Allocator in a variable
// for a while, are one Allocator, as long as only one of them is used.
func TestCopy(t *testing.T) {
	a := newAllocator(t)
	p := must[uintptr](t)(a.UintptrMalloc(10))
	kept := *a
	*a = Allocator{}
	q := must[uintptr](t)(a.UintptrMalloc(10))
	a.UintptrFree(q)
	a.Close()
	*a = kept
	a.UintptrFree(p)
	a.Close()
	if e, ok := catch(func() { kept.Close() }).(*cheap.MisuseError); !ok || !strings.Contains(e.Reason, "copy") {
		t.Error("closing the second copy as well did not say so")
	}
}

// TestTrim: after Trim only records, caches and blocks in use are left. The Allocator's
// own cache is empty.
func TestTrim(t *testing.T) {
	a := newAllocator(t)
	keep := must[[]byte](t)(a.Malloc(1000))
	copy(keep, "kept")
	must[struct{}](t)(struct{}{}, a.Trim())
	least := a.heap.Stats().Held
	var blocks []uintptr
	for i := range 20_000 {
		blocks = append(blocks, must[uintptr](t)(a.UintptrMalloc(1+i%3000)))
	}
	most := a.heap.Stats().Held
	for _, p := range blocks {
		a.UintptrFree(p)
	}
	if cached := a.heap.Stats().Cached; cached == 0 {
		t.Fatal("nothing is cached, so that the test would not see it left")
	}
	if err := a.Trim(); err != nil {
		t.Error(err)
	}
	s := a.heap.Stats()
	if s.Cached != 0 || s.Blocks != 1 || s.Held > least || s.Held >= most {
		t.Errorf("%+v after Trim; %d bytes were held before the blocks, %d with them", s, least, most)
	}
	if string(keep[:4]) != "kept" {
		t.Error("Trim took a block in use")
	}
	a.Free(keep)
}

// TestClose: Close frees blocks in use, and their address space.
func TestClose(t *testing.T) {
	seen := map[uintptr]bool{}
	again := 0
	for range 50 {
		a := newAllocator(t)
		p := must[uintptr](t)(a.UintptrMalloc(100))
		must[uintptr](t)(a.UintptrMalloc(1 << 20))
		a.Close()
		if seen[p>>16] {
			again++
		}
		seen[p>>16] = true
	}
	if again < 25 {
		t.Errorf("of 50 closed Allocators %d lay where one had been", again)
	}
}

func TestCounters(t *testing.T) {
	a := newAllocator(t)
	p := must[uintptr](t)(a.UintptrMalloc(100))
	q := must[uintptr](t)(a.UintptrCalloc(100_000))
	q = must[uintptr](t)(a.UintptrRealloc(q, 1_000_000))
	want := Allocator{}
	if counters {
		want.Allocs, want.Bytes = 2, int(a.heap.Stats().Held)
	}
	if a.Allocs != want.Allocs || a.Bytes != want.Bytes || a.Mmaps != 0 {
		t.Errorf("Allocs %d, Bytes %d, Mmaps %d; want %d, %d, 0", a.Allocs, a.Bytes, a.Mmaps, want.Allocs, want.Bytes)
	}
	a.UintptrFree(p)
	if counters && (a.Allocs != 1 || a.Bytes < 1_000_000) {
		t.Errorf("with a block of 1,000,000 bytes Allocs is %d, Bytes %d", a.Allocs, a.Bytes)
	}
	// Users of the original look for 0.
	mustBeZero := func(when string) {
		t.Helper()
		if a.Allocs != 0 || a.Bytes != 0 || a.Mmaps != 0 {
			t.Errorf("%s Allocs is %d, Bytes %d, Mmaps %d", when, a.Allocs, a.Bytes, a.Mmaps)
		}
	}
	a.UintptrFree(q)
	mustBeZero("after all was freed")
	a.Trim()
	mustBeZero("after Trim")
	p = must[uintptr](t)(a.UintptrMalloc(1))
	if counters && (a.Allocs != 1 || a.Bytes <= 0) {
		t.Errorf("with a block again Allocs is %d, Bytes %d", a.Allocs, a.Bytes)
	}
	a.UintptrRealloc(p, 0)
	mustBeZero("after Realloc to 0")
}

// TestNoGoAllocations: the fast path allocates no Go memory.
func TestNoGoAllocations(t *testing.T) {
	a := newAllocator(t)
	if n := testing.AllocsPerRun(1000, func() {
		p, _ := a.UintptrMalloc(64)
		p, _ = a.UintptrRealloc(p, 640)
		UintptrUsableSize(p)
		a.UintptrFree(p)
		b, _ := a.Calloc(64)
		a.Free(b)
	}); n != 0 {
		t.Errorf("%v Go allocations", n)
	}
}
