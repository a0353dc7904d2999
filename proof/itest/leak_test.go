package itest

import (
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// useAll uses every allocator, from several goroutines, and leaves idle memory,
// a heap, a Local and a pooled arena that are unreachable.
func useAll(t testing.TB) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			useSome(h)
			useSome(cheap.Default())
			l := h.NewLocal()
			useSome(l)
			l.Destroy()
			useSome(h.NewLocal())
			useArena(cheap.GetArena()).Put()
			useArena(cheap.GetArena())
			a := useArena(cheap.NewArena(h, 0))
			if err := a.Destroy(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f := cheap.NewFixedBlock(h, cheap.FixedBlockOptions{BlockSize: 100})
	a := cheap.NewFallback(f, h)
	useSome(a)
	if s, err := cheap.Append[int](a, nil, 1, 2, 3); err != nil {
		t.Error(err)
	} else {
		cheap.FreeSlice(a, s)
	}
	for _, destroy := range []func() error{f.Destroy, h.Destroy} {
		if err := destroy(); err != nil {
			t.Error(err)
		}
	}
}

// useSome allocates blocks of many sizes and frees them.
func useSome(a cheap.Allocator) {
	var blocks []unsafe.Pointer
	for i := range 50 {
		blocks = append(blocks, a.Malloc(i), a.Malloc(1000*i), a.Malloc(70_000))
	}
	for _, p := range blocks {
		a.Free(p)
	}
}

func useArena(a *cheap.Arena) *cheap.Arena {
	m := a.Mark()
	for i := range 50 {
		a.Malloc(100 * i)
	}
	a.Release(m)
	return a
}

// TestNoLeakAfterTrim looks for goroutines once everything was used and trimmed.
func TestNoLeakAfterTrim(t *testing.T) {
	useAll(t)
	cheap.Trim()
	if n := span.Idle(); n != 0 {
		t.Errorf("%d bytes are idle after Trim", n)
	}
	goleak.VerifyNone(t)
}

// TestNoLeakWhileIdle looks for goroutines while memory waits for its end: that
// takes a timer, and no more.
func TestNoLeakWhileIdle(t *testing.T) {
	testheap.SetDecay(t, time.Hour)
	useAll(t)
	if span.Idle() == 0 {
		t.Error("nothing is idle")
	}
	goleak.VerifyNone(t)
}

// TestNoLeakAfterDecay looks for goroutines once all memory has gone back by
// itself, and once the collector has found what was dropped.
func TestNoLeakAfterDecay(t *testing.T) {
	testheap.SetDecay(t, 20*time.Millisecond)
	useAll(t)
	testwait.Until(t, "nothing is idle", func() bool { return span.Idle() == 0 })
	goleak.VerifyNone(t)
	runtime.GC() // cleanups of the Local and the arena
	testwait.Until(t, "nothing is idle after a collection", func() bool { return span.Idle() == 0 })
	goleak.VerifyNone(t)
}
