package itest

import (
	"errors"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// A tierModel uses a [cheap.FixedBlock] or a [cheap.Fallback] from one goroutine.
type tierModel struct {
	a     cheap.AlignedAllocator
	inner *cheap.Heap // where all memory comes from
	sizes *rapid.Generator[int]
	align int // of all blocks
	most  int // alignment that AlignedMalloc gives, for sizes up to fixed

	// owns says which tier has a block of a size, and which have not.
	owns func(t *rapid.T, p unsafe.Pointer, size int)

	live shadow.Set
}

// onlyMalloc hides what an allocator can do beside Malloc and Free.
type onlyMalloc struct{ cheap.Allocator }

// newFixedBlock makes a FixedBlock over h, which may seem not to align.
func newFixedBlock(t *rapid.T, h *cheap.Heap, blockSize, align, chunkSize int) *cheap.FixedBlock {
	var inner cheap.Allocator = h
	if rapid.Bool().Draw(t, "inner aligns") {
		inner = onlyMalloc{h}
	}
	f := cheap.NewFixedBlock(inner, cheap.FixedBlockOptions{BlockSize: blockSize, Align: align, ChunkSize: chunkSize})
	if f.MaxSize() != blockSize || f.Stride() < blockSize || f.Stride()%max(align, 8) != 0 {
		t.Fatalf("MaxSize %d, Stride %d", f.MaxSize(), f.Stride())
	}
	return f
}

// TestFixedBlockModel is the model of [cheap.FixedBlock].
func TestFixedBlockModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHeap(t)
		blockSize := rapid.OneOf(rapid.IntRange(1, 200), rapid.IntRange(1, 40_000)).Draw(t, "block size")
		align := aligns(4096).Draw(t, "align")
		chunkSize := rapid.SampledFrom([]int{0, 4096, 200_000}).Draw(t, "chunk size")
		f := newFixedBlock(t, h, blockSize, align, chunkSize)
		m := &tierModel{a: f, inner: h, sizes: rapid.IntRange(0, blockSize), align: align, most: align}
		m.owns = func(t *rapid.T, p unsafe.Pointer, size int) {
			if !f.Contains(p) {
				t.Fatalf("Contains(%p) is false", p)
			}
		}
		t.Repeat(rapid.StateMachineActions(m))
		m.mustNotDestroy(t, f)
		m.freeAll(t)
		// The chunk that Malloc takes from may be kept, and one that is empty.
		if s := h.Stats(); s.Blocks > 2 {
			t.Fatalf("%d chunks are kept for no block", s.Blocks)
		}
		mustDestroy(t, f.Destroy)
		if s := h.Stats(); s.Blocks != 0 {
			t.Fatalf("%d chunks are left after Destroy", s.Blocks)
		}
	})
}

// TestFallbackModel is the model of a [cheap.Fallback] from small blocks to
// medium ones to a heap.
func TestFallbackModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHeap(t)
		const small, medium = 48, 1000
		first := newFixedBlock(t, h, small, 16, 0)
		second := newFixedBlock(t, h, medium, 64, 0)
		m := &tierModel{
			a:     cheap.NewFallback(first, cheap.NewFallback(second, h)),
			inner: h,
			sizes: rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(0, 2000), sizes),
			align: 16,
			most:  8192,
		}
		m.owns = func(t *rapid.T, p unsafe.Pointer, size int) {
			switch {
			case first.Contains(p):
				size -= small
			case second.Contains(p):
				size -= medium
			case h.Owns(p):
				size = 0
			default:
				t.Fatalf("no tier contains %p", p)
			}
			if size > 0 {
				t.Fatalf("%p has %d bytes too few", p, size)
			}
		}
		t.Repeat(rapid.StateMachineActions(m))
		m.freeAll(t)
		for _, destroy := range []func() error{first.Destroy, second.Destroy, h.Destroy} {
			mustDestroy(t, destroy)
		}
	})
}

func (m *tierModel) added(t *rapid.T, p unsafe.Pointer, size, align int) {
	if err := m.live.Add(p, size, size, max(align, m.align)); err != nil {
		t.Fatal(err)
	}
	m.owns(t, p, size)
}

func (m *tierModel) free(t *rapid.T, i int) {
	p := osmem.Pointer(m.live.At(i).Addr)
	if err := m.live.Remove(p); err != nil {
		t.Fatal(err)
	}
	m.a.Free(p)
}

func (m *tierModel) Malloc(t *rapid.T) {
	size := m.sizes.Draw(t, "size")
	m.added(t, m.a.Malloc(size), size, 1)
}

func (m *tierModel) AlignedMalloc(t *rapid.T) {
	size, align := m.sizes.Draw(t, "size"), aligns(m.most).Draw(t, "align")
	m.added(t, m.a.AlignedMalloc(size, align), size, align)
}

func (m *tierModel) Burst(t *rapid.T) {
	for n, size := drawBurst(t, m.sizes); n > 0; n-- {
		m.added(t, m.a.Malloc(size), size, 1)
	}
}

func (m *tierModel) Free(t *rapid.T) {
	b := drawBlock(t, &m.live)
	p := osmem.Pointer(b.Addr)
	if err := m.live.Remove(p); err != nil {
		t.Fatal(err)
	}
	m.a.Free(p)
}

// FreeMany frees neighbours, or every other one, so that chunks become empty.
func (m *tierModel) FreeMany(t *rapid.T) {
	if m.live.Len() == 0 {
		t.Skip("no block is live")
	}
	first := rapid.IntRange(0, m.live.Len()-1).Draw(t, "first")
	n := rapid.IntRange(1, m.live.Len()).Draw(t, "n")
	step := rapid.IntRange(0, 1).Draw(t, "step")
	for ; n > 0 && first < m.live.Len(); n, first = n-1, first+step {
		m.free(t, first)
	}
}

// Misuse frees what is no block: an address within one, which none starts at.
func (m *tierModel) Misuse(t *rapid.T) {
	b := drawBlock(t, &m.live)
	p := osmem.Pointer(b.Addr + uintptr(rapid.IntRange(1, 7).Draw(t, "offset")))
	var e *cheap.MisuseError
	if err, _ := testcall.Catch(func() { m.a.Free(p) }).(error); !errors.As(err, &e) {
		t.Fatalf("Free(%p) within %v: %v", p, b, err)
	}
}

// Check compares all contents with the reference.
func (m *tierModel) Check(t *rapid.T) {
	if err := m.live.CheckAll(osmem.Pointer); err != nil {
		t.Fatal(err)
	}
	if s := m.inner.Stats(); s.Bytes < m.live.Bytes() {
		t.Fatalf("%+v of the inner heap, but %d bytes are live", s, m.live.Bytes())
	}
}

func (m *tierModel) freeAll(t *rapid.T) {
	for m.live.Len() > 0 {
		m.free(t, m.live.Len()/2)
	}
	m.Check(t)
}

// mustNotDestroy looks whether Destroy refuses because of live blocks, counts them, and
// leaves them alone.
func (m *tierModel) mustNotDestroy(t *rapid.T, f *cheap.FixedBlock) {
	n := m.live.Len()
	if n == 0 {
		return
	}
	var live *cheap.LiveError
	if err := f.Destroy(); !errors.As(err, &live) || live.Blocks != int64(n) || live.Bytes != int64(n*f.Stride()) {
		t.Fatalf("Destroy with %d live blocks: %v", n, err)
	}
	m.Check(t)
}

func mustDestroy(t *rapid.T, destroy func() error) {
	if err := destroy(); err != nil {
		t.Fatal(err)
	}
	if err := destroy(); err != cheap.ErrDestroyed {
		t.Fatalf("a second Destroy returns %v", err)
	}
}
