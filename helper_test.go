package cheap

import (
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

func TestMain(m *testing.M) { testheap.Main(m) }

// fakeAlloc is an Allocator over Go memory that counts, refuses when told to,
// fills what it gives out with garbage, and knows what is live. Blocks are
// aligned to 16 and no better, unless AlignedMalloc is asked.
type fakeAlloc struct {
	t       testing.TB
	blocks  map[unsafe.Pointer]fakeBlock
	mallocs int
	frees   int
	fail    bool // refuse memory
}

// A fakeBlock keeps the memory of a block alive.
type fakeBlock struct {
	mem  []byte
	size int
}

func newFake(t testing.TB) *fakeAlloc {
	return &fakeAlloc{t: t, blocks: map[unsafe.Pointer]fakeBlock{}}
}

func (a *fakeAlloc) Malloc(size int) unsafe.Pointer {
	return a.malloc(size, 16, 16)
}

// malloc returns a block whose address modulo 2*align is odd.
func (a *fakeAlloc) malloc(size, align, odd int) unsafe.Pointer {
	if size < 0 {
		a.t.Fatalf("Malloc(%d)", size)
	}
	if a.fail || size > 1<<28 {
		return nil
	}
	mem := make([]byte, size+1+3*align)
	for n := copy(mem, "\xDB"); n < len(mem); n *= 2 {
		copy(mem[n:], mem[:n])
	}
	p := unsafe.Pointer(unsafe.SliceData(mem))
	skip := int(-uintptr(p) & uintptr(2*align-1))
	p = unsafe.Add(p, skip+odd)
	a.blocks[p] = fakeBlock{mem, size}
	a.mallocs++
	return p
}

func (a *fakeAlloc) Free(p unsafe.Pointer) {
	if p == nil {
		return
	}
	if _, ok := a.blocks[p]; !ok {
		a.t.Fatalf("Free(%p) of what is not live", p)
	}
	delete(a.blocks, p)
	a.frees++
}

// live is the sum of the sizes of live blocks.
func (a *fakeAlloc) live() (bytes int) {
	for _, b := range a.blocks {
		bytes += b.size
	}
	return bytes
}

// fakeAligned is a fakeAlloc with AlignedMalloc.
type fakeAligned struct{ *fakeAlloc }

func (a fakeAligned) AlignedMalloc(size, align int) unsafe.Pointer {
	return a.malloc(size, align, 0)
}

var (
	wantMisuse    = testheap.WantMisuse[MisuseError]
	mustAccuse    = testheap.MustAccuse[MisuseError]
	mustAccuseAll = testheap.MustAccuseAll[MisuseError, Stats]
)

// newHeap returns a heap that is destroyed when the test ends; one that has live blocks then fails
// the test.
func newHeap(t testing.TB, o HeapOptions) *Heap {
	t.Helper()
	h, err := NewHeap(o)
	return testheap.Make(t, h, err, ErrDestroyed)
}

// mustHoldNothing looks whether h, all whose blocks have been freed, is left with its caches alone
// after a Trim.
func mustHoldNothing(t testing.TB, h *Heap) {
	t.Helper()
	(*heap.Heap)(h).EmptyQuarantine()
	h.Trim()
	testheap.MustHoldNothing(t, h.Stats())
}

// newFixed is NewFixedBlock with the options in a row.
func newFixed(inner Allocator, blockSize, align, chunkSize int) *FixedBlock {
	return NewFixedBlock(inner, FixedBlockOptions{BlockSize: blockSize, Align: align, ChunkSize: chunkSize})
}
