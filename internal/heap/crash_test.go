package heap_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	. "github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// TestCrash looks at the output of programs that misuse the heap: a panic that is
// not recovered, which says what is wrong, and never a fault nor a fatal
// error of the runtime.
func TestCrash(t *testing.T) {
	mustHeap := func() *Heap {
		h, err := New(Options{})
		if err != nil {
			panic(err)
		}
		return h
	}
	for _, row := range []struct {
		name string
		f    func()
		says string
	}{
		{"double free", func() {
			p := Default().Malloc(100)
			Default().Free(p)
			Default().Free(p)
		}, "cheap: Heap.Free: "},
		{"double free elsewhere", func() {
			h := mustHeap()
			p := h.Malloc(100)
			h.Free(p)
			go func() { h.Free(p) }()
			select {}
		}, "free already"},
		{"double free of a large block", func() {
			p := Default().Malloc(span.OwnMapping)
			Default().Free(p)
			Default().Free(p)
		}, "given back"},
		{"double free in a Local", func() {
			l := mustHeap().NewLocal()
			p := l.Malloc(16)
			l.Free(p)
			l.Free(p)
		}, "cheap: Local.Free: "},
		{"double free after Trim", func() {
			p := Default().Malloc(100)
			Default().Free(p)
			Trim()
			Default().Free(p)
		}, "given back"},
		{"inside", func() { Default().Free(unsafe.Add(Default().Malloc(100), 16)) }, "inside the block at 0x"},
		{"inside a large block", func() { Default().Free(unsafe.Add(Default().Malloc(1<<20), 1<<17)) }, "inside the block at 0x"},
		{"misaligned", func() { Default().Free(unsafe.Add(Default().Malloc(100), 1)) }, "1 bytes after its start"},
		{"other heap", func() { Default().Free(mustHeap().Malloc(10)) }, "belongs to another heap"},
		{"Go pointer", func() { Default().Free(unsafe.Pointer(new([100]int))) }, "Go pointer"},
		{"global variable", func() { Default().Free(unsafe.Pointer(&testheap.SomeSizes)) }, "it is not from a heap"},
		{"small number", func() { Default().Free(osmem.Pointer(24)) }, "0x18 is a small number, not an address"},
		{"no address", func() { Default().Free(osmem.Pointer(^uintptr(15))) }, "it is not from a heap"},
		{"before any block", func() { Default().Free(osmem.Pointer(1 << 30)) }, "0x40000000"},
		{"negative size", func() { Default().Malloc(-5) }, "cheap: Heap.Malloc: negative size -5"},
		{"bad alignment", func() { Default().AlignedMalloc(5, 12) }, "cheap: Heap.AlignedMalloc: the alignment 12 is not a power of two"},
		{"destroyed", func() {
			h := mustHeap()
			h.DestroyAll()
			h.Malloc(1)
		}, "cheap: Heap.Malloc: the heap is destroyed"},
		{"block of a destroyed heap", func() {
			h := mustHeap()
			p := h.Malloc(1)
			h.DestroyAll()
			Default().Free(p)
		}, "its heap is destroyed"},
		{"destroyed Local", func() {
			l := mustHeap().NewLocal()
			l.Destroy()
			l.Malloc(1)
		}, "cheap: Local.Malloc: the Local is destroyed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, status := testchild.Run(t, row.f)
			first, _, _ := strings.Cut(out, "\n")
			if status != 2 || !strings.HasPrefix(first, "panic: ") || !strings.Contains(first, "cheap: ") || !strings.Contains(first, row.says) {
				t.Errorf("status %d, output:\n%s", status, out)
			}
			for _, bad := range []string{"[signal", "fatal error", "unexpected fault"} {
				if strings.Contains(out, bad) {
					t.Errorf("%s:\n%s", bad, out)
				}
			}
		})
	}
}

// TestDeadlock looks whether Go still notices that all goroutines wait for
// good, once what was idle has been given back: an armed timer would hide it.
func TestDeadlock(t *testing.T) {
	testenv.Skip(t, "race asan msan", "with cgo, and under the race detector, Go does not notice deadlocks")
	const says = "all goroutines are asleep - deadlock!"
	// Where cgo is linked in there has been a call, which says that the runtime has begun. Windows
	// counts the calls of the system, and package testing needs no cgo there.
	notices := testchild.Is() || runtime.NumCgoCall() == 0 || runtime.GOOS == "windows"
	t.Run("without a heap", func(t *testing.T) {
		if !notices && !testchild.Is() {
			return // such a child would wait for ever
		}
		if out, status := testchild.Run(t, func() { select {} }); !strings.Contains(out, says) {
			t.Errorf("status %d, output:\n%s", status, out)
		}
	})
	t.Run("after the decay", func(t *testing.T) {
		if !notices {
			return
		}
		out, status := testchild.Run(t, func() {
			span.SetDecay(time.Millisecond)
			for _, size := range []int{100, 10_000, 1_000_000} {
				Default().Free(Default().Malloc(size))
			}
			Trim()
			l := Default().NewLocal()
			for range 1000 {
				l.Free(Default().Malloc(3000))
			}
			for l.Destroy(); span.Idle() > 0; {
				runtime.Gosched()
			}
			fmt.Println("idle is", span.Idle())
			select {}
		})
		if !strings.Contains(out, "idle is 0") || !strings.Contains(out, says) {
			t.Errorf("status %d, output:\n%s", status, out)
		}
	})
}
