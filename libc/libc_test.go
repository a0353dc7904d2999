//go:build cgo

package libc_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/libc"
)

func TestMallocIsWritable(t *testing.T) {
	var a libc.Allocator
	for _, size := range []int{0, 1, 8, 100, 4096, 1 << 20} {
		p := a.Malloc(size)
		if p == nil {
			t.Fatalf("Malloc(%d) = nil", size)
		}
		fill(p, size, 0xA5)
		a.Free(p)
	}
	a.Free(nil)
}

func TestMallocOfZeroIsDistinct(t *testing.T) {
	var a libc.Allocator
	p, q := a.Malloc(0), a.Malloc(0)
	if p == nil || q == nil || p == q {
		t.Fatalf("two blocks of size 0: %p and %p", p, q)
	}
	a.Free(p)
	a.Free(q)
}

func TestCalloc(t *testing.T) {
	var a libc.Allocator
	for _, args := range [][2]int{{0, 0}, {0, 8}, {8, 0}, {1, 1}, {100, 7}} {
		p := a.Calloc(args[0], args[1])
		if p == nil {
			t.Fatalf("Calloc(%d, %d) = nil", args[0], args[1])
		}
		for i, b := range unsafe.Slice((*byte)(p), args[0]*args[1]) {
			if b != 0 {
				t.Fatalf("Calloc(%d, %d): byte %d is %#x", args[0], args[1], i, b)
			}
		}
		a.Free(p)
	}
}

func TestRealloc(t *testing.T) {
	var a libc.Allocator
	p := a.Realloc(nil, 10)
	fill(p, 10, 7)
	p = a.Realloc(p, 100_000)
	for i, b := range unsafe.Slice((*byte)(p), 10) {
		if b != 7 {
			t.Fatalf("byte %d is %d after Realloc", i, b)
		}
	}
	if q := a.Realloc(p, math.MaxInt); q != nil {
		t.Fatalf("Realloc to %d bytes = %p", math.MaxInt, q)
	}
	if b := *(*byte)(p); b != 7 {
		t.Fatalf("a refused Realloc changed the block: %d", b)
	}
	if p = a.Realloc(p, 0); p == nil {
		t.Fatal("Realloc to 0 = nil")
	}
	a.Free(p)
}

func TestAlignedMalloc(t *testing.T) {
	var a libc.Allocator
	for align := 1; align <= 2<<20; align *= 2 {
		for _, size := range []int{0, 1, 24, 5000} {
			p := a.AlignedMalloc(size, align)
			if p == nil {
				if runtime.GOOS == "windows" && align > 8 {
					continue
				}
				t.Fatalf("AlignedMalloc(%d, %d) = nil", size, align)
			}
			if uintptr(p)%uintptr(align) != 0 {
				t.Fatalf("AlignedMalloc(%d, %d) = %p", size, align, p)
			}
			fill(p, size, 1)
			a.Free(p)
		}
	}
}

//cheapvet:ignore cfree nothing is allocated
func TestTooLargeIsNil(t *testing.T) {
	var a libc.Allocator
	for name, p := range map[string]unsafe.Pointer{
		"Malloc":          a.Malloc(math.MaxInt),
		"Calloc":          a.Calloc(math.MaxInt/2, 2),
		"Calloc overflow": a.Calloc(math.MaxInt, 3),
		"Realloc":         a.Realloc(nil, math.MaxInt),
		"AlignedMalloc":   a.AlignedMalloc(math.MaxInt, 4096),
	} {
		if p != nil {
			t.Errorf("%s of more than there is = %p, want nil", name, p)
		}
	}
}

//cheapvet:ignore cfree nothing is allocated
func TestMisusePanics(t *testing.T) {
	var a libc.Allocator
	for name, f := range map[string]func(){
		"Malloc":        func() { a.Malloc(-1) },
		"Calloc":        func() { a.Calloc(-1, 1) },
		"Realloc":       func() { a.Realloc(nil, math.MinInt) },
		"AlignedMalloc": func() { a.AlignedMalloc(8, 24) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				err, _ := recover().(error)
				var m *cheap.MisuseError
				if !errors.As(err, &m) || !strings.HasPrefix(m.Error(), "cheap: libc.Allocator."+name+": ") {
					t.Fatalf("panic value %v", err)
				}
			}()
			f()
		})
	}
}

// TestNoGoAllocation checks that a call allocates no Go memory, also through the
// interface.
func TestNoGoAllocation(t *testing.T) {
	var a cheap.Allocator = libc.Allocator{}
	if n := testing.AllocsPerRun(100, func() { a.Free(a.Malloc(64)) }); n != 0 {
		t.Fatalf("%v Go allocations", n)
	}
}

func TestHammer(t *testing.T) {
	blocks := make(chan unsafe.Pointer, 64)
	go func() {
		defer close(blocks)
		var a libc.Allocator
		for i := range 10_000 {
			p := a.Malloc(i % 700)
			fill(p, i%700, byte(i))
			blocks <- p
		}
		a.Trim()
	}()
	var a libc.Allocator
	i := 0
	for p := range blocks {
		for _, b := range unsafe.Slice((*byte)(p), i%700) {
			if b != byte(i) {
				t.Fatalf("block %d holds %#x", i, b)
			}
		}
		a.Free(p)
		i++
	}
}

func BenchmarkPair(b *testing.B) {
	var a libc.Allocator
	for b.Loop() {
		a.Free(a.Malloc(64))
	}
}

func fill(p unsafe.Pointer, size int, b byte) {
	s := unsafe.Slice((*byte)(p), size)
	for i := range s {
		s[i] = b
	}
}

// TestFreeOfCheckedBlock passes blocks of a heap with a CheckLevel to C's free. The border before such
// a block looks like no size of glibc's, which ends the program at once.
func TestFreeOfCheckedBlock(t *testing.T) {
	for _, size := range []int{16, 1000, 70_000, 17 << 20} {
		output, status := testchild.Run(t, func() {
			if r, ok := account.Process.Malloc().(account.ArenaReader); ok {
				if arenas := r.ReadArenas(); len(arenas) > 0 && arenas[0].Blocks > 0 {
					fmt.Println("glibc")
				}
			}
			h, err := cheap.NewHeap(cheap.HeapOptions{Check: cheap.CheckBlocks})
			if err != nil {
				panic(err)
			}
			libc.Allocator{}.Free(h.Malloc(size))
			fmt.Println("went on")
		})
		glibc := strings.HasPrefix(output, "glibc\n")
		if status == 0 || strings.Contains(output, "went on") || glibc && !strings.Contains(output, "munmap_chunk(): invalid pointer") {
			t.Errorf("free of %d bytes: status %d\n%s", size, status, output)
		}
	}
}
