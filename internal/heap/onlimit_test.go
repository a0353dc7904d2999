package heap

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestOnLimitRealloc has a Realloc that leaves the block in place, because there is no memory.
func TestOnLimitRealloc(t *testing.T) {
	told := 0
	h := NewHeap(t, Options{Limit: 260 << 10, OnLimit: func(size int, err error) { told++ }})
	p := h.Malloc(220 << 10)
	if p == nil {
		t.Fatal("refused")
	}
	if q := h.Realloc(p, 100); q == nil {
		t.Fatal("refused")
	} else {
		p = q
	}
	if told != 0 {
		t.Error("OnLimit was called for a request that was served")
	}
	h.Free(p)
}

// TestOnLimitCounts calls each method that is refused: OnLimit is called once.
func TestOnLimitCounts(t *testing.T) {
	for _, check := range []CheckLevel{CheckNone, CheckStacks} {
		var told []int
		h := NewHeap(t, Options{Limit: 300 << 10, Check: check})
		h.onLimit = func(size int, err error) {
			h.limitTold.Store(0) // as if a second had passed
			told = append(told, size)
		}
		l := h.NewLocal()
		p := h.Malloc(10)
		const n = 500 << 10
		for i, f := range []func(){
			func() { h.Malloc(n) },
			func() { h.TryMalloc(n) },
			func() { h.Calloc(1, n) },
			func() { h.Realloc(nil, n) },
			func() { h.Realloc(p, n) },
			func() { h.TryRealloc(p, n) },
			func() { h.AlignedMalloc(n, 64) },
			func() { l.Malloc(n) },
			func() { l.TryMalloc(n) },
			func() { l.Calloc(1, n) },
			func() { l.Realloc(nil, n) },
			func() { l.Realloc(p, n) },
			func() { l.AlignedMalloc(n, 64) },
		} {
			told = nil
			if f(); len(told) != 1 || told[0] != n {
				t.Errorf("level %d, call %d: told %v, want %d once", check, i, told, n)
			}
		}
		h.Free(p)
		l.Destroy()
	}
}

// TestOnLimitDestroys destroys the heap whose limit was reached.
func TestOnLimitDestroys(t *testing.T) {
	for _, f := range []func(h *Heap, p unsafe.Pointer){
		func(h *Heap, p unsafe.Pointer) { h.Malloc(500 << 10) },
		func(h *Heap, p unsafe.Pointer) { h.Calloc(1, 500<<10) },
		func(h *Heap, p unsafe.Pointer) { h.Realloc(p, 500<<10) },
	} {
		var h *Heap
		h = NewHeap(t, Options{Limit: 300 << 10, OnLimit: func(size int, err error) {
			testcall.Want(t, h.DestroyAll())
		}})
		testwait.Return(t, "a request", func() { f(h, h.Malloc(100_000)) })
	}
}

// TestOnLimitPanics has functions that panic or use the heap.
func TestOnLimitPanics(t *testing.T) {
	for _, check := range []CheckLevel{CheckNone, CheckStacks} {
		var h *Heap
		what := errors.New("what OnLimit panics with")
		h = NewHeap(t, Options{Limit: 300 << 10, Check: check, OnLimit: func(size int, err error) {
			if p := h.Malloc(400 << 10); p != nil {
				t.Error("not refused")
			}
			h.Free(h.Malloc(10))
			h.Trim()
			h.Stats()
			panic(what)
		}})
		l := h.NewLocal()
		p := h.Malloc(10)
		for _, f := range []func(){
			func() { h.Malloc(500 << 10) },
			func() { h.Calloc(1, 500<<10) },
			func() { h.Realloc(p, 500<<10) },
			func() { h.AlignedMalloc(500<<10, 64) },
			func() { l.Malloc(500 << 10) },
			func() { l.Calloc(1, 500<<10) },
			func() { l.Realloc(p, 500<<10) },
			func() { l.AlignedMalloc(500<<10, 64) },
		} {
			h.limitTold.Store(0)
			if v := testcall.Catch(f); v != what {
				t.Errorf("%v", v)
			}
		}
		h.Free(p)
		l.Destroy()
		testwait.Return(t, "Destroy", func() {
			testcall.Want(t, h.Destroy())
		})
	}
}
