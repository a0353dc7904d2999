package inspect

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect/leaktest"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/guard"
	"github.com/cheapgo/cheap/own"
)

// withGuard guards each block in a test. It returns false where no block can be guarded.
func withGuard(t testing.TB) bool {
	SetGuardRate(1)
	t.Cleanup(func() { SetGuardRate(0) })
	return GuardRate() == 1
}

// TestGuardRate sets and reads the rate.
func TestGuardRate(t *testing.T) {
	want := 10_000
	if osmem.GoBacked {
		want = 0 // there are no pages to guard a block with
	}
	if old := SetGuardRate(10_000); old != 0 || GuardRate() != want {
		t.Errorf("the old rate is %d, and then it is %d", old, GuardRate())
	}
	if old := SetGuardRate(-1); old != want || GuardRate() != 0 {
		t.Errorf("the old rate is %d, and then it is %d", old, GuardRate())
	}
}

//go:noinline
func allocate(h *cheap.Heap, size int) unsafe.Pointer { return h.Malloc(size) }

//go:noinline
func release(h *cheap.Heap, p unsafe.Pointer) { h.Free(p) }

// guarded allocates until a block faults on the side that is wanted: behind its end, or before
// its start.
func guarded(t *testing.T, h *cheap.Heap, size int, behind bool) unsafe.Pointer {
	t.Helper()
	for range 100 {
		p := allocate(h, size)
		start, end := uintptr(p), uintptr(p)+uintptr(size)
		if behind && end%osmem.PageSize == 0 || !behind && start%osmem.PageSize == 0 {
			return p
		}
		h.Free(p)
	}
	t.Fatal("no block lies as it should")
	return nil
}

// TestGuard makes each mistake in Guard, and looks at the error.
func TestGuard(t *testing.T) {
	if !withGuard(t) {
		return
	}
	h := newHeap(t, "guard")
	for _, size := range []int{16, 1024, 4096, 32768} {
		for _, c := range []struct {
			name        string
			behind      bool
			free        bool
			at          int
			text, looks string
		}{
			{"over", true, false, size, "behind its end", "an index or a length"},
			{"far over", true, false, size + 500, "behind its end", "an index or a length"},
			{"under", false, false, -1, "before its start", "an index below 0"},
			{"after free", true, true, size / 2, "after it was freed", "used after Free"},
			{"over after free", true, true, size, "behind its end", "an index or a length"},
		} {
			p := guarded(t, h, size, c.behind)
			if c.free {
				testcall.Aside(func() { release(h, p) })
			}
			ran := false
			err := Guard(func() {
				defer func() { ran = true }()
				*(*byte)(unsafe.Add(p, c.at)) = 1
				t.Error("the goroutine goes on")
			})
			var f *Fault
			if !errors.As(err, &f) || !ran {
				t.Fatalf("%s, %d bytes: %v, deferred call ran: %v", c.name, size, err, ran)
			}
			f.Earlier = nil // the slot may have had other blocks before
			if f.Block != uintptr(p) || f.Size != size || f.Offset() != c.at || f.Freed != c.free || f.OtherGoroutine != c.free {
				t.Errorf("%s, %d bytes: %+v", c.name, size, f)
			}
			if !hasFrame(f.Allocation, "inspect.allocate") || hasFrame(f.Free, "inspect.release") != c.free {
				t.Errorf("%s, %d bytes: the stacks are wrong:\n%v", c.name, size, f)
			}
			for _, want := range []string{c.text, c.looks, fmt.Sprintf("(%d bytes)", size), fmt.Sprintf("at byte %d;", c.at), "\nallocated by\n\tgithub.com/cheapgo/cheap/inspect.allocate\n"} {
				if !strings.Contains(f.Error(), want) {
					t.Errorf("%s, %d bytes: %v\nhas not %q", c.name, size, f, want)
				}
			}
			if c.free != strings.Contains(f.Error(), "\nfreed by, in another goroutine,\n") {
				t.Errorf("%s: %v", c.name, f)
			}
			if !c.free {
				h.Free(p)
			}
		}
	}
}

// TestFaultBeginsWithTheCaller has stacks of each way by which a program allocates and frees.
func TestFaultBeginsWithTheCaller(t *testing.T) {
	if !withGuard(t) {
		return
	}
	for name, free := range map[string]func(h *cheap.Heap) unsafe.Pointer{
		"Heap": func(h *cheap.Heap) unsafe.Pointer {
			p := h.Malloc(64)
			h.Free(p)
			return p
		},
		"Realloc": func(h *cheap.Heap) unsafe.Pointer {
			p := h.Realloc(nil, 64)
			h.Realloc(p, 1024)
			return p
		},
		"AlignedMalloc": func(h *cheap.Heap) unsafe.Pointer {
			p := h.AlignedMalloc(64, 64)
			h.Free(p)
			return p
		},
		"Local": func(h *cheap.Heap) unsafe.Pointer {
			l := h.NewLocal()
			p := l.Malloc(64)
			l.Free(p)
			return p
		},
		"the default heap": func(*cheap.Heap) unsafe.Pointer {
			p := cheap.Malloc(64)
			cheap.Free(p)
			return p
		},
		"New": func(h *cheap.Heap) unsafe.Pointer {
			p := cheap.New[[64]byte](h)
			cheap.Delete(h, p)
			return unsafe.Pointer(p)
		},
		"Arena": func(h *cheap.Heap) unsafe.Pointer {
			a := cheap.NewArena(h, 1024)
			p := a.Malloc(64)
			a.Destroy()
			return p
		},
		"Memory": func(h *cheap.Heap) unsafe.Pointer {
			m, err := own.NewMem[[64]byte](own.NewMemory(h, own.MemoryOptions{Batch: 1}))
			testcall.Must(t, err)
			p := unsafe.Pointer(m.Get())
			m.Close()
			return p
		},
		"leaktest": func(h *cheap.Heap) unsafe.Pointer {
			a := leaktest.NewAllocator(h)
			p := a.Malloc(64)
			a.Free(p)
			return p
		},
		"DestroyAll": func(h *cheap.Heap) unsafe.Pointer {
			p := h.Malloc(64)
			h.DestroyAll()
			return p
		},
	} {
		var f *Fault
		p := free(newHeap(t, "caller"))
		if err := Guard(func() { *(*byte)(p) = 1 }); !errors.As(err, &f) || !f.Freed {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, stack := range [][]runtime.Frame{f.Allocation, f.Free} {
			if len(stack) == 0 || !strings.HasPrefix(stack[0].Function, "github.com/cheapgo/cheap/inspect.TestFaultBeginsWithTheCaller.func") {
				t.Errorf("%s: a stack does not begin with the call of the program:\n%v", name, f)
			}
		}
	}
}

func hasFrame(stack []runtime.Frame, function string) bool {
	for _, f := range stack {
		if strings.HasSuffix(f.Function, function) {
			return true
		}
	}
	return false
}

// TestGuardPassesOn has other ends of a function than a fault beside a guarded block.
func TestGuardPassesOn(t *testing.T) {
	testcall.Want(t, Guard(func() {}))
	sentinel := errors.New("of the test")
	for name, c := range map[string]struct {
		f    func()
		want func(v any) bool
	}{
		"panic":             {func() { panic(sentinel) }, func(v any) bool { return v == any(sentinel) }},
		"nil pointer":       {func() { *(*int)(nil) = 1 }, func(v any) bool { e, ok := v.(runtime.Error); return ok && strings.Contains(e.Error(), "nil pointer") }},
		"other fault":       {func() { *(*byte)(unsafe.Add(nil, reserve(t))) = 1 }, func(v any) bool { _, ok := v.(addressError); return ok }},
		"in a nested Guard": {func() { _ = Guard(func() { panic(sentinel) }) }, func(v any) bool { return v == any(sentinel) }},
	} {
		func() {
			defer func() {
				if v := recover(); !c.want(v) {
					t.Errorf("%s: the panic is %v", name, v)
				}
			}()
			err := Guard(c.f)
			t.Errorf("%s: Guard returns %v", name, err)
		}()
	}
	ended := make(chan bool)
	go func() {
		defer close(ended)
		_ = Guard(runtime.Goexit)
		t.Error("the goroutine goes on after runtime.Goexit")
	}()
	<-ended
}

// TestGuardPassesNilOn has f panic with nil in a program for which recover returns nil then.
func TestGuardPassesNilOn(t *testing.T) {
	t.Setenv("GODEBUG", "panicnil=1")
	for name, f := range map[string]func(){
		"panic(nil)":        func() { panic(nil) },
		"in a nested Guard": func() { _ = Guard(func() { panic(nil) }) },
	} {
		deferred, returned := false, false
		func() {
			defer func() {
				if v := recover(); v != nil {
					t.Errorf("%s: the panic is %v", name, v)
				}
			}()
			_ = Guard(func() {
				defer func() { deferred = true }()
				f()
			})
			returned = true
		}()
		if returned || !deferred {
			t.Errorf("%s: Guard returns: %v, a deferred call ran: %v", name, returned, deferred)
		}
	}
}

// reserve returns an address that faults and that no slot has.
func reserve(t *testing.T) uintptr {
	if osmem.GoBacked {
		return 1 << 13 // no system maps it
	}
	p, err := osmem.Reserve(1<<16, 1)
	testcall.Must(t, err)
	t.Cleanup(func() { osmem.Release(p, 1<<16) })
	return p
}

// TestNestedGuards restores what the outer Guard has set.
func TestNestedGuards(t *testing.T) {
	if !withGuard(t) {
		return
	}
	h := newHeap(t, "nested")
	p := allocate(h, 64)
	release(h, p)
	var inner error
	outer := Guard(func() {
		inner = Guard(func() { *(*byte)(p) = 1 })
		*(*byte)(unsafe.Add(p, 1)) = 1
	})
	var in, out *Fault
	if !errors.As(inner, &in) || !errors.As(outer, &out) || in.Offset() != 0 || out.Offset() != 1 {
		t.Errorf("inner %v, outer %v", inner, outer)
	}
}

// TestGuardedStatistics reads the counts of a heap whose blocks are guarded.
func TestGuardedStatistics(t *testing.T) {
	if !withGuard(t) {
		return
	}
	h := newHeap(t, "guarded statistics")
	before := readAll()
	p := allocate(h, 64)
	if b, _, ok := guard.Find(uintptr(p)); !ok || !b.Live {
		t.Fatal("the block is not guarded")
	}
	v := readAll()
	v.want(t, "cheap_heap_blocks", "guarded statistics", 1)
	v.want(t, "cheap_heap_allocated_bytes", "guarded statistics", 64)
	if got := v["cheap_active_bytes{}"] - before["cheap_active_bytes{}"]; got != float64(osmem.PageSize) {
		t.Errorf("active bytes grow by %v, want a page", got)
	}
	release(h, p)
	v = readAll()
	v.want(t, "cheap_heap_blocks", "guarded statistics", 0)
	v.want(t, "cheap_active_bytes", "", before["cheap_active_bytes{}"])
}

// TestGuardStale uses a pointer to a block whose slot has another one by now.
func TestGuardStale(t *testing.T) {
	if !withGuard(t) {
		return
	}
	h := newHeap(t, "stale")
	unit := func(p unsafe.Pointer) uintptr { return uintptr(p) >> 16 }
	for range 10 {
		p := allocate(h, 64)
		release(h, p)
		var q unsafe.Pointer
		for range 2 * guard.MostSlots {
			if q = h.Malloc(4096); unit(p) == unit(q) {
				break
			}
			h.Free(q)
		}
		h.Free(q)
		// The page faults again. The pointer is one to a byte of both blocks.
		var f *Fault
		if err := Guard(func() { *(*byte)(unsafe.Add(p, 3)) = 1 }); !errors.As(err, &f) || f.Size != 4096 || f.Earlier == nil {
			t.Fatalf("%p in the block at %p: %v", p, q, err)
		}
		e := f.Earlier
		if e.Block != uintptr(p) || e.Size != 64 || !e.Freed || e.Offset() != 3 || !hasFrame(e.Allocation, "inspect.allocate") || !hasFrame(e.Free, "inspect.release") || e.Earlier != nil {
			t.Errorf("%+v", e)
		}
		want := fmt.Sprintf("\nor, of the block that was there before: the block at %p (64 bytes) was accessed after it was freed, at byte 3; look for a pointer that is used after Free\nallocated by\n", p)
		if !strings.HasPrefix(f.Error(), "cheap: the block at") || !strings.Contains(f.Error(), want) {
			t.Errorf("%v\nhas not %q", f, want)
		}

		// Where the block before has no byte it is none of the mistake.
		if err := Guard(func() { *(*byte)(unsafe.Add(q, 4096)) = 1 }); !errors.As(err, &f) || f.Earlier != nil {
			t.Errorf("behind the end of both: %v", err)
		}
	}
}

// TestFaultOfEarlier has a fault of a page whose slot has a block in use by the time that the
// fault is looked at.
func TestFaultOfEarlier(t *testing.T) {
	live := guard.Traced{Block: guard.Block{Start: 1000, Size: 100, Live: true}}
	was := guard.Traced{Block: guard.Block{Start: 1050, Size: 10}}
	if f := newFault(1055, live, was); f == nil || f.Block != 1050 || !f.Freed || f.Earlier != nil {
		t.Errorf("%+v", f)
	}
	if f := newFault(1055, live, guard.Traced{}); f != nil {
		t.Errorf("a fault in a block in use: %+v", f)
	}
	if f := newFault(1100, live, guard.Traced{}); f == nil || f.Block != 1000 || f.Earlier != nil {
		t.Errorf("%+v", f)
	}
}
