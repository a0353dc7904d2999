//go:build !cheap_gomem

package heap_test

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	. "github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/watch/guard"
)

// TestGuardedAtLimits has heaps without room for a guarded block, and a system that refuses.
func TestGuardedAtLimits(t *testing.T) {
	withGuard(t, 1)
	h := NewHeap(t, Options{Limit: 256 << 10})
	var blocks []unsafe.Pointer
	for {
		p, err := h.TryMalloc(64)
		if err != nil {
			if !errors.Is(err, ErrLimit) {
				t.Error(err)
			}
			break
		}
		blocks = append(blocks, p)
	}
	if held := h.Stats().Held; held > 256<<10 || len(blocks) < 1000 {
		t.Errorf("%d blocks, %d bytes held", len(blocks), held)
	}
	testheap.FreeAll(h, blocks)
	calls := 0
	fail := func(op osmem.Op, size uintptr) error {
		if op == osmem.OpCommit && size < 32<<10 {
			calls++
			return errors.New("no memory for a test")
		}
		return nil
	}
	osmem.Fault.Store(&fail)
	defer osmem.Fault.Store(nil)
	for range 100 {
		p := h.Malloc(64)
		if p == nil {
			t.Fatal("no block where no slot is to be had")
		}
		h.Free(p)
		p = h.Malloc(8192)
		if isGuarded(p) {
			t.Error("a block is guarded whose pages were refused")
		}
		h.Free(p)
	}
	if calls == 0 && osmem.PageSize == 4096 { // larger ones may be committed already
		t.Error("no call was refused")
	}
}

// TestGuardedDestroy destroys heaps with guarded blocks. The blocks become inaccessible.
func TestGuardedDestroy(t *testing.T) {
	withGuard(t, 1)
	h := NewHeap(t, Options{})
	p := h.Malloc(64)
	var live *LiveError
	if err := h.Destroy(); !errors.As(err, &live) || live.Blocks != 1 || live.Bytes != 64 || !isGuarded(p) {
		t.Fatalf("Destroy with a live block: %v", err)
	}
	testcall.Must(t, h.DestroyAll())
	if isGuarded(p) || testheap.FaultAt(t, func() { readByte(p, 0) }) == 0 {
		t.Error("a block of a destroyed heap can be read")
	}
	if m := misuseOf(t, func() { Default().Free(p) }); !strings.Contains(m, "free already") || !strings.Contains(m, "freed by\n\tgithub.com/cheapgo/cheap/internal/heap_test.TestGuardedDestroy\n") {
		t.Errorf("a free of a block of a destroyed heap: %s", m)
	}
}

// TestGuardedRate counts the blocks that are guarded at a rate, where all are freed at once.
func TestGuardedRate(t *testing.T) {
	withGuard(t, 100)
	const n = 100_000
	eachWay(t, func(t *testing.T, h *Heap, malloc func(int) unsafe.Pointer, free func(unsafe.Pointer)) {
		guarded := 0
		for range n {
			p := malloc(64)
			if isGuarded(p) {
				guarded++
			}
			free(p)
		}
		if guarded < 800 || guarded > 1200 { // six standard deviations
			t.Errorf("%d of %d blocks are guarded, want about %d", guarded, n, n/100)
		}
		guard.SetRate(0)
		for range n / 10 {
			p := malloc(64)
			if isGuarded(p) {
				t.Fatal("a block is guarded at rate 0")
			}
			free(p)
		}
		guard.SetRate(100)
	})
}

// TestGuardedAndSampled has each block in the profile and guarded.
func TestGuardedAndSampled(t *testing.T) {
	withGuard(t, 1)
	testheap.WithRate(t, 1)
	h := NewHeap(t, Options{Name: testheap.UniqueName(t)})
	for range 100 {
		p, q := h.Malloc(64), h.Malloc(64)
		if !isGuarded(p) {
			t.Fatal("a block is not guarded")
		}
		h.Free(p)
		h.Free(q)
	}
	if s := testheap.SampledIn(h.Name(), "TestGuardedAndSampled"); s.Allocs != 200 || s.Frees != 200 {
		t.Errorf("the profile has %v allocations and %v frees, want 200", s.Allocs, s.Frees)
	}
}

// TestHammerGuarded has goroutines allocate, check, hand over and free guarded blocks.
func TestHammerGuarded(t *testing.T) {
	withGuard(t, 3)
	h := NewHeap(t, Options{})
	const goroutines, rounds = 4, 3000
	ch := make(chan unsafe.Pointer, 64)
	done := make(chan bool)
	for g := range goroutines {
		go func() {
			defer func() { done <- true }()
			for i := range rounds {
				size := 16 << ((i + g) % 10)
				p := h.Malloc(size)
				b := unsafe.Slice((*uint32)(p), size/4)
				b[0], b[len(b)-1] = uint32(size), uint32(size)
				ch <- p
				q := <-ch
				n := *(*uint32)(q)
				if UsableSize(q) != int(n) || unsafe.Slice((*uint32)(q), n/4)[n/4-1] != n {
					t.Errorf("the block at %p has other contents", q)
				}
				h.Free(q)
			}
		}()
	}
	for range goroutines {
		<-done
	}
	if s := h.Stats(); s.Blocks != 0 || s.Mallocs != goroutines*rounds || s.Bytes != 0 {
		t.Errorf("stats %+v", s)
	}
}

func BenchmarkGuarded(b *testing.B) {
	withGuard(b, 1)
	h := NewHeap(b, Options{})
	for b.Loop() {
		h.Free(h.Malloc(64))
	}
}
