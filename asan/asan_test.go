//go:build asan

package asan_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	_ "github.com/cheapgo/cheap/asan"
	"github.com/cheapgo/cheap/internal/test/ctouch"
	"github.com/cheapgo/cheap/internal/test/testchild"
)

// An access is a way to touch a byte.
type access struct {
	name, verb string
	f          func(p unsafe.Pointer)
}

var accesses = []access{
	{"read by C", "READ", func(p unsafe.Pointer) { ctouch.Get(p) }},
	{"write by C", "WRITE", ctouch.Set},
	{"memcpy of C", "READ", func(p unsafe.Pointer) { ctouch.Copy(unsafe.Pointer(&make([]byte, 8)[0]), p, 8) }},
	{"read by Go", "READ", func(p unsafe.Pointer) { sink = *(*byte)(p) }},
	{"write by Go", "WRITE", func(p unsafe.Pointer) { *(*byte)(p) = 1 }},
	{"copy of Go", "READ", func(p unsafe.Pointer) { copy(make([]byte, 8), unsafe.Slice((*byte)(p), 8)) }},
}

var sink byte

// mustReport runs f in a process of its own. f tells where it is going to make an access, and
// makes it. The sanitizer has to end the process with a report that names the address and has
// the words.
func mustReport(t *testing.T, a access, f func(touch func(p unsafe.Pointer)), words ...string) {
	t.Helper()
	output, status := testchild.Run(t, func() {
		f(func(p unsafe.Pointer) {
			fmt.Fprintf(os.Stderr, "at %p\n", p)
			a.f(p)
		})
	})
	_, rest, _ := strings.Cut(output, "at ")
	at, rest, ok := strings.Cut(rest, "\n")
	words = append([]string{"AddressSanitizer: use-after-poison on address " + at + " ", a.verb + " of size ", "cheap: " + at + " is "}, words...)
	for _, w := range words {
		_, rest, _ = strings.Cut(rest, w) // in this order
		ok = ok && rest != ""
	}
	if !ok || status == 0 {
		t.Errorf("status %d; want a report with %q\n%s", status, words, output)
	}
}

var sizes = []int{16, 1 << 10, 1 << 20}

// TestReadAfterFree touches blocks that were freed.
func TestReadAfterFree(t *testing.T) {
	for i, a := range accesses {
		for j, size := range sizes {
			t.Run(fmt.Sprint(a.name, " ", size), func(t *testing.T) {
				mustReport(t, a, func(touch func(unsafe.Pointer)) {
					off := []int{0, size / 2, size - 8}[(i+j)%3]
					p := cheap.Malloc(size)
					a.f(unsafe.Add(p, off)) // it may
					cheap.Free(p)
					touch(unsafe.Add(p, off))
				}, " the free block at 0x", fmt.Sprintf(" (%d bytes)\n", size), "allocated by\n", "TestReadAfterFree", "freed by\n", "TestReadAfterFree")
			})
		}
	}
}

// TestOutside touches the byte behind a block, and the one before it. The size need not be a
// multiple of what the sanitizer counts in.
func TestOutside(t *testing.T) {
	for i, a := range accesses {
		size := append(sizes, 1, 13, 40_001)[i]
		if i >= 3 {
			size -= 3 // 13 bytes, and so on
		}
		size = max(size, 1)
		touches := func(where string, off int, word string) {
			t.Run(fmt.Sprint(a.name, " ", size, where), func(t *testing.T) {
				mustReport(t, a, func(touch func(unsafe.Pointer)) {
					p := cheap.Malloc(size)
					copy(unsafe.Slice((*byte)(p), size), "all of it")
					touch(unsafe.Add(p, off))
				}, word, " the block at 0x", fmt.Sprintf(" (%d bytes)\n", size), "allocated by\n", "TestOutside")
			})
		}
		touches(" behind", size, "0 bytes behind")
		touches(" before", -8, "8 bytes before")
	}
}

// TestOthers touches free memory of what takes its memory from a heap.
func TestOthers(t *testing.T) {
	a := accesses[0]
	for _, c := range []struct {
		name, words string
		f           func(h *cheap.Heap) unsafe.Pointer
	}{
		{"Local", "byte 0 of the free block at ", func(h *cheap.Heap) unsafe.Pointer {
			l := h.NewLocal()
			p := l.Malloc(100)
			l.Free(p)
			return p
		}},
		{"Realloc", "byte 0 of the free block at ", func(h *cheap.Heap) unsafe.Pointer {
			p := h.Malloc(100)
			h.Realloc(p, 101)
			return p
		}},
		{"AlignedMalloc", "1 bytes before the block at ", func(h *cheap.Heap) unsafe.Pointer {
			return unsafe.Add(h.AlignedMalloc(100, 1<<20), -1)
		}},
		{"Calloc", "byte 99 of the free block at ", func(h *cheap.Heap) unsafe.Pointer {
			p := h.Calloc(1, 100)
			h.Free(p)
			return unsafe.Add(p, 99)
		}},
		{"Arena", ", in a part that is free\n", func(h *cheap.Heap) unsafe.Pointer {
			a := cheap.NewArena(h, 0)
			return unsafe.Add(a.Malloc(100), -1)
		}},
		{"Arena, behind", ", in a part that is free\n", func(h *cheap.Heap) unsafe.Pointer {
			a := cheap.NewArena(h, 0)
			return unsafe.Add(a.Malloc(100), 100)
		}},
		{"Reset", ", in a part that is free\n", func(h *cheap.Heap) unsafe.Pointer {
			a := cheap.NewArena(h, 0)
			p := a.Malloc(100)
			a.Reset()
			return p
		}},
		{"Release", ", in a part that is free\n", func(h *cheap.Heap) unsafe.Pointer {
			a := cheap.NewArena(h, 0)
			a.Malloc(100)
			m := a.Mark()
			p := a.Malloc(100)
			a.Release(m)
			return p
		}},
		{"FreeAll", " of the free block at ", func(h *cheap.Heap) unsafe.Pointer {
			a := cheap.NewArena(h, 0)
			p := a.Malloc(100)
			a.FreeAll()
			return p
		}},
		{"Put", ", in a part that is free\n", func(*cheap.Heap) unsafe.Pointer {
			a := cheap.GetArena()
			p := a.Malloc(100)
			a.Put()
			return p
		}},
		{"FixedBlock", ", in a part that is free\n", func(h *cheap.Heap) unsafe.Pointer {
			f := cheap.NewFixedBlock(h, cheap.FixedBlockOptions{BlockSize: 64})
			p := f.Malloc(64)
			f.Free(p)
			return unsafe.Add(p, 8)
		}},
		{"FixedBlock, behind", ", in a part that is free\n", func(h *cheap.Heap) unsafe.Pointer {
			f := cheap.NewFixedBlock(h, cheap.FixedBlockOptions{BlockSize: 64})
			return unsafe.Add(f.Malloc(64), 64)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			mustReport(t, a, func(touch func(unsafe.Pointer)) {
				h, err := cheap.NewHeap(cheap.HeapOptions{})
				if err != nil {
					panic(err)
				}
				touch(c.f(h))
			}, c.words, "allocated by\n", "TestOthers")
		})
	}
}

// TestLevels has reports without stacks, and with a level that does not exist, which is ignored.
func TestLevels(t *testing.T) {
	for env, stacks := range map[string]bool{"CHEAP_CHECK=blocks": false, "CHEAP_CHECK=all": true} {
		t.Run(env, func(t *testing.T) {
			output, status := testchild.Run(t, func() {
				p := cheap.Malloc(100)
				cheap.Free(p)
				ctouch.Get(p)
			}, env)
			if status == 0 || !strings.Contains(output, " is byte 0 of the free block at ") || strings.Contains(output, "allocated by") != stacks {
				t.Errorf("status %d\n%s", status, output)
			}
		})
	}
}

// mustEndClean runs f in a process of its own, in which the sanitizers must not find anything.
func mustEndClean(t *testing.T, f func(), env ...string) {
	t.Helper()
	if output, status := testchild.Run(t, f, env...); status != 0 || output != "" {
		t.Errorf("status %d\n%s", status, output)
	}
}

// TestListIsNoLeak keeps lists of C in blocks of all sorts.
func TestListIsNoLeak(t *testing.T) {
	mustEndClean(t, func() {
		for _, size := range []int{8, 1 << 10, 1 << 20, 32 << 20} {
			ctouch.List(cheap.Malloc(size), 10)
		}
		h, err := cheap.NewHeap(cheap.HeapOptions{})
		if err != nil {
			panic(err)
		}
		ctouch.List(h.NewLocal().Malloc(8), 10)
		ctouch.List(cheap.NewArena(h, 0).Malloc(8), 10)
		// The region of a mapping that moves.
		p := h.Calloc(1, 32<<20)
		ctouch.List(p, 10)
		h.Realloc(p, 64<<20)
	})
}

// TestEndsClean uses memory that was poisoned again: for blocks of other sizes, other heaps,
// and the records of the heap.
func TestEndsClean(t *testing.T) {
	mustEndClean(t, func() {
		for round := range 3 {
			useAll(round)
		}
	})
	mustEndClean(t, func() { useAll(0) }, "CHEAP_CHECK=blocks")
}

func useAll(round int) {
	h, err := cheap.NewHeap(cheap.HeapOptions{Quarantine: 1 << 20})
	must(err)
	l := h.NewLocal()
	var all []unsafe.Pointer
	for i := range 2000 {
		size := (i*i*37 + round*11) % 5000
		if i%100 == 0 {
			size = i * 1000
		}
		p := h.Malloc(size)
		fill(p, size)
		p = h.Realloc(p, size/2+1)
		fill(p, size/2+1)
		if all = append(all, p); i%3 == 0 {
			l.Free(all[i/2])
			all[i/2] = nil
		}
	}
	a := cheap.NewArena(h, 4<<10)
	for i := range 2000 {
		fill(a.Malloc(i), i)
		if i%500 == 0 {
			a.Reset()
		}
	}
	f := cheap.NewFixedBlock(h, cheap.FixedBlockOptions{BlockSize: 48})
	for range 5000 {
		p := f.Malloc(48)
		fill(p, 48)
		if f.Free(p); round != 1 {
			fill(f.Malloc(40), 40)
		}
	}
	pooled := cheap.GetArena()
	fill(pooled.Malloc(50_000), 50_000)
	pooled.Put()
	cheap.Trim()
	must(l.Destroy())
	if err := h.Destroy(); err == nil {
		panic("no live blocks")
	}
	for _, p := range all {
		if p != nil {
			ctouch.Get(p)
		}
	}
	switch round {
	case 0:
		must(h.DestroyAll()) // with a FixedBlock and an Arena
	case 1:
		must(f.DestroyAll())
		must(a.Destroy())
		for _, p := range all {
			h.Free(p)
		}
		must(h.Destroy())
	}
	// Whatever was a block there may be touched again, as another one is there.
	for size := 1; size < 1<<20; size = 3*size + 5 {
		p := cheap.Calloc(1, size)
		fill(p, size)
		cheap.Free(p)
	}
	cheap.Trim()
}

// fill writes to all of a block, in Go and in C.
func fill(p unsafe.Pointer, size int) {
	if size > 0 {
		clear(unsafe.Slice((*byte)(p), size))
		ctouch.Set(p)
		ctouch.Set(unsafe.Add(p, size-1))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
