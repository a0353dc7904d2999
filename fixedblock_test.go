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

	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/test/testheap"
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
		for i, c := range []struct{ size, align int }{
			{1, 1}, {8, 8}, {9, 2}, {12, 4}, {16, 16}, {24, 8}, {40, 0}, {48, 16}, {100, 64}, {5000, 16}, {70_000, 4096}, {65536, 65536},
		} {
			t.Run(fmt.Sprintf("inner=%s/size=%d/align=%d", name, c.size, c.align), func(t *testing.T) {
				chunkSize := []int{0, 4096, 200_000}[i%3]
				testFixedBlockModel(t, newFixed(inner(t), c.size, c.align, chunkSize), max(c.align, 8))
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
			p := f.AlignedMalloc(rng.IntN(size+1), 1<<rng.IntN(bits.Len(uint(align))))
			if rng.IntN(2) == 0 {
				f.Free(p)
				p = f.Malloc(rng.IntN(size + 1))
			}
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
		if err := f.Destroy(); !errors.As(err, &le) || le.Blocks != int64(len(live)) || le.Bytes != int64(len(live)*f.Stride()) {
			t.Fatalf("Destroy with %d live blocks: %v", len(live), err)
		}
	}
	for _, b := range live {
		f.Free(b.p)
	}
	checkFixedBlock(t, f, 0)
	if len(f.all) > 2 { // the one that Malloc takes from, and one that is empty
		t.Fatalf("%d chunks are kept for no block", len(f.all))
	}
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
	testenv.Skip(t, "asan", "package asan, by cgo, is called for each block of an Arena and a FixedBlock; what they have not handed out may not be looked at")
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
	if n := runtime.NumCgoCall() - calls; n > testheap.FewCgoCalls() {
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
