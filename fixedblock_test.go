package cheap

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/span"
	"github.com/cheapgo/cheap/internal/testcall"
)

// TestFixedBlockModel compares a FixedBlock with a list of its live blocks, over
// several inner allocators.
func TestFixedBlockModel(t *testing.T) {
	inners := map[string]func(testing.TB) Allocator{
		"plain":   func(t testing.TB) Allocator { return newFake(t) },
		"odd":     func(t testing.TB) Allocator { return oddAligned{newFake(t)} },
		"aligned": func(t testing.TB) Allocator { return fakeAligned{newFake(t)} },
		"heap": func(t testing.TB) Allocator {
			h, err := NewHeap(HeapOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := h.Destroy(); err != nil {
					t.Error(err)
				}
			})
			return h
		},
		"fixed": func(t testing.TB) Allocator {
			f := newFixed(Default(), 256<<10, 256<<10, 1<<20)
			t.Cleanup(func() {
				if err := f.Destroy(); err != nil {
					t.Error(err)
				}
			})
			return f
		},
	}
	for name, inner := range inners {
		for _, c := range []struct{ size, align int }{
			{1, 1}, {8, 8}, {9, 2}, {12, 4}, {16, 16}, {24, 8}, {40, 0}, {48, 16}, {100, 64}, {5000, 16}, {70_000, 4096}, {65536, 65536},
		} {
			t.Run(fmt.Sprintf("inner=%s/size=%d/align=%d", name, c.size, c.align), func(t *testing.T) {
				testFixedBlockModel(t, newFixed(inner(t), c.size, c.align, 0), max(c.align, 8))
			})
		}
	}
}

func testFixedBlockModel(t *testing.T, f *FixedBlock, align int) {
	type block struct {
		p    unsafe.Pointer
		fill byte
	}
	size := f.MaxSize()
	if f.Stride() < size || f.Stride()%align != 0 {
		t.Fatalf("BlockSize() = %d", f.Stride())
	}
	var live []block
	at := map[unsafe.Pointer]bool{}
	rng := rand.New(rand.NewPCG(uint64(size), 7))
	steps := min(20_000, 20<<20/size)
	grow := true
	for range steps {
		if rng.IntN(steps/6) == 0 {
			grow = !grow
		}
		if len(live) == 0 || grow == (rng.IntN(10) < 8) {
			p := f.Malloc(rng.IntN(size + 1))
			if p == nil || uintptr(p)%uintptr(align) != 0 || at[p] || !f.Contains(p) {
				t.Fatalf("Malloc = %p, live %t", p, at[p])
			}
			b := block{p, byte(rng.Uint32())}
			for _, i := range []int{0, size / 2, size - 1} {
				*(*byte)(unsafe.Add(p, i)) = b.fill
			}
			live = append(live, b)
			at[p] = true
			continue
		}
		i := rng.IntN(len(live))
		b := live[i]
		for _, i := range []int{0, size / 2, size - 1} {
			if got := *(*byte)(unsafe.Add(b.p, i)); got != b.fill {
				t.Fatalf("byte %d of %p is %#x, want %#x", i, b.p, got, b.fill)
			}
		}
		live = slices.Delete(live, i, i+1)
		delete(at, b.p)
		f.Free(b.p)
	}
	addrs := make([]uintptr, 0, len(live))
	for _, b := range live {
		addrs = append(addrs, uintptr(b.p))
	}
	slices.Sort(addrs)
	for i := 1; i < len(addrs); i++ {
		if addrs[i]-addrs[i-1] < uintptr(size) {
			t.Fatalf("%#x and %#x overlap", addrs[i-1], addrs[i])
		}
	}
	checkFixedBlock(t, f, len(live))
	if len(live) > 0 {
		var le *LiveError
		if err := f.Destroy(); !errors.As(err, &le) || le.Blocks != len(live) || le.Bytes != int64(len(live)*f.Stride()) {
			t.Fatalf("Destroy with %d live blocks: %v", len(live), err)
		}
	}
	for _, b := range live {
		f.Free(b.p)
	}
	checkFixedBlock(t, f, 0)
	if err := f.Destroy(); err != nil {
		t.Fatal(err)
	}
}

// checkFixedBlock looks whether the lists and counts of f agree with each other.
func checkFixedBlock(t *testing.T, f *FixedBlock, live int) {
	t.Helper()
	chunks, sum, avail, empty := 0, 0, 0, 0
	for _, c := range f.all {
		chunks++
		sum += c.live()
		if c == f.cur || c.full {
			continue
		}
		avail++
		if c.live() == 0 {
			empty++
		}
	}
	listed := 0
	for c := f.avail; c != nil; c = c.nextAvail {
		listed++
	}
	if chunks != len(f.all) || sum != live || listed != avail || empty != f.empty {
		t.Fatalf("%d chunks (want %d), %d live (want %d), %d listed (want %d), %d empty (want %d)",
			chunks, len(f.all), sum, live, listed, avail, empty, f.empty)
	}
}

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

func TestFixedBlockChunks(t *testing.T) {
	for _, c := range []struct{ block, align, page, want int }{
		{8, 8, 0, 64 << 10}, {8, 8, 64 << 10, 64 << 10}, {8, 8, 64<<10 + 1, 128 << 10},
		{100 << 10, 16, 0, 128 << 10}, {16, 16, 1 << 20, 1 << 20}, {16, 1 << 20, 0, 1 << 20},
	} {
		a := newFake(t)
		f := newFixed(fakeAligned{a}, c.block, c.align, c.page)
		f.Malloc(1)
		if a.live() != c.want {
			t.Errorf("%+v: a chunk of %d bytes", c, a.live())
		}
		f.DestroyAll()
		if a.live() != 0 {
			t.Errorf("%+v: %d bytes held", c, a.live())
		}
	}
}

// TestFixedBlockTouchesNoFreshBlock: memory is written when it is handed out,
// not before.
func TestFixedBlockTouchesNoFreshBlock(t *testing.T) {
	a := newFake(t)
	f := newFixed(a, 64, 0, 0)
	p := f.Malloc(64)
	chunk := unsafe.Slice((*byte)(p), 64<<10)
	for i, b := range chunk[wordSize:] {
		if b != 0xDB {
			t.Fatalf("byte %d of a new chunk is %#x", i+int(wordSize), b)
		}
	}
}

// TestFixedBlockGivesChunksBack pins how many chunks stay.
func TestFixedBlockGivesChunksBack(t *testing.T) {
	a := newFake(t)
	f := newFixed(a, 1024, 0, 0)
	var blocks []unsafe.Pointer
	for range 64 * 20 {
		blocks = append(blocks, f.Malloc(1))
	}
	if a.mallocs != 20 {
		t.Fatalf("%d chunks for 20", a.mallocs)
	}
	for _, p := range blocks {
		f.Free(p)
	}
	checkFixedBlock(t, f, 0)
	if len(f.all) > 3 || a.frees != 20-len(f.all) {
		t.Errorf("%d chunks left, %d given back", len(f.all), a.frees)
	}

	// On the brink of one more chunk, again and again.
	blocks = blocks[:0]
	for range 64 * 4 {
		blocks = append(blocks, f.Malloc(1))
	}
	n := a.mallocs
	for range 100 {
		p := f.Malloc(1)
		f.Free(p)
		f.Free(blocks[len(blocks)-1])
		blocks[len(blocks)-1] = f.Malloc(1)
	}
	if a.mallocs > n+1 {
		t.Errorf("%d chunks taken by a program on the brink", a.mallocs-n)
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
			free(anyPointer(f.cur.base+f.cur.size-1), "never")
			for _, p := range []uintptr{f.cur.base - 1, f.cur.base + f.cur.size} {
				if !f.Contains(anyPointer(p)) {
					free(anyPointer(p), "is from another allocator")
				}
			}
			free(other.Malloc(1), "a block of another allocator", "is from another allocator")
			free(Malloc(size), "is from another allocator")
			free(unsafe.Pointer(new([64]byte)), "is from another allocator")
			for _, n := range []uintptr{4096, math.MaxInt, math.MaxUint, math.MaxUint &^ 7, 1 << (bits.UintSize - 1)} {
				free(anyPointer(n), "is from another allocator")
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
func (a *sameChunk) Destroy() error            { return nil }

func TestFixedBlockNoMemory(t *testing.T) {
	a := newFake(t)
	f := newFixed(a, 1000, 0, 0)
	a.fail = true
	if p := f.Malloc(1); p != nil {
		t.Fatalf("Malloc without memory = %p", p)
	}
	a.fail = false
	var blocks []unsafe.Pointer
	for range 65 {
		blocks = append(blocks, f.Malloc(1))
	}
	a.fail = true
	for p := f.Malloc(1); p != nil; p = f.Malloc(1) {
		blocks = append(blocks, p)
	}
	for i := range 3 { // what comes back can be had again
		f.Free(blocks[i])
		if p := f.Malloc(1); p != blocks[i] {
			t.Fatalf("Malloc = %p, want %p", p, blocks[i])
		}
		if p := f.Malloc(1); p != nil {
			t.Fatalf("Malloc without memory = %p", p)
		}
	}
	for _, p := range blocks {
		f.Free(p)
	}
	if err := f.Destroy(); err != nil || a.live() != 0 {
		t.Errorf("%v, %d bytes held", err, a.live())
	}
}

// TestFixedBlockNoMetadata: the system refuses memory for a record.
func TestFixedBlockNoMetadata(t *testing.T) {
	a := fakeAligned{newFake(t)}
	f := newFixed(a, 64<<10, 0, 0)
	refused := errors.New("refused")
	refuse := func(osmem.Op, uintptr) error { return refused }
	// Use up what is left of the metadata, so that the next record needs more.
	var records []uintptr
	osmem.Fault.Store(&refuse)
	defer osmem.Fault.Store(nil)
	for {
		m, err := span.AllocMeta(fixedChunkSize)
		if err != nil {
			break
		}
		records = append(records, m)
	}
	p := f.Malloc(1)
	osmem.Fault.Store(nil)
	for _, m := range records {
		span.FreeMeta(m, fixedChunkSize)
	}
	if p != nil || a.live() != 0 {
		t.Errorf("Malloc = %p, %d bytes held", p, a.live())
	}
	if p := f.Malloc(1); p == nil {
		t.Error("the allocator did not get over it")
	}
	f.DestroyAll()
}

// TestFixedBlockNested: chunks within chunks, each found by its own allocator.
func TestFixedBlockNested(t *testing.T) {
	pages := newFixed(Default(), 256<<10, 256<<10, 1<<20)
	a := newFixed(pages, 64, 0, 128<<10)
	b := newFixed(pages, 64, 0, 256<<10)
	var blocks [2][]unsafe.Pointer
	for range 10_000 {
		blocks[0] = append(blocks[0], a.Malloc(1))
		blocks[1] = append(blocks[1], b.Malloc(1))
	}
	for i, f := range []*FixedBlock{a, b} {
		for _, p := range blocks[i] {
			if !f.Contains(p) || !pages.Contains(p) || []*FixedBlock{b, a}[i].Contains(p) {
				t.Fatalf("%p is not where it belongs", p)
			}
			f.Free(p)
		}
	}
	for _, f := range []*FixedBlock{a, b, pages} {
		checkFixedBlock(t, f, f.liveBlocks())
		if err := f.Destroy(); err != nil {
			t.Error(err)
		}
	}
}

// TestChunkOfFixedBlock gives the allocator below a FixedBlock the blocks of that
// FixedBlock. The first one has the address of the chunk, which is a live block there.
func TestChunkOfFixedBlock(t *testing.T) {
	const says = "is in a chunk that a FixedBlock has taken from a heap; pass its blocks to that FixedBlock"
	h, other := newHeap(t, HeapOptions{}), newHeap(t, HeapOptions{})
	l, otherLocal := h.NewLocal(), other.NewLocal()
	defer l.Destroy()
	defer otherLocal.Destroy()
	for _, inner := range []Allocator{h, l} {
		for _, chunkSize := range []int{0, 1 << 20, span.OwnMapping} {
			f := newFixed(inner, 64, 0, chunkSize)
			var blocks []unsafe.Pointer
			for i := range int(f.chunkSize / f.stride) {
				p := f.Malloc(64)
				*(*int)(p) = i
				blocks = append(blocks, p)
			}
			for _, i := range []int{0, 1, len(blocks) - 1} {
				addr := uintptr(blocks[i])
				mustAccuseAll(t, h, l, addr, says)
				mustAccuseAll(t, h, l, addr+16, says)
				mustAccuseAll(t, other, otherLocal, addr, says)
				mustAccuse(t, "UsableSize", addr, func() { UsableSize(blocks[i]) }, says)
			}
			// The heap would give the memory out again.
			p := h.Malloc(int(f.chunkSize) - 100)
			clear(unsafe.Slice((*byte)(p), f.chunkSize-100))
			for i, p := range blocks {
				if *(*int)(p) != i {
					t.Fatalf("block %d has %d", i, *(*int)(p))
				}
				f.Free(p)
			}
			h.Free(p)
			checkFixedBlock(t, f, 0)
			if err := f.Destroy(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestChunkOfNestedFixedBlock is the same for a FixedBlock over another.
func TestChunkOfNestedFixedBlock(t *testing.T) {
	const says = "is in a chunk that another FixedBlock has taken from this one; pass its blocks to that FixedBlock"
	for _, size := range []int{64 << 10, 128 << 10} {
		pages := newFixed(Default(), size, size, 1<<20)
		pages.Free(pages.Malloc(1))
		f := newFixed(pages, 64, 0, size)
		p, q := f.Malloc(64), f.Malloc(64)
		*(*int)(q) = 7
		before := pages.Malloc(1)
		pages.Free(before) // the chunk is the last one that pages has freed in
		for range 2 {
			mustAccuse(t, "FixedBlock.Free", uintptr(p), func() { pages.Free(p) }, says)
			if !pages.Contains(p) {
				t.Errorf("%p is not in the outer allocator", p)
			}
		}
		mustAccuse(t, "FixedBlock.Free", uintptr(q), func() { pages.Free(q) }, "inside the block")
		for range 8 {
			if x := pages.Malloc(1); uintptr(x) == uintptr(p) {
				t.Fatalf("%p is given out again", x)
			} else {
				pages.Free(x)
			}
		}
		mustAccuse(t, "FixedBlock.Free", uintptr(before), func() { pages.Free(before) }, "free already")
		f.Free(p)
		f.Free(q)
		if err := f.Destroy(); err != nil {
			t.Error(err)
		}
		checkFixedBlock(t, pages, 0)
		if err := pages.Destroy(); err != nil {
			t.Error(err)
		}
	}
}

// TestFixedBlockFallback puts real tiers together.
func TestFixedBlockFallback(t *testing.T) {
	small := newFixed(Default(), 8, 8, 0)
	large := newFixed(Default(), 256, 0, 0)
	h, err := NewHeap(HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := NewFallback(small, NewFallback(large, h))
	var blocks []unsafe.Pointer
	for i := range 5000 {
		p := a.Malloc(i % 600)
		if i%600 > 0 {
			*(*byte)(p) = byte(i)
		}
		blocks = append(blocks, p)
	}
	for i, p := range blocks {
		if i%600 > 0 && *(*byte)(p) != byte(i) {
			t.Fatalf("block %d holds %d", i, *(*byte)(p))
		}
		a.Free(p)
	}
	if err := a.Destroy(); err != nil {
		t.Error(err)
	}
}

// TestFixedIndex checks the division by every distance up to 64 KiB and some
// larger ones at the multiples and next to them.
func TestFixedIndex(t *testing.T) {
	strides := []uintptr{1 << 20, 3 << 20, 1<<20 + 8, 48 << 16}
	for s := uintptr(8); s <= 64<<10; s += 8 {
		strides = append(strides, s)
	}
	for _, stride := range strides {
		shift := bits.TrailingZeros(uint(stride))
		f := FixedBlock{inverse: inverse(stride >> shift), rotate: -shift}
		for _, i := range []uintptr{0, 1, 2, 63, 64, 1000, 8191} {
			if i > math.MaxUint/stride/2 {
				continue
			}
			off := i * stride
			if got := f.index(off); got != i {
				t.Fatalf("index(%d) by %d = %d, want %d", off, stride, got, i)
			}
			for _, d := range []uintptr{1, 2, 4, 7, 8, stride / 2, stride - 1} {
				if d%stride == 0 {
					continue
				}
				if got := f.index(off + d); got < math.MaxUint/stride { // as many as there can be
					t.Fatalf("index(%d) by %d = %d", off+d, stride, got)
				}
			}
		}
	}
}

// TestFixedBlockHotPath pins that a pair costs no Go allocation and no cgo call.
func TestFixedBlockHotPath(t *testing.T) {
	f := newFixed(Default(), 64, 0, 0)
	defer f.DestroyAll()
	calls := runtime.NumCgoCall()
	if n := testing.AllocsPerRun(1000, func() {
		p, q := f.Malloc(64), f.Malloc(64)
		f.Free(p)
		f.Free(q)
	}); n != 0 {
		t.Errorf("%v Go allocations", n)
	}
	if n := runtime.NumCgoCall() - calls; n != 0 {
		t.Errorf("%d cgo calls", n)
	}
}

func BenchmarkFixedBlock(b *testing.B) {
	for _, size := range []int{8, 64} {
		b.Run(fmt.Sprintf("size=%d/op=pair", size), func(b *testing.B) {
			f := newFixed(Default(), size, 8, 0)
			defer f.DestroyAll()
			for b.Loop() {
				f.Free(f.Malloc(size))
			}
		})
		b.Run(fmt.Sprintf("size=%d/op=random4096", size), func(b *testing.B) {
			f := newFixed(Default(), size, 8, 0)
			defer f.DestroyAll()
			var live [4096]unsafe.Pointer
			rng := uint32(1)
			for b.Loop() {
				rng = rng*1664525 + 1013904223
				i := rng >> 20
				f.Free(live[i])
				live[i] = f.Malloc(size)
			}
		})
	}
}

// TestChunkOfDestroyedHeap destroys a heap under a FixedBlock. The memory of its chunks
// belongs to another heap afterwards, which frees its blocks there.
func TestChunkOfDestroyedHeap(t *testing.T) {
	below, h := newHeap(t, HeapOptions{}), newHeap(t, HeapOptions{})
	f := NewFixedBlock(below, FixedBlockOptions{BlockSize: 100, ChunkSize: 256 << 10})
	chunks := map[uintptr]bool{}
	for range 20_000 {
		chunks[uintptr(f.Malloc(1))&^(256<<10-1)] = true
	}
	below.DestroyAll()
	var large, small []unsafe.Pointer
	again := false
	for range 1000 {
		p, q := h.Malloc(100_000), h.Malloc(1000)
		again = again || chunks[uintptr(p)&^(256<<10-1)]
		large, small = append(large, p), append(small, q)
	}
	if !again {
		t.Log("the memory was not used again")
	}
	for _, p := range append(large, small...) {
		h.Free(p)
	}
}
