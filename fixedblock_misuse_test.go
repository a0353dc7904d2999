package cheap

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/poison"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

func TestNewFixedBlockMisuse(t *testing.T) {
	a := newFake(t)
	for _, c := range []struct {
		inner Allocator
		o     FixedBlockOptions
		says  string
	}{
		{nil, FixedBlockOptions{BlockSize: 8}, "inner allocator is nil"},
		{a, FixedBlockOptions{}, "0 < BlockSize"},
		{a, FixedBlockOptions{BlockSize: -1}, "blocks of -1 bytes"},
		{a, FixedBlockOptions{BlockSize: math.MaxInt}, "none above"},
		{a, FixedBlockOptions{BlockSize: 8, Align: 3}, "power of two"},
		{a, FixedBlockOptions{BlockSize: 8, Align: -8}, "power of two"},
		{a, FixedBlockOptions{BlockSize: 8, Align: math.MaxInt/2 + 1}, "none above"},
		{a, FixedBlockOptions{BlockSize: 8, ChunkSize: -1}, "0 <= ChunkSize"},
		{a, FixedBlockOptions{BlockSize: 8, ChunkSize: math.MaxInt}, "none above"},
		{&sizedFake{fakeAlloc: a, max: 100_000}, FixedBlockOptions{BlockSize: 8}, "use a Fallback"},
		{newFixed(a, 100_000, 16, 0), FixedBlockOptions{BlockSize: 8}, "use a Fallback"},
	} {
		wantMisuse(t, "NewFixedBlock", func() { NewFixedBlock(c.inner, c.o) }, c.says)
	}
}

func TestFixedBlockMisuse(t *testing.T) {
	for _, size := range []int{8, 16, 48, 4096, 70_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			f := newFixed(Default(), size, 8, 0)
			other := newFixed(Default(), size, 8, 0)
			p, q, r := f.Malloc(0), f.Malloc(1), f.Malloc(size)
			f.Free(nil)
			wantMisuse(t, "FixedBlock.Malloc", func() { f.Malloc(-1) })
			wantMisuse(t, "FixedBlock.Malloc", func() { f.Malloc(size + 1) }, fmt.Sprint(size+1))
			wantMisuse(t, "FixedBlock.AlignedMalloc", func() { f.AlignedMalloc(1, 3) })
			if f.AlignedMalloc(1, 1<<20) != nil {
				t.Error("a block aligned to more than blocks are")
			}
			f.Free(f.AlignedMalloc(1, 4))

			free := func(p unsafe.Pointer, words ...string) {
				t.Helper()
				if f.Contains(p) && p != nil && len(words) > 0 && words[0] == "is from another allocator" {
					t.Errorf("owns %p", p)
				}
				wantMisuse(t, "FixedBlock.Free", func() { f.Free(p) }, append(words, fmt.Sprintf("%#x", uintptr(p)))...)
			}
			free(unsafe.Add(q, 1), "inside", fmt.Sprintf("%#x", uintptr(q)), "1 bytes")
			free(unsafe.Add(q, size-1), "inside")
			free(testheap.AnyPointer(f.cur.base+f.cur.size-1), "never")
			for _, p := range []uintptr{f.cur.base - 1, f.cur.base + f.cur.size} {
				if !f.Contains(testheap.AnyPointer(p)) {
					free(testheap.AnyPointer(p), "is from another allocator")
				}
			}
			free(other.Malloc(1), "a block of another allocator", "is from another allocator")
			free(Malloc(size), "in memory of a heap", "is from another allocator")
			free(unsafe.Pointer(new([64]byte)), "is from another allocator")
			for _, n := range []uintptr{4096, math.MaxInt, math.MaxUint, math.MaxUint &^ 7, 1 << (bits.UintSize - 1)} {
				free(testheap.AnyPointer(n), "is from another allocator")
			}

			// Freed twice at any distance, as the only free block and as one of
			// several, in a chunk that is current and in one that is not.
			f.Free(q)
			free(q, "free already")
			f.Free(p)
			f.Free(r)
			for _, b := range []unsafe.Pointer{p, q, r} {
				if f.Contains(b) {
					free(b, "free already")
				} else {
					free(b, "freed before") // the chunk, too, is given back
				}
			}
			var blocks []unsafe.Pointer
			for range min(3*int(f.chunkSize)/size, 20_000) {
				blocks = append(blocks, f.Malloc(1))
			}
			first := blocks[0]
			f.Free(first)
			free(first, "free already")
			other.Free(other.Malloc(1))
			free(first, "free already")
			for _, b := range blocks[1:] {
				f.Free(b)
			}
			checkFixedBlock(t, f, 0)
			f.Malloc(1)
			f.DestroyAll()
			other.DestroyAll()

			if err := f.Destroy(); err != ErrDestroyed {
				t.Errorf("Destroy after DestroyAll: %v", err)
			}
			wantMisuse(t, "FixedBlock.Malloc", func() { f.Malloc(1) }, "destroyed")
			wantMisuse(t, "FixedBlock.Free", func() { f.Free(first) }, "destroyed")
			if err := f.DestroyAll(); err != ErrDestroyed {
				t.Errorf("a second DestroyAll: %v", err)
			}
			if f.Contains(first) {
				t.Error("owns a block after DestroyAll")
			}
		})
	}
}

// TestFixedBlockShared uses a FixedBlock while another goroutine takes a chunk for it.
func TestFixedBlockShared(t *testing.T) {
	b := &busyInner{fakeAlloc: newFake(t)}
	f := NewFixedBlock(b, FixedBlockOptions{BlockSize: 64})
	b.onMalloc = func() { f.Malloc(8) }
	wantMisuse(t, "FixedBlock", func() { f.Malloc(8) }, "two goroutines")
	if err := f.DestroyAll(); err != nil {
		t.Error(err)
	}
}

// TestFixedBlockUseAfterFree: a block that is written to while it is free is not
// handed out, and the program may go on.
func TestFixedBlockUseAfterFree(t *testing.T) {
	f := newFixed(Default(), 32, 0, 0)
	p, q := f.Malloc(1), f.Malloc(1)
	f.Free(p)
	f.Free(q)
	*(*uint32)(q)-- // as one that drops a reference does
	wantMisuse(t, "FixedBlock.Malloc", func() { f.Malloc(1) }, fmt.Sprintf("%#x", uintptr(q)), "written to")
	for range 10 {
		if r := f.Malloc(1); r == p || r == q {
			t.Errorf("%p handed out", r)
		}
	}
	var le *LiveError
	if err := f.Destroy(); !errors.As(err, &le) || le.Blocks != 10 {
		t.Errorf("Destroy: %v", err)
	}
	f.DestroyAll()
}

// TestFixedBlockStaleByte writes each value to each byte of the first word of a free block.
func TestFixedBlockStaleByte(t *testing.T) {
	for _, size := range []int{8, 16, 64, 1000} {
		undetected := 0
		for off := range int(wordSize) {
			for v := range 256 {
				f := newFixed(Default(), size, 8, 0)
				var p [10]unsafe.Pointer
				for i := range p {
					p[i] = f.Malloc(size)
				}
				f.Free(p[3])
				f.Free(p[7])
				stale := (*byte)(unsafe.Add(p[7], off))
				same := *stale == byte(v)
				*stale = byte(v)
				if detected := testcall.Catch(func() { f.Malloc(1) }) != nil; same && detected {
					t.Errorf("size %d: a panic, though byte %d is unchanged", size, off)
				} else if !same && !detected {
					undetected++
				}
				f.DestroyAll()
			}
		}
		if bits.UintSize == 64 && undetected > 0 || undetected > 8 {
			t.Errorf("size %d: %d of %d writes of a byte are not detected", size, undetected, 256*wordSize)
		}
	}
}

// TestFixedBlockLink counts how often a word that a program writes to a free block still
// leads into the chunk. One in 2^48 words does, and on 32-bit systems one in 2^16.
func TestFixedBlockLink(t *testing.T) {
	const tries = 200_000
	r := rand.New(rand.NewPCG(1, 9))
	type word = uintptr
	random := func() word { return word(r.Uint64()) }
	repeat := func(n int) (w word) { // n random bytes, again and again
		pattern := random()
		for i := range int(wordSize) {
			w |= pattern >> (8 * (i % n)) & 0xFF << (8 * i)
		}
		return w
	}
	for name, write := range map[string]func(w, other word) word{
		"inversion":          func(w, _ word) word { return ^w },
		"XOR, period 1":      func(w, _ word) word { return w ^ repeat(1) },
		"XOR, period 2":      func(w, _ word) word { return w ^ repeat(2) },
		"XOR, period 4":      func(w, _ word) word { return w ^ repeat(4) },
		"XOR, period 8":      func(w, _ word) word { return w ^ random() },
		"case flip":          func(w, _ word) word { return w ^ 0x2020202020202020&math.MaxUint },
		"high bits":          func(w, _ word) word { return w ^ 0x8080808080808080&math.MaxUint },
		"bit flip":           func(w, _ word) word { return w ^ 1<<r.IntN(bits.UintSize) },
		"decrement":          func(w, _ word) word { return w - 1 },
		"small addition":     func(w, _ word) word { return w + word(r.IntN(1<<20)) - 1<<19 },
		"random addition":    func(w, _ word) word { return w + random() },
		"another free block": func(_, other word) word { return other },
		"small number":       func(_, _ word) word { return word(r.IntN(1 << 20)) },
		"random word":        func(_, _ word) word { return random() },
		"shift":              func(w, _ word) word { return w << (1 + r.IntN(20)) },
		"byte swap":          func(w, _ word) word { return word(bits.ReverseBytes(uint(w))) },
	} {
		undetected := 0
		for range tries {
			f := FixedBlock{key: random()}
			base := random() &^ (64<<10 - 1)
			block := func() word { return base + word(r.IntN(64<<10/16)*16) }
			p, next := block(), block()
			w := f.word(p, next)
			if f.link(p, w) != next {
				t.Fatalf("link(word(%#x)) = %#x", next, f.link(p, w))
			}
			other := block()
			for other == p {
				other = block()
			}
			if now := write(w, f.word(other, block())); now != w && f.link(p, now)-base < 64<<10 {
				undetected++
			}
		}
		if bits.UintSize == 64 && undetected > 0 || undetected > 20 { // 3 are to be expected
			t.Errorf("%s: %d of %d are not detected", name, undetected, tries)
		}
	}
}

// TestFixedBlockLookalike: a live block may hold what a free one would.
func TestFixedBlockLookalike(t *testing.T) {
	f := newFixed(Default(), 16, 0, 0)
	defer f.DestroyAll()
	for range 3 {
		p, q, r := f.Malloc(16), f.Malloc(16), f.Malloc(16)
		f.Free(q)
		for _, next := range []uintptr{f.cur.base + noBlock, uintptr(q), uintptr(p), uintptr(r)} {
			*(*uintptr)(p) = f.word(uintptr(p), next)
			f.Free(p)
			wantMisuse(t, "FixedBlock.Free", func() { f.Free(p) }, "free already")
			if f.Malloc(1) != p {
				t.Fatal("another block than the last one freed")
			}
		}
		f.Free(p)
		f.Free(r)
	}
	checkFixedBlock(t, f, 0)
}

// TestFixedBlockStaleChunk: memory that comes back as it was does not make fresh
// blocks look free.
func TestFixedBlockStaleChunk(t *testing.T) {
	same := &sameChunk{mem: make([]uint64, 3*64<<10/8)}
	f := newFixed(same, 16<<10, 0, 0)
	for range 3 {
		var blocks [4]unsafe.Pointer
		for i := range blocks {
			blocks[i] = f.Malloc(1)
		}
		for _, p := range blocks {
			f.Free(p)
		}
		f.release(f.cur) // as if it were one too many
		f.cur = &noChunk
	}
	runtime.KeepAlive(same)
}

// sameChunk gives out the same memory again and again.
type sameChunk struct{ mem []uint64 }

func (a *sameChunk) Malloc(int) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(a.mem)) }
func (a *sameChunk) Free(unsafe.Pointer)       {}

// TestFreedIsFilled looks, in a process with CHEAP_CHECK, what an arena has freed, and writes to a
// free block of a FixedBlock.
func TestFreedIsFilled(t *testing.T) {
	if poison.Build {
		return // the sanitizer reports the accesses themselves
	}
	output, status := testchild.Run(t, func() {
		mustBeFilled := func(when string, p unsafe.Pointer) {
			if v := *(*uint32)(p); v != 0xDFDFDFDF {
				fmt.Printf("%s: freed memory holds %#x\n", when, v)
			}
		}
		h, err := NewHeap(HeapOptions{})
		if err != nil {
			panic(err)
		}
		a := NewArena(h, 1024)
		alloc := func() unsafe.Pointer {
			p := a.Malloc(200)
			*(*uint32)(p) = 1
			return p
		}
		kept := alloc()
		m := a.Mark()
		blocks := []unsafe.Pointer{alloc(), alloc(), alloc(), alloc(), alloc(), alloc(), alloc()}
		a.Release(m)
		for _, p := range blocks {
			mustBeFilled("Release", p)
		}
		if *(*uint32)(kept) != 1 {
			fmt.Println("a live block was filled")
		}
		a.Reset()
		mustBeFilled("Reset", kept)
		a = GetArena()
		p := alloc()
		a.Put()
		mustBeFilled("Put", p)

		f := newFixed(h, 64, 0, 0)
		for _, off := range []int{8, 50, 63} {
			p := f.Malloc(64)
			q := f.Malloc(0)
			f.Free(p)
			*(*byte)(unsafe.Add(p, off)) ^= 0x5A
			v := testcall.Catch(func() { f.Malloc(1) })
			if m, ok := v.(*MisuseError); !ok || m.Addr != uintptr(p) || !strings.Contains(m.Reason, fmt.Sprintf("1 bytes from byte %d on", off)) {
				fmt.Printf("a write to byte %d: %v\n", off, v)
			}
			f.Free(q)
			f.Free(f.Malloc(64)) // it goes on
			if _, ok := testcall.Catch(func() { f.Free(p) }).(*MisuseError); !ok {
				fmt.Println("a block was freed twice")
			}
		}
		if err := f.Destroy(); err != nil {
			fmt.Println(err)
		}
	}, "CHEAP_CHECK=blocks")
	if output != "" || status != 0 {
		t.Errorf("status %d\n%s", status, output)
	}
}
