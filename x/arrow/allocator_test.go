package cheaparrow_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cheapgo/cheap"
	cheaparrow "github.com/cheapgo/cheap/x/arrow"
)

// newAllocator returns an allocator on a heap that must be empty when the test
// ends.
func newAllocator(t testing.TB, o cheap.HeapOptions) cheaparrow.Allocator {
	t.Helper()
	heap, err := cheap.NewHeap(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := heap.Destroy(); err != nil {
			t.Error(err)
			heap.DestroyAll()
		}
	})
	return cheaparrow.Allocator{Heap: heap}
}

// verify checks a buffer up to its capacity: it is zero after the first n bytes.
func verify(t testing.TB, b []byte, size, n int) {
	t.Helper()
	if len(b) != size || cap(b) != (size+63)&^63 || b == nil {
		t.Fatalf("%d bytes, capacity %d; want %d", len(b), cap(b), size)
	}
	if p := uintptr(unsafe.Pointer(unsafe.SliceData(b))); size > 0 && p%64 != 0 {
		t.Fatalf("%d bytes at %#x, which is no multiple of 64", size, p)
	}
	all(t, b[n:cap(b)], 0)
}

// all checks that every byte of b is c.
func all(t testing.TB, b []byte, c byte) {
	t.Helper()
	if n := bytes.Count(b, []byte{c}); n != len(b) {
		t.Fatalf("%d of %d bytes are not %#x", len(b)-n, len(b), c)
	}
}

// dirty makes sure that the next buffers reuse memory of others.
func dirty(mem memory.Allocator, sizes ...int) {
	for _, size := range sizes {
		b := mem.Allocate(size)
		fill(b[:cap(b)], 0xee)
		mem.Free(b)
	}
}

func fill(b []byte, c byte) {
	if len(b) > 0 {
		b[0] = c
	}
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

func TestAllocate(t *testing.T) {
	mem := newAllocator(t, cheap.HeapOptions{})
	for _, size := range []int{0, 1, 4, 33, 63, 64, 65, 4095, 4096, 8193, 32 << 10, 32<<10 + 1, 1 << 20, 17 << 20} {
		dirty(mem, size)
		b := mem.Allocate(size)
		verify(t, b, size, 0)
		fill(b, 0xff)
		mem.Free(b)
	}
}

// TestAlignment checks every padded size that has a class, and for each blocks at
// several places of a span.
func TestAlignment(t *testing.T) {
	mem := newAllocator(t, cheap.HeapOptions{})
	for size := 64; size <= 40<<10; size += 64 {
		var some [5][]byte
		for i := range some {
			some[i] = mem.Allocate(size)
			verify(t, some[i], size, 0)
		}
		for _, b := range some {
			mem.Free(b)
		}
	}
}

func TestReallocate(t *testing.T) {
	sizes := []int{0, 1, 2, 16, 32, 33, 64, 80, 81, 500, 4096, 33 << 10, 70 << 10, 200 << 10, 17 << 20, 18 << 20}
	for _, before := range sizes {
		for _, after := range sizes {
			t.Run(fmt.Sprintf("%dTo%d", before, after), func(t *testing.T) {
				mem := newAllocator(t, cheap.HeapOptions{})
				dirty(mem, before, after)
				b := mem.Allocate(before)
				fill(b[:cap(b)], 0x55) // the padding, too
				b = mem.Reallocate(after, b)
				kept := min(before, after)
				verify(t, b, after, kept)
				all(t, b[:kept], 0x55)
				mem.Free(b)
			})
		}
	}
}

// TestResliced frees and grows buffers that were made shorter, or empty.
func TestResliced(t *testing.T) {
	reslices := map[string]func(b []byte) []byte{
		"short":          func(b []byte) []byte { return b[:10] },
		"short capacity": func(b []byte) []byte { return b[:10:20] },
		"empty":          func(b []byte) []byte { return b[:0] },
		"no capacity":    func(b []byte) []byte { return b[:0:0] },
		"long":           func(b []byte) []byte { return b[:cap(b)] },
	}
	for name, reslice := range reslices {
		for _, size := range []int{100, 100 << 10} {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				mem := newAllocator(t, cheap.HeapOptions{})
				mem.Free(reslice(mem.Allocate(size)))
				if n := mem.Heap.Stats().Blocks; n != 0 {
					t.Fatalf("%d blocks are left", n)
				}
				for _, to := range []int{0, 5, 50, size, 10 * size} {
					b := mem.Allocate(size)
					fill(b, 0x77)
					b = reslice(b)
					kept := min(size, len(b), to)
					b = mem.Reallocate(to, b)
					verify(t, b, to, kept)
					all(t, b[:kept], 0x77)
					mem.Free(b[:0])
				}
			})
		}
	}
}

// TestEmpty frees buffers without memory, several times.
func TestEmpty(t *testing.T) {
	mem := newAllocator(t, cheap.HeapOptions{})
	for _, b := range [][]byte{nil, {}, make([]byte, 0), mem.Allocate(0), mem.Reallocate(0, nil), mem.Reallocate(0, mem.Allocate(9))} {
		mem.Free(b)
		mem.Free(b)
		c := mem.Reallocate(7, b)
		verify(t, c, 7, 0)
		mem.Free(c)
	}
	inGo := [64]byte{}
	mem.Free(inGo[10:10:10])
	var zero cheaparrow.Allocator // its heap has the address of empty buffers
	before := cheap.Default().Stats().Blocks
	for range 3 {
		zero.Free(zero.Allocate(0))
	}
	if after := cheap.Default().Stats().Blocks; after != before {
		t.Errorf("%d blocks, then %d", before, after)
	}
}

// TestMisuse expects panics, before which nothing has changed.
func TestMisuse(t *testing.T) {
	mem := newAllocator(t, cheap.HeapOptions{})
	other := newAllocator(t, cheap.HeapOptions{})
	b := mem.Allocate(200)
	defer mem.Free(b)
	gone := mem.Allocate(200)
	mem.Free(gone)
	foreign := other.Allocate(200)
	defer other.Free(foreign)
	inGo := make([]byte, 200)
	for name, row := range map[string]struct {
		f    func()
		says string
	}{
		"negative size":       {func() { mem.Allocate(-1) }, "arrow.Allocator.Allocate: the size -1 is negative"},
		"negative new size":   {func() { mem.Reallocate(-1, b) }, "arrow.Allocator.Reallocate: the size -1 is negative"},
		"freed twice":         {func() { mem.Free(gone) }, "free"},
		"grown when free":     {func() { mem.Reallocate(1000, gone) }, "free"},
		"as it is when free":  {func() { mem.Reallocate(cap(gone), gone[:0]) }, "free"},
		"inside, as it is":    {func() { mem.Reallocate(64, b[64:128:128]) }, "inside"},
		"inside":              {func() { mem.Free(b[64:]) }, "inside"},
		"another heap's":      {func() { mem.Free(foreign) }, "another heap"},
		"Go memory":           {func() { mem.Free(inGo) }, ""},
		"Go memory, as it is": {func() { mem.Reallocate(200, make([]byte, 256)) }, ""},
		"Go memory, growing":  {func() { mem.Reallocate(1000, inGo) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				err, ok := recover().(*cheap.MisuseError)
				if !ok || !strings.Contains(err.Error(), row.says) {
					t.Errorf("panic %v, which should say %q", err, row.says)
				}
			}()
			row.f()
		})
	}
}

// TestNoMemory expects an error with the reason, and an unchanged buffer.
func TestNoMemory(t *testing.T) {
	mem := newAllocator(t, cheap.HeapOptions{Limit: 1 << 20})
	b := mem.Allocate(1000)
	defer mem.Free(b)
	fill(b, 0x11)
	for name, row := range map[string]struct {
		f    func()
		want error
	}{
		"limit":             {func() { mem.Allocate(2 << 20) }, cheap.ErrLimit},
		"limit, growing":    {func() { mem.Reallocate(2<<20, b) }, cheap.ErrLimit},
		"overflow":          {func() { mem.Allocate(math.MaxInt) }, cheap.ErrNoMemory},
		"overflow, growing": {func() { mem.Reallocate(math.MaxInt-10, b) }, cheap.ErrNoMemory},
		"too much":          {func() { mem.Allocate(math.MaxInt - 100) }, cheap.ErrLimit},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if err, ok := recover().(error); !ok || !errors.Is(err, row.want) {
					t.Errorf("panic %v, want %v", err, row.want)
				}
			}()
			row.f()
		})
	}
	all(t, b, 0x11)
}

// TestChecked has arrow's own bookkeeping find the buffers that are left, and no
// others.
func TestChecked(t *testing.T) {
	inner := newAllocator(t, cheap.HeapOptions{})
	mem := memory.NewCheckedAllocator(inner)
	b := array.NewStringBuilder(mem)
	for i := range 1000 {
		b.Append(fmt.Sprint(i))
	}
	a := b.NewStringArray()
	b.Release()
	if mem.CurrentAlloc() == 0 || inner.Heap.Stats().Blocks != 2 && inner.Heap.Stats().Blocks != 3 {
		t.Errorf("%d bytes, %+v", mem.CurrentAlloc(), inner.Heap.Stats())
	}
	if a.Value(999) != "999" {
		t.Errorf("value %q", a.Value(999))
	}
	a.Release()
	mem.AssertSize(t, 0)
}

// TestHammerAllocator has goroutines allocate, resize and pass on buffers, which others
// verify and free.
func TestHammerAllocator(t *testing.T) {
	mem := newAllocator(t, cheap.HeapOptions{})
	const goroutines, steps = 4, 5_000
	handOver := make(chan []byte, 64)
	var work, drain sync.WaitGroup
	drain.Go(func() {
		for b := range handOver {
			checkCookie(t, b)
			mem.Free(b[:0])
		}
	})
	for g := range goroutines {
		work.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range steps {
				size := 1 + r.IntN(1<<r.IntN(18))
				b := mem.Allocate(size)
				verify(t, b, size, 0)
				if r.IntN(3) == 0 {
					fill(b, byte(size)|1)
					to := 1 + r.IntN(2*size)
					b = mem.Reallocate(to, b)
					verify(t, b, to, min(size, to))
				}
				fill(b, byte(len(b))|1)
				handOver <- b
			}
		})
	}
	work.Wait()
	close(handOver)
	drain.Wait()
}

func checkCookie(t *testing.T, b []byte) {
	if c := byte(len(b)) | 1; bytes.Count(b, []byte{c}) != len(b) {
		t.Errorf("%d bytes are not what was written to them", len(b))
	}
}

// TestNoGoMemory checks that a buffer is not Go memory.
func TestNoGoMemory(t *testing.T) {
	var mem memory.Allocator = newAllocator(t, cheap.HeapOptions{})
	if n := testing.AllocsPerRun(100, func() { mem.Free(mem.Reallocate(5000, mem.Allocate(100))) }); n != 0 {
		t.Errorf("%v Go allocations", n)
	}
}
