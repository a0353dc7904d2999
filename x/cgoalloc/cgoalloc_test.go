//go:build cgo

package cgoalloc

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// A recorder is an allocator that records calls of another one.
type recorder struct {
	Allocator
	sizes    []int
	live     map[unsafe.Pointer]bool
	destroys int
	fail     bool
}

func record(inner Allocator) *recorder {
	return &recorder{Allocator: inner, live: map[unsafe.Pointer]bool{}}
}

func (r *recorder) Malloc(size int) unsafe.Pointer {
	if r.fail {
		return nil
	}
	p := r.Allocator.Malloc(size)
	r.sizes = append(r.sizes, size)
	r.live[p] = true
	return p
}

func (r *recorder) Free(p unsafe.Pointer) {
	if !r.live[p] {
		panic(fmt.Sprintf("recorder: %p is not live", p))
	}
	delete(r.live, p)
	r.Allocator.Free(p)
}

func (r *recorder) Destroy() error {
	r.destroys++
	return r.Allocator.Destroy()
}

// fixedRecorder is a program's own FixedBlockAllocator: outside of the package,
// embedding is the only way to have one.
type fixedRecorder struct {
	FixedBlockAllocator
	mallocs, frees int
}

func (r *fixedRecorder) Malloc(size int) unsafe.Pointer {
	r.mallocs++
	return r.FixedBlockAllocator.Malloc(size)
}

func (r *fixedRecorder) Free(p unsafe.Pointer) {
	r.frees++
	r.FixedBlockAllocator.Free(p)
}

func fixed(t testing.TB, inner Allocator, pageSize, blockSize, alignment uintptr) FixedBlockAllocator {
	t.Helper()
	a, err := CreateFixedBlockAllocator(inner, pageSize, blockSize, alignment)
	testcall.Must(t, err)
	return a
}

func wantPanic(t *testing.T, says string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), says) {
			t.Errorf("panic value %v, want one that says %q", v, says)
		}
	}()
	f()
}

func TestDefault(t *testing.T) {
	a := &DefaultAllocator{}
	p, q := a.Malloc(0), a.Malloc(100)
	if p == nil || q == nil || p == q {
		t.Fatalf("%p, %p", p, q)
	}
	a.Free(p)
	a.Free(q)
	a.Free(nil)
	if p := a.Malloc(math.MaxInt); p != nil {
		t.Errorf("Malloc of more than there is = %p", p)
	}
	//cheapvet:ignore cfree nothing is allocated
	wantPanic(t, "negative", func() { a.Malloc(-1) })
	testcall.Want(t, a.Destroy())
}

func TestStrings(t *testing.T) {
	a := record(&DefaultAllocator{})
	for _, s := range []string{"", "hello", "NUL \x00 inside", strings.Repeat("x", 10_000)} {
		p := unsafe.Pointer(CString(a, s))
		if got := string(unsafe.Slice((*byte)(p), len(s)+1)); got != s+"\x00" {
			t.Errorf("CString(%q) = %q", s, got)
		}
		a.Free(p)
		p = CBytes(a, []byte(s))
		if got := string(unsafe.Slice((*byte)(p), len(s))); got != s {
			t.Errorf("CBytes(%q) = %q", s, got)
		}
		a.Free(p)
	}
	if out := reflect.TypeOf(CString).Out(0); out.Kind() != reflect.Pointer || out.Elem().Kind() != reflect.Int8 && out.Elem().Kind() != reflect.Uint8 {
		t.Errorf("CString returns %v", out)
	}
	a.fail = true
	if CString(a, "x") != nil || CBytes(a, []byte("x")) != nil {
		t.Error("strings without memory")
	}
}

func TestArenaPassesThrough(t *testing.T) {
	inner := record(&DefaultAllocator{})
	a := CreateArenaAllocator(inner)
	var blocks []unsafe.Pointer
	for i := range 10 {
		blocks = append(blocks, a.Malloc(i))
	}
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(inner.sizes, want) {
		t.Errorf("sizes %v, want %v", inner.sizes, want)
	}
	a.Free(blocks[2])
	a.Free(blocks[7])
	a.Free(nil)
	if inner.live[blocks[2]] || inner.live[blocks[7]] || len(inner.live) != 8 {
		t.Errorf("%d blocks live below after 2 of 10 were freed", len(inner.live))
	}
	if err := a.Destroy(); err == nil || !strings.HasPrefix(err.Error(), "arenaallocator: attempted to Destroy but not all allocations have been freed") {
		t.Errorf("Destroy with live blocks: %v", err)
	}
	a.FreeAll()
	a.FreeAll()
	if len(inner.live) != 0 {
		t.Errorf("%d blocks live below after FreeAll", len(inner.live))
	}
	if err := a.Destroy(); err != nil || inner.destroys != 0 {
		t.Errorf("Destroy: %v; the inner allocator was destroyed %d times", err, inner.destroys)
	}
	a.Free(a.Malloc(1))
	inner.fail = true
	if p := a.Malloc(1); p != nil || a.Destroy() != nil {
		t.Errorf("Malloc without memory = %p, and counts", p)
	}
}

// TestArenaFreeModel frees in any order, few and many.
func TestArenaFreeModel(t *testing.T) {
	for _, most := range []int{3, 10, 30, 2000} {
		inner := record(&DefaultAllocator{})
		a := CreateArenaAllocator(inner)
		rng := rand.New(rand.NewPCG(1, uint64(most)))
		var live []unsafe.Pointer
		for step := range 10_000 {
			switch {
			case step%3000 == 2999:
				a.FreeAll()
				live = nil
			case len(live) == 0 || len(live) < most && rng.IntN(2) == 0:
				live = append(live, a.Malloc(8))
			default:
				i := rng.IntN(len(live))
				a.Free(live[i])
				live = slices.Delete(live, i, i+1)
			}
			if len(inner.live) != len(live) {
				t.Fatalf("step %d: %d blocks live below, want %d", step, len(inner.live), len(live))
			}
		}
		for _, p := range live {
			if !inner.live[p] {
				t.Fatalf("%p is not live below", p)
			}
		}
		a.FreeAll()
	}
}

func TestArenaFreeOfAnotherPanics(t *testing.T) {
	inner := &DefaultAllocator{}
	for _, n := range []int{0, 3, 10, 100} {
		a := CreateArenaAllocator(inner)
		var p unsafe.Pointer
		for range n {
			p = a.Malloc(1)
		}
		q := inner.Malloc(1)
		for range 2 {
			wantPanic(t, "arenaallocator: attempted to free a pointer which had not been allocated with this allocator", func() { a.Free(q) })
		}
		if n > 0 {
			a.Free(p)
			wantPanic(t, "arenaallocator", func() { a.Free(p) })
		}
		inner.Free(q)
		a.FreeAll()
	}
}

func TestFallback(t *testing.T) {
	rest := record(&DefaultAllocator{})
	for name, first := range map[string]FixedBlockAllocator{
		"own":      fixed(t, &DefaultAllocator{}, 64, 64, 8),
		"embedded": &fixedRecorder{FixedBlockAllocator: fixed(t, &DefaultAllocator{}, 64, 64, 8)},
	} {
		a := CreateFallbackAllocator(first, rest)
		rest.sizes = nil
		var blocks []unsafe.Pointer
		for _, size := range []int{8, 20, 68, 64, 80, 100, 0} {
			blocks = append(blocks, a.Malloc(size))
		}
		if want := []int{68, 80, 100}; !slices.Equal(rest.sizes, want) {
			t.Errorf("%s: the second tier got %v, want %v", name, rest.sizes, want)
		}
		if err := a.Destroy(); err == nil || rest.destroys != 0 {
			t.Errorf("%s: Destroy with live blocks: %v", name, err)
		}
		for _, p := range blocks {
			a.Free(p)
		}
		if len(rest.live) != 0 {
			t.Errorf("%s: %d blocks live in the second tier", name, len(rest.live))
		}
		if err := a.Destroy(); err != nil || rest.destroys != 1 {
			t.Errorf("%s: Destroy: %v, second tier %d times", name, err, rest.destroys)
		}
		rest.destroys = 0
		if r, ok := first.(*fixedRecorder); ok && r.mallocs != 4 {
			t.Errorf("the program's own Malloc was called %d times, want 4", r.mallocs)
		}
	}
}

func TestFixedBlockErrors(t *testing.T) {
	d := &DefaultAllocator{}
	for _, c := range []struct {
		page, block, align uintptr
		says               string
	}{
		{64, 12, 8, "fixed block allocator: blocksize must be a multiple of alignment"},
		{65, 8, 8, "fixed block allocator: pagesize must be a multiple of blocksize"},
		{64, 8, 0, "blocksize"},
		{64, 0, 8, "pagesize"},
		{48, 48, 24, "power of two"},
		{math.MaxUint &^ 7, 8, 8, "fixed block allocator"},
	} {
		if a, err := CreateFixedBlockAllocator(d, c.page, c.block, c.align); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, %v", c, a, err)
		}
	}
	a := fixed(t, d, 4096, 64, 8)
	wantPanic(t, "size 65; want 0 to 64", func() { a.Malloc(65) })
	wantPanic(t, "", func() { a.Malloc(-1) })
	p := a.Malloc(64)
	if p == nil {
		t.Error("no block")
	}
	a.Free(p)
	testcall.Want(t, a.Destroy())
}

func TestFixedBlock(t *testing.T) {
	for _, c := range []struct{ page, block, align uintptr }{
		{1, 1, 1}, {64, 4, 4}, {160, 8, 8}, {4096, 64, 8}, {4096, 64, 64}, {1 << 20, 8, 8}, {80_000, 80_000, 16}, {4096, 4096, 4096},
	} {
		inner := record(&DefaultAllocator{})
		a := fixed(t, inner, c.page, c.block, c.align)
		seen := map[unsafe.Pointer]bool{}
		for range 300 {
			p := a.Malloc(int(c.block))
			if seen[p] || uintptr(p)%c.align != 0 {
				t.Fatalf("%+v: Malloc = %p, live %t", c, p, seen[p])
			}
			seen[p] = true
			*(*byte)(unsafe.Add(p, c.block-1)) = 1
		}
		var le *cheap.LiveError
		if err := a.Destroy(); !errors.As(err, &le) || le.Blocks != 300 ||
			!strings.HasPrefix(err.Error(), "fixedblockallocator: attempted to Destroy, but not all allocations had been freed") {
			t.Fatalf("%+v: Destroy with live blocks: %v", c, err)
		}
		for p := range seen {
			a.Free(p)
		}
		for range 3 { // pages are freed once, or the recorder panics
			if err := a.Destroy(); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
		}
		if len(inner.live) != 0 || inner.destroys != 0 {
			t.Errorf("%+v: %d pages kept, inner allocator destroyed %d times", c, len(inner.live), inner.destroys)
		}
		// As in the original, it may be used again.
		a.Free(a.Malloc(1))
		if err := a.Destroy(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestFixedBlockWrongFreePanics(t *testing.T) {
	a, b := fixed(t, &DefaultAllocator{}, 4096, 64, 8), fixed(t, &DefaultAllocator{}, 4096, 64, 8)
	p, q := a.Malloc(1), a.Malloc(1)
	a.Free(nil)
	wantPanic(t, "inside", func() { a.Free(unsafe.Add(p, 8)) })
	wantPanic(t, "FixedBlock.Free", func() { b.Free(p) })
	a.Free(p)
	wantPanic(t, "free already", func() { a.Free(p) })
	a.Free(q)
	wantPanic(t, "free already", func() { a.Free(p) })
	r := b.Malloc(1)
	if !a.tryFree(a.Malloc(1)) || a.tryFree(r) {
		t.Error("tryFree does not know its own")
	}
	b.Free(r)
	testcall.Want(t, errors.Join(a.Destroy(), b.Destroy()))
}

// TestFixedBlockOverFixedBlock has an inner allocator whose blocks are large
// enough for the pages of the original, but too small for those of this package.
func TestFixedBlockOverFixedBlock(t *testing.T) {
	base := record(&DefaultAllocator{})
	pages := fixed(t, base, 64*8192, 8192, 8)
	a := fixed(t, pages, 4096, 64, 8)
	roomy := fixed(t, base, 1<<20, 256<<10, 8)
	b := fixed(t, roomy, 4096, 64, 8)
	for _, f := range []FixedBlockAllocator{a, b} {
		var blocks []unsafe.Pointer
		for range 5000 {
			blocks = append(blocks, f.Malloc(64))
		}
		for _, p := range blocks {
			f.Free(p)
		}
		testcall.Want(t, f.Destroy())
	}
	for _, f := range []FixedBlockAllocator{pages, roomy} {
		testcall.Want(t, f.Destroy())
	}
	if len(base.live) != 0 {
		t.Errorf("%d blocks live below", len(base.live))
	}
}

func TestFixedBlockNoMemory(t *testing.T) {
	inner := record(&DefaultAllocator{})
	inner.fail = true
	a := fixed(t, inner, 4096, 64, 8)
	if p := a.Malloc(1); p != nil {
		t.Errorf("Malloc without memory = %p", p)
	}
	// A FallbackAllocator takes the block from its second allocator.
	f := CreateFallbackAllocator(a, &DefaultAllocator{})
	p := f.Malloc(1)
	if p == nil {
		t.Error("the second tier was not asked")
	}
	f.Free(p)
}
