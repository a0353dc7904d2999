package cheap

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// oddAligned gives blocks that are aligned to 8 and not to 16.
type oddAligned struct{ *fakeAlloc }

func (a oddAligned) Malloc(size int) unsafe.Pointer { return a.malloc(size, 8, 8) }

// TestArenaModel holds an arena against a list of what is live: no two blocks
// overlap, all are aligned, and all keep their contents until they are freed.
func TestArenaModel(t *testing.T) {
	type block struct {
		p    unsafe.Pointer
		size int
		fill byte
	}
	for _, chunkSize := range []int{256, 1000, 4096} {
		for name, inner := range map[string]func(*fakeAlloc) Allocator{
			"aligned": func(f *fakeAlloc) Allocator { return fakeAligned{f} },
			"plain":   func(f *fakeAlloc) Allocator { return f },
			"odd":     func(f *fakeAlloc) Allocator { return oddAligned{f} },
			"pool":    nil,
		} {
			t.Run(fmt.Sprintf("chunk=%d/inner=%s", chunkSize, name), func(t *testing.T) {
				f := newFake(t)
				a := GetArena()
				if inner != nil {
					a.Put()
					a = NewArena(inner(f), chunkSize)
				}
				rng := rand.New(rand.NewPCG(1, uint64(chunkSize)))
				var live []block
				var marks []Mark
				var liveAt []int // len(live) at the mark
				check := func() {
					sorted := slices.SortedFunc(slices.Values(live), func(a, b block) int {
						return int(uintptr(a.p)) - int(uintptr(b.p))
					})
					for i, b := range sorted {
						if i > 0 && uintptr(sorted[i-1].p)+uintptr(max(1, sorted[i-1].size)) > uintptr(b.p) {
							t.Fatalf("%p and %p overlap", sorted[i-1].p, b.p)
						}
						for j, c := range unsafe.Slice((*byte)(b.p), b.size) {
							if c != b.fill {
								t.Fatalf("byte %d of %p is %#x, want %#x", j, b.p, c, b.fill)
							}
						}
						a.Free(b.p) // allowed, and changes nothing
					}
				}
				for step := range 2000 {
					switch op := rng.IntN(100); {
					case op < 80:
						size, align := rng.IntN(64), 16
						if op >= 70 {
							size = rng.IntN(2 * chunkSize)
						}
						var p unsafe.Pointer
						if op%8 == 0 {
							align = 1 << rng.IntN(13)
							p = a.AlignedMalloc(size, align)
						} else {
							p = a.Malloc(size)
						}
						if p == nil || uintptr(p)%uintptr(max(16, align)) != 0 {
							t.Fatalf("size %d, align %d: %p", size, align, p)
						}
						b := block{p, size, byte(step)}
						for i := range unsafe.Slice((*byte)(p), size) {
							*(*byte)(unsafe.Add(p, i)) = b.fill
						}
						live = append(live, b)
					case op < 90:
						marks = append(marks, a.Mark())
						liveAt = append(liveAt, len(live))
					case op < 97 && len(marks) > 0:
						i := rng.IntN(len(marks))
						a.Release(marks[i])
						for j, m := range marks[i+1:] {
							if liveAt[i+1+j] > liveAt[i] { // or it is the same mark
								wantMisuse(t, "Arena.Release", func() { a.Release(m) }, "stale")
							}
						}
						live = live[:liveAt[i]]
						marks, liveAt = marks[:i+1], liveAt[:i+1]
					case op == 98:
						a.Reset()
						live, marks, liveAt = nil, nil, nil
					case op == 99:
						a.FreeAll()
						live, marks, liveAt = nil, nil, nil
						if f.live() != 0 {
							t.Fatalf("%d bytes held after FreeAll", f.live())
						}
					}
					if step%50 == 0 {
						check()
					}
				}
				check()
				if inner == nil {
					a.Put()
					return
				}
				if err := a.Destroy(); err != nil {
					t.Fatal(err)
				}
				if f.live() != 0 {
					t.Errorf("%d bytes held after Destroy", f.live())
				}
			})
		}
	}
}

func TestArenaZeroSizeIsDistinct(t *testing.T) {
	a := NewArena(newFake(t), 1024)
	seen := map[unsafe.Pointer]bool{}
	for i := range 200 {
		for _, p := range []unsafe.Pointer{a.Malloc(0), a.Malloc(i % 3), a.AlignedMalloc(0, 1)} {
			if seen[p] {
				t.Fatalf("%p handed out twice", p)
			}
			seen[p] = true
			a.Free(p)
		}
	}
}

func TestArenaKeepsChunks(t *testing.T) {
	f := newFake(t)
	a := NewArena(f, 1024)
	work := func() {
		for range 40 {
			a.Malloc(100)
		}
	}
	work()
	n := f.mallocs
	for range 10 {
		a.Reset()
		work()
	}
	m := a.Mark()
	for range 10 {
		work()
		a.Release(m)
	}
	if grown := f.mallocs - n; grown > n || f.frees != 0 {
		t.Errorf("%d chunks at first, %d more, %d freed", n, grown, f.frees)
	}
	a.Malloc(5000)
	a.Release(m)
	if f.frees != 1 {
		t.Errorf("Release gave %d large blocks back, want 1", f.frees)
	}
	a.Malloc(5000)
	a.Reset()
	if f.frees != 2 {
		t.Errorf("Reset gave %d large blocks back, want 1", f.frees-1)
	}
}

func TestArenaChunkSize(t *testing.T) {
	f := newFake(t)
	NewArena(f, 0).Malloc(1)
	if f.live() != arenaChunkSize {
		t.Errorf("a default chunk is %d bytes", f.live())
	}
	small := &sizedFake{fakeAlloc: newFake(t), max: 4096}
	a := NewArena(small, 0)
	if a.Malloc(1) == nil || a.Malloc(4096) == nil || a.Malloc(4097) != nil {
		t.Error("the arena does not keep to the inner allocator's largest size")
	}
	wantMisuse(t, "NewArena", func() { NewArena(&sizedFake{fakeAlloc: f, max: 64}, 0) }, "64 bytes")
	wantMisuse(t, "NewArena", func() { NewArena(f, -1) })
}

func TestArenaNoMemory(t *testing.T) {
	f := newFake(t)
	a := NewArena(f, 1024)
	p := a.Malloc(1)
	*(*byte)(p) = 42
	f.fail = true
	if a.Malloc(2000) != nil || a.AlignedMalloc(2000, 4096) != nil {
		t.Error("large blocks without memory")
	}
	for a.Malloc(100) != nil {
	}
	f.fail = false
	if a.Malloc(100) == nil || *(*byte)(p) != 42 {
		t.Error("the arena did not get over it")
	}
	for _, size := range []int{math.MaxInt, math.MaxInt - 15, math.MaxInt - 4096, math.MaxInt / 4} {
		if a.Malloc(size) != nil || a.AlignedMalloc(size, 64) != nil {
			t.Errorf("a block of %d bytes", size)
		}
	}
	if a.AlignedMalloc(1, math.MaxInt/2+1) != nil {
		t.Error("a block aligned to the largest power of two")
	}
}

// A busyInner calls functions while it allocates and frees, as another goroutine may at that time.
type busyInner struct {
	*fakeAlloc
	onMalloc, onFree func()
}

func (b *busyInner) Malloc(size int) unsafe.Pointer {
	if f := b.onMalloc; f != nil {
		b.onMalloc = nil
		f()
	}
	return b.fakeAlloc.Malloc(size)
}

func (b *busyInner) Free(p unsafe.Pointer) {
	if f := b.onFree; f != nil {
		b.onFree = nil
		f()
	}
	b.fakeAlloc.Free(p)
}

// TestArenaShared uses an arena while another goroutine does: where it takes memory, and where
// the memory of a mark is gone.
func TestArenaShared(t *testing.T) {
	b := &busyInner{fakeAlloc: newFake(t)}
	const size = 1024
	a := NewArena(b, size)
	defer a.Destroy()
	b.onMalloc = func() { a.Malloc(8) }
	wantMisuse(t, "Arena", func() { a.Malloc(8) }, "two goroutines")
	a.Malloc(8)
	b.onMalloc = func() { a.Malloc(8) }
	wantMisuse(t, "Arena", func() { a.Malloc(size) }, "two goroutines")
	m := a.Mark()
	a.Malloc(size)
	b.onFree = a.FreeAll
	wantMisuse(t, "Arena", func() { a.Release(m) }, "two goroutines")
}

func TestArenaMisuse(t *testing.T) {
	a := NewArena(newFake(t), 1024)
	other := NewArena(newFake(t), 1024)
	p := a.Malloc(100)
	wantMisuse(t, "Arena.Malloc", func() { a.Malloc(-1) }, "-1")
	wantMisuse(t, "Arena.Malloc", func() { a.Malloc(math.MinInt) })
	wantMisuse(t, "Arena.AlignedMalloc", func() { a.AlignedMalloc(-1, 8) })
	wantMisuse(t, "Arena.AlignedMalloc", func() { a.AlignedMalloc(1, 24) }, "24")
	wantMisuse(t, "Arena.AlignedMalloc", func() { a.AlignedMalloc(1, 0) })
	a.Free(nil)
	a.Free(p)
	wantMisuse(t, "Arena.Free", func() { a.Free(unsafe.Add(p, 1)) }, fmt.Sprintf("%#x", uintptr(p)+1))
	wantMisuse(t, "Arena.Free", func() { a.Free(unsafe.Add(p, -16)) }, "not handed out")
	wantMisuse(t, "Arena.Free", func() { a.Free(other.Malloc(1)) }, "outside")
	wantMisuse(t, "Arena.Free", func() { a.Free(testheap.AnyPointer(4096)) }, "outside")
	wantMisuse(t, "Arena.Free", func() { a.Free(testheap.AnyPointer(math.MaxUint &^ 15)) }, "outside")
	wantMisuse(t, "Arena.Free", func() { NewArena(newFake(t), 0).Free(p) }, "outside")

	m := a.Mark()
	a.Malloc(1)
	m2 := a.Mark()
	wantMisuse(t, "Arena.Release", func() { other.Release(m) }, "another arena")
	wantMisuse(t, "Arena.Release", func() { a.Release(Mark{}) }, "another arena")
	a.Release(m)
	wantMisuse(t, "Arena.Release", func() { a.Release(m2) }, "stale")
	a.Malloc(1)
	m3 := a.Mark()
	wantMisuse(t, "Arena.Release", func() { a.Release(m2) }, "stale")
	a.Release(m3)
	a.Release(m)
	a.Reset()
	wantMisuse(t, "Arena.Release", func() { a.Release(m) }, "stale")
	m = a.Mark()
	a.FreeAll()
	wantMisuse(t, "Arena.Release", func() { a.Release(m) }, "stale")
	wantMisuse(t, "Arena.Put", func() { a.Put() }, "Destroy")

	if err := a.Destroy(); err != nil {
		t.Fatal(err)
	}
	if err := a.Destroy(); err != ErrDestroyed {
		t.Errorf("second Destroy: %v", err)
	}
	for op, use := range arenaUses(a, m) {
		wantMisuse(t, "Arena."+op, use, "destroyed")
	}
}

// arenaUses is every method of an arena, but for Destroy.
func arenaUses(a *Arena, m Mark) map[string]func() {
	return map[string]func(){
		"Malloc":        func() { a.Malloc(0) },
		"AlignedMalloc": func() { a.AlignedMalloc(1, 1) },
		"Free":          func() { a.Free(nil) },
		"Mark":          func() { a.Mark() },
		"Release":       func() { a.Release(m) },
		"Reset":         func() { a.Reset() },
		"FreeAll":       func() { a.FreeAll() },
		"Put":           func() { a.Put() },
	}
}

// TestArenaMarksDoNotPileUp: a loop of scopes needs the room of one.
func TestArenaMarksDoNotPileUp(t *testing.T) {
	a := NewArena(newFake(t), 0)
	a.Malloc(1)
	for range 100 {
		outer := a.Mark()
		a.Malloc(1)
		inner := a.Mark()
		a.Malloc(1)
		a.Release(inner)
		a.Release(outer)
	}
	if len(a.marks) != 1 {
		t.Errorf("%d marks after 100 scopes", len(a.marks))
	}
}

// TestChunkOfArena gives the heap below an arena all blocks of a chunk. None of them
// has the address of the chunk, which is a live block of the heap.
func TestChunkOfArena(t *testing.T) {
	h := newHeap(t, HeapOptions{})
	l := h.NewLocal()
	defer l.Destroy()
	for _, chunkSize := range []int{256, 1000, 4096, pooledChunk, arenaChunkSize} {
		a := NewArena(h, chunkSize)
		var blocks []unsafe.Pointer
		for a.cur <= 0 { // until it takes a second chunk
			p := a.Malloc(16)
			*(*int)(p) = len(blocks)
			blocks = append(blocks, p)
		}
		last := len(blocks) - 2 // which ends the first chunk
		for _, i := range []int{0, 1, last / 2, last - 1, last} {
			mustAccuseAll(t, h, l, uintptr(blocks[i]), "inside the block", fmt.Sprintf("(%d bytes)", GoodSize(chunkSize)))
		}
		p := h.Malloc(chunkSize) // the heap would give the memory out again
		clear(unsafe.Slice((*byte)(p), chunkSize))
		for i, p := range blocks {
			if *(*int)(p) != i {
				t.Fatalf("block %d has %d", i, *(*int)(p))
			}
		}
		h.Free(p)
		if err := a.Destroy(); err != nil {
			t.Error(err)
		}
	}

	// A large block is a block of the heap, which the heap cannot tell from others.
	a := NewArena(h, 0)
	large := []unsafe.Pointer{a.Malloc(30_000), a.Malloc(100_000), a.Malloc(30_000)}
	h.Free(large[1])
	wantMisuse(t, "Heap.Free", a.Reset, fmt.Sprintf("%#x", uintptr(large[1])))
	if err := a.Destroy(); err != nil {
		t.Error(err)
	}
}

// TestArenaHotPath pins that taking blocks costs no Go allocation and no cgo
// call, and neither do nested scopes and a reset.
func TestArenaHotPath(t *testing.T) {
	testenv.Skip(t, "asan", "package asan, by cgo, is called for each block of an Arena and a FixedBlock; what they have not handed out may not be looked at")
	a := NewArena(newFake(t), 0)
	calls := runtime.NumCgoCall()
	n := testing.AllocsPerRun(100, func() {
		for range 10 {
			m := a.Mark()
			a.Malloc(100)
			a.Free(a.AlignedMalloc(100, 64))
			a.Release(m)
		}
		a.Reset()
	})
	if n != 0 {
		t.Errorf("%v Go allocations", n)
	}
	if n := runtime.NumCgoCall() - calls; n > testheap.FewCgoCalls() {
		t.Errorf("%d cgo calls", n)
	}
}

func BenchmarkArena(b *testing.B) {
	a := NewArena(newFake(b), 0)
	b.Run("op=malloc", func(b *testing.B) {
		i := 0
		for b.Loop() {
			if i++; i%512 == 0 {
				a.Reset()
			}
			a.Malloc(64)
		}
	})
	b.Run("op=scope", func(b *testing.B) {
		for b.Loop() {
			m := a.Mark()
			a.Malloc(64)
			a.Release(m)
		}
	})
}
