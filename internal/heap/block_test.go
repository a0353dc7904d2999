package heap

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// TestBlockStates looks at the three questions that are asked of a block, in each
// state.
func TestBlockStates(t *testing.T) {
	h := NewHeap(t, Options{})
	p := uintptr(h.Malloc(64))
	defer h.Free(unsafe.Pointer(block.At(p)))
	b, factor := block.At(p), h.classes[sizeclass.Of(64)].factor
	look := func(name string, cached, sorted bool, next uintptr, state block.State) {
		t.Helper()
		if b.IsCached(p, factor) != cached || b.IsSorted(p, factor) != sorted || b.IsFree(p, factor) != (cached || sorted) {
			t.Errorf("%s: cached is %v, sorted %v, free %v", name, b.IsCached(p, factor), b.IsSorted(p, factor), b.IsFree(p, factor))
		}
		if (cached || sorted) && (block.NextOf(b.Link) != next || block.StateOf(b.Link) != state) {
			t.Errorf("%s: link %#x", name, b.Link)
		}
	}
	look("in use", false, false, 0, 0)
	for state := range block.StateBits + 1 {
		for _, next := range []uintptr{0, p + 64, p - 64} {
			b.SetCached(p, next, state, factor)
			look("in a cache", true, false, next, state)
			b.Canary ^= block.SortedBit
			look("sorted", false, true, next, state)
			b.SetSorted(p, next, state, factor)
			look("sorted", false, true, next, state)
		}
	}
	b.Canary = 0
	look("handed out", false, false, 0, 0)
	*b = block.Block{}
	look("zero", false, false, 0, 0)
}

// TestWriteAfterFreeInPlace changes a free block as programs do that work on a
// buffer in place, and lets each way out of the heap's lists find it: none follows
// the link, and no block is handed out twice.
func TestWriteAfterFreeInPlace(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	const size = 64
	ways := map[string]func(h *Heap, l *Local) unsafe.Pointer{
		"Heap.Malloc":     func(h *Heap, _ *Local) unsafe.Pointer { return h.Malloc(size) },
		"Heap.TryMalloc":  func(h *Heap, _ *Local) unsafe.Pointer { p, _ := h.TryMalloc(size); return p },
		"Heap.Calloc":     func(h *Heap, _ *Local) unsafe.Pointer { return h.Calloc(1, size) },
		"Local.Malloc":    func(_ *Heap, l *Local) unsafe.Pointer { return l.Malloc(size) },
		"Local.TryMalloc": func(_ *Heap, l *Local) unsafe.Pointer { p, _ := l.TryMalloc(size); return p },
		"Heap.Trim":       func(h *Heap, l *Local) unsafe.Pointer { l.empty(); h.Trim(); return nil },
		"from a span":     nil,
	}
	for opName, op := range testheap.InPlace() {
		for wayName, way := range ways {
			if rand.IntN(4) > 0 {
				continue
			}
			h, err := New(Options{})
			testcall.Must(t, err)
			l := h.NewLocal()
			var blocks []unsafe.Pointer
			for range 64 {
				blocks = append(blocks, h.Malloc(size))
			}
			free := h.Free
			if wayName[0] == 'L' {
				free = l.Free
			}
			free(blocks[2])
			free(blocks[10])
			written := blocks[10]
			live := map[unsafe.Pointer]bool{}
			for i, p := range blocks {
				live[p] = i != 2 && i != 10
			}
			if wayName == "from a span" {
				h.Trim() // its list begins with a block that came last
				way = ways["Heap.Malloc"]
			}
			b := unsafe.Slice((*uint64)(written), 2)
			b[0], b[1] = op(b[0]), op(b[1])
			var found *MisuseError
			for range 4 * 64 {
				v := testcall.Catch(func() {
					if p := way(h, l); p != nil {
						if live[p] || p == written && found == nil {
							t.Fatalf("%s, %s: %p is handed out; the block at %p was written to", opName, wayName, p, written)
						}
						live[p] = true
					}
				})
				if v != nil {
					if found != nil {
						t.Fatalf("%s, %s: a second panic: %v", opName, wayName, v)
					}
					if found, _ = v.(*MisuseError); found == nil {
						t.Fatalf("%s, %s: %v", opName, wayName, v)
					}
				}
			}
			if found == nil { // it is in the cache of another P
				found, _ = testcall.Catch(h.Trim).(*MisuseError)
			}
			if found == nil || found.Addr != uintptr(written) {
				t.Fatalf("%s, %s: the block at %p: %v", opName, wayName, written, found)
			}
			l.Destroy()
			h.DestroyAll()
		}
	}
}

// TestAlignedClass compares the class for a size and an alignment with the first whose size is large
// enough and a multiple, or whose blocks have a span each. There is none for the alignment of a span.
func TestAlignedClass(t *testing.T) {
	for align := 1; align <= math.MaxInt/2+1 && align > 0; align *= 2 {
		for _, size := range []int{0, 1, 16, 17, 100, 128, 4000, 4097, 20_000, 32 << 10, 32<<10 + 1, 64 << 10, 64<<10 + 1, 100_000} {
			want, found := 0, false
			for want = range sizeclass.Classes {
				c := &sizeclass.Classes[want]
				if int(c.Size) >= size && (c.Blocks == 1 || int(c.Size)%align == 0 || align <= sizeclass.Quantum) {
					found = align < sizeclass.SpanSize
					break
				}
			}
			if c, ok := alignedClass(size, align); ok != found || ok && int(c) != want {
				t.Errorf("%d bytes aligned to %d: class %d, %v, want %d, %v", size, align, c, ok, want, found)
			}
		}
	}
}
